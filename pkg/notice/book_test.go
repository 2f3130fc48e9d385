package notice_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostile"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/notice"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

var (
	begin  = time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC)
	wanted = policy.Notify{URLKey: "slack", Cluster: "prod"}
)

const (
	old    = "1.50.0"
	newest = "1.51.0"
)

// at is a fleet of nodes as a plan has them, at a time since the beginning.
type at struct {
	after    time.Duration
	nodes    []node
	stopped  string
	noPolicy bool
}

type node struct {
	phase  intent.Phase
	reason plan.Reason
	runs   string
	offers string
	// failed is how long after the beginning it failed last; 0: it didn't.
	failed time.Duration
	// id is of its intent.
	id string
}

func (a at) values() (*fleet.Snapshot, *plan.Plan) {
	s, p := &fleet.Snapshot{Now: begin.Add(a.after), NoPolicy: a.noPolicy}, &plan.Plan{}
	for i, n := range a.nodes {
		name, uid := fmt.Sprintf("node-%d", i), fmt.Sprintf("uid-%d", i)
		m := marker.Marks{Intent: marker.Intent{ID: n.id}, Report: marker.Report{Protocol: 1, Current: n.runs, Available: n.offers}}
		d := plan.Decision{Node: name, UID: uid, Phase: n.phase, Version: n.runs, Reason: n.reason, Message: plan.Text("as it is")}
		if n.phase != intent.PhaseWaiting && n.phase != intent.PhaseUpToDate {
			m.Intent.Target, d.Target = newest, newest
		}
		if n.failed > 0 {
			m.Failure = &marker.Failure{Versions: []string{newest}, Count: 1, Reason: string(plan.ReasonRolledBack), Message: "rolled back", At: begin.Add(n.failed)}
		}
		s.Nodes = append(s.Nodes, fleet.Node{Name: name, UID: uid, OSVersion: n.runs, Marks: m})
		p.Nodes = append(p.Nodes, d)
	}
	if a.stopped != "" {
		p.Stopped = []plan.StoppedVersion{{Version: a.stopped, Message: plan.Text("failed on 3 nodes")}}
	}
	return s, p
}

var (
	waits   = node{phase: intent.PhaseWaiting, reason: plan.ReasonUnavailableLimit, runs: old, offers: newest}
	drains  = node{phase: intent.PhaseDraining, reason: plan.ReasonDraining, runs: old, offers: newest, id: "1"}
	soaks   = node{phase: intent.PhaseVerifying, reason: plan.ReasonSoaking, runs: newest, id: "1"}
	done    = node{phase: intent.PhaseUpToDate, reason: plan.ReasonUpToDate, runs: newest}
	idle    = node{phase: intent.PhaseUpToDate, reason: plan.ReasonUpToDate, runs: old}
	lost    = node{phase: intent.PhaseLost, reason: plan.ReasonLost, runs: old, id: "1"}
	stopped = node{phase: intent.PhaseStaged, reason: plan.ReasonVersionStopped, runs: old, offers: newest, id: "1"}
	paused  = node{phase: intent.PhaseWaiting, reason: plan.ReasonPaused, runs: old, offers: newest}
)

// told makes a pass at each moment, lets the receiver take all that is sent, and returns the messages.
func told(t *testing.T, set policy.Notify, moments ...at) []string {
	t.Helper()
	var said []string
	text := ""
	for _, a := range moments {
		s, p := a.values()
		b, dropped := notice.Decode(text).Next(s, p, &set)
		assert.Equal(t, dropped, 0)
		keys, _ := b.Due(s.Now)
		b, notices := b.Try(keys, s.Now)
		for _, n := range notices {
			said = append(said, string(n.Occasion)+" "+n.Node+": "+n.Message)
		}
		text = b.Tried(keys, notice.Sent).Encode()
	}
	return said
}

const minute = time.Minute

// Each thing is told when it is so first, and once for as long as it is so.
func TestEachThingIsToldOnce(t *testing.T) {
	began := "RolloutBegan : the rollout of 1.51.0 began: 2 of 2 nodes are to go to it"
	for _, tc := range []struct {
		name    string
		set     policy.Notify
		moments []at
		want    []string
	}{
		{"a rollout", wanted, []at{{nodes: []node{idle, idle}}, {after: 1 * minute, nodes: []node{waits, waits}}, {after: 2 * minute, nodes: []node{drains, waits}},
			{after: 3 * minute, nodes: []node{soaks, waits}}, {after: 4 * minute, nodes: []node{done, drains}}, {after: 5 * minute, nodes: []node{done, soaks}},
			{after: 6 * minute, nodes: []node{done, done}}, {after: 3 * 60 * minute, nodes: []node{done, done}}},
			[]string{began, "RolloutEnded : the rollout of 1.51.0 ended after 4m: 2 of 2 nodes run it"}},
		{"what is left waits for a user", wanted, []at{{nodes: []node{drains, paused}}, {after: 1 * minute, nodes: []node{lost, paused}}, {after: 90 * minute, nodes: []node{lost, paused}}},
			[]string{"RolloutBegan : the rollout of 1.51.0 began: 1 of 2 nodes are to go to it", "NodeLost node-0: node node-0 is Lost: as it is",
				"RolloutEnded : the rollout of 1.51.0 ended after 1m: 0 of 2 nodes run it; waiting for a user: 1 Paused, 1 Lost"}},
		{"what is staged waits for a user", wanted, []at{{nodes: []node{drains, stopped}}, {after: 1 * minute, nodes: []node{done, stopped}}},
			[]string{"RolloutBegan : the rollout of 1.51.0 began: 1 of 2 nodes are to go to it",
				"RolloutEnded : the rollout of 1.51.0 ended after 1m: 1 of 2 nodes run it; waiting for a user: 1 VersionStopped"}},
		{"it ends and begins again within the hour", wanted, []at{{nodes: []node{drains}}, {after: 90 * minute, nodes: []node{done}},
			{after: 100 * minute, nodes: []node{done, drains}}, {after: 110 * minute, nodes: []node{done, done}}, {after: 150 * minute, nodes: []node{done, done}}},
			[]string{"RolloutBegan : the rollout of 1.51.0 began: 1 of 1 nodes are to go to it", "RolloutEnded : the rollout of 1.51.0 ended after 1h30m: 1 of 1 nodes run it",
				"RolloutBegan : the rollout of 1.51.0 began: 1 of 2 nodes are to go to it", "RolloutEnded : the rollout of 1.51.0 ended after 10m: 2 of 2 nodes run it"}},
		{"a node that backs off is no end", wanted, []at{{nodes: []node{drains}}, {after: 2 * minute,
			nodes: []node{{phase: intent.PhaseWaiting, reason: plan.ReasonBackingOff, runs: old, offers: newest, failed: minute}}}},
			[]string{"RolloutBegan : the rollout of 1.51.0 began: 1 of 1 nodes are to go to it", "NodeFailed node-0: node node-0 failed on its way to 1.51.0: rolled back"}},
		{"a failure from before messages were wanted", wanted, []at{{after: 2 * minute, nodes: []node{{phase: intent.PhaseWaiting, reason: plan.ReasonBackingOff, runs: old, offers: newest, failed: minute}}}},
			nil},
		{"the same node fails again within the hour, and after it", wanted, []at{
			{nodes: []node{idle}},
			{after: 2 * minute, nodes: []node{{phase: intent.PhaseUpToDate, runs: old, failed: 1 * minute}}},
			{after: 20 * minute, nodes: []node{{phase: intent.PhaseUpToDate, runs: old, failed: 19 * minute}}},
			{after: 62 * minute, nodes: []node{{phase: intent.PhaseUpToDate, runs: old, failed: 19 * minute}}},
			{after: 200 * minute, nodes: []node{{phase: intent.PhaseUpToDate, runs: old, failed: 19 * minute}}}},
			[]string{"NodeFailed node-0: node node-0 failed on its way to 1.51.0: rolled back", "NodeFailed node-0: node node-0 failed on its way to 1.51.0: rolled back"}},
		{"a version is stopped, acknowledged, and stopped again", wanted, []at{{nodes: []node{idle}, stopped: newest}, {after: minute, nodes: []node{idle}},
			{after: 2 * minute, nodes: []node{idle}, stopped: newest}, {after: 3 * minute, nodes: []node{idle}}, {after: 70 * minute, nodes: []node{idle}},
			{after: 71 * minute, nodes: []node{idle}, stopped: newest}},
			[]string{"VersionStopped : failed on 3 nodes", "VersionStopped : failed on 3 nodes"}},
		{"only what is wanted", policy.Notify{URLKey: "k", Occasions: []policy.Occasion{policy.NodeLost}}, []at{{nodes: []node{drains}}, {after: minute, nodes: []node{lost}, stopped: newest}},
			[]string{"NodeLost node-0: node node-0 is Lost: as it is"}},
		{"nothing is wanted", policy.Notify{}, []at{{nodes: []node{lost}}}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) { assert.DeepEqual(t, told(t, tc.set, tc.moments...), tc.want) })
	}
}

// What a clock that ran ahead wrote holds nothing back once it is put right.
func TestClockThatRanAhead(t *testing.T) {
	ahead := 100_000 * time.Hour
	failed := node{phase: intent.PhaseUpToDate, runs: old, failed: 60 * minute}
	assert.DeepEqual(t, told(t, wanted, at{after: ahead, nodes: []node{idle}}, at{nodes: []node{idle}}, at{after: 120 * minute, nodes: []node{failed}}),
		[]string{"NodeFailed node-0: node node-0 failed on its way to 1.51.0: rolled back"})
	again := lost
	again.id = "2"
	is := "NodeLost node-0: node node-0 is Lost: as it is"
	assert.DeepEqual(t, told(t, wanted, at{after: ahead, nodes: []node{lost}}, at{nodes: []node{again}}), []string{is})
	assert.DeepEqual(t, told(t, wanted, at{after: ahead, nodes: []node{lost}}, at{nodes: []node{again}}, at{after: 60 * minute, nodes: []node{again}}), []string{is, is})
	assert.DeepEqual(t, told(t, wanted, at{after: ahead, nodes: []node{drains}}, at{nodes: []node{drains}}, at{after: 30 * minute, nodes: []node{done}}),
		[]string{"RolloutBegan : the rollout of 1.51.0 began: 1 of 1 nodes are to go to it", "RolloutEnded : the rollout of 1.51.0 ended after 30m: 1 of 1 nodes run it"})
}

// What happens again within an hour is told when that is over, and a pass is asked for then.
func TestWakesForWhatHappensAgain(t *testing.T) {
	again := lost
	again.id = "2"
	s, p := at{nodes: []node{lost}}.values()
	b, _ := notice.Book{}.Next(s, p, &wanted)
	keys, _ := b.Due(s.Now)
	b, _ = b.Try(keys, s.Now)
	s, p = at{after: 10 * minute, nodes: []node{again}}.values()
	b, _ = b.Tried(keys, notice.Sent).Next(s, p, &wanted)
	keys, wake := b.Due(s.Now)
	assert.Equal(t, len(keys), 0)
	assert.DeepEqual(t, wake, begin.Add(60*minute))
	keys, _ = b.Due(wake)
	assert.Equal(t, len(keys), 1)
}

// However many nodes are Lost and go on to fail, and however many versions they make up, there is room to tell of a
// rollout; and those versions leave room for other nodes.
func TestRoom(t *testing.T) {
	broken := slices.Repeat([]node{lost}, 2000)
	with := func(more ...node) []node { return slices.Concat(more, broken) }
	var moments []at
	for i := range time.Duration(60) {
		moments = append(moments, at{after: i * minute, nodes: with(drains)})
	}
	for i := range time.Duration(10) {
		moments = append(moments, at{after: (60 + i) * minute, nodes: with(done)})
	}
	said := told(t, wanted, moments...)
	assert.Assert(t, slices.ContainsFunc(said, func(s string) bool { return strings.HasPrefix(s, "RolloutBegan") }))
	assert.Assert(t, slices.ContainsFunc(said, func(s string) bool { return strings.HasPrefix(s, "RolloutEnded") }))

	b := notice.Book{}
	for i := range 3000 {
		s, p := at{after: time.Duration(i) * time.Second, nodes: []node{drains, {phase: intent.PhaseUpToDate, runs: newest, failed: time.Duration(i) * time.Second}}}.values()
		p.Nodes[0].Target = fmt.Sprintf("9.9.%d", i)
		s.Nodes[1].Marks.Failure = &marker.Failure{Versions: []string{p.Nodes[0].Target}, Count: 1, At: s.Now}
		b, _ = b.Next(s, p, &wanted)
		keys, _ := b.Due(s.Now)
		b, _ = b.Try(keys, s.Now)
		b = b.Tried(keys, notice.Sent)
	}
	assert.Assert(t, len(b.Entries) < 150 && len(b.Rollouts) < 50, "%d, %d", len(b.Entries), len(b.Rollouts))
	s, p := at{after: time.Hour, nodes: []node{done, done, lost}}.values()
	b, _ = b.Next(s, p, &wanted)
	assert.Assert(t, b.Entries["NodeLost/uid-2"].Notice != nil)
}

// A process that knows of no policy forgets nothing, and one whose policy wants no messages forgets everything.
func TestForgotten(t *testing.T) {
	s, p := at{nodes: []node{lost}}.values()
	b, _ := notice.Book{}.Next(s, p, &wanted)
	assert.Equal(t, len(b.Entries), 1)
	s, p = at{nodes: []node{lost}, noPolicy: true}.values()
	kept, _ := b.Next(s, p, &policy.Notify{})
	assert.Equal(t, kept.Encode(), b.Encode())
	s, p = at{nodes: []node{lost}}.values()
	empty, _ := b.Next(s, p, &policy.Notify{})
	assert.Equal(t, empty.Encode(), "")
}

// The Book stays far below what its object has room for, and one message below what Slack takes.
func TestBounded(t *testing.T) {
	a := at{}
	for range 15_000 {
		a.nodes = append(a.nodes, lost)
	}
	s, p := a.values()
	for i := range p.Nodes {
		p.Nodes[i].Message = plan.Text(strings.Repeat(`"<`, 10_000))
	}
	b, _ := notice.Book{}.Next(s, p, &wanted)
	assert.Assert(t, len(b.Encode()) < 600_000, "%d bytes", len(b.Encode()))
	keys, _ := b.Due(s.Now)
	assert.Equal(t, len(keys), notice.MaxTold)
	_, notices := b.Try(keys, s.Now)
	assert.Assert(t, len(notice.MessageOf("prod", notices).Text) < 40_000)
}

// What agents and hosts say is text and no markup for the receiver.
func TestMessage(t *testing.T) {
	m := notice.MessageOf("a&b", []notice.Notice{{Message: "<!channel> & more"}, {Message: "x"}})
	assert.Equal(t, m.Text, "a&amp;b: &lt;!channel&gt; &amp; more\na&amp;b: x")
	assert.Equal(t, notice.MessageOf("", []notice.Notice{{Message: "@channel"}}).Text, "＠channel", "Mattermost and Rocket.Chat would call all")
	assert.Equal(t, notice.MessageOf("", []notice.Notice{{Message: "x"}}).Text, "x")
	for name, word := range hostile.Words() {
		t.Run(name, func(t *testing.T) {
			s, p := at{nodes: []node{lost}}.values()
			p.Nodes[0].Message = plan.Text(word)
			b, _ := notice.Book{}.Next(s, p, &wanted)
			keys, _ := b.Due(s.Now)
			_, notices := b.Try(keys, s.Now)
			assert.NilError(t, hostile.Obeyed(notice.MessageOf("prod", notices).Text))
			notices[0].Message = word
			assert.NilError(t, hostile.Obeyed(notice.MessageOf("prod", notices).Text), "written into update-state")
		})
	}
}

// A message that is refused is tried again with back-off, one without an answer an hour later, and both are dropped
// after a day.
func TestTriedAgain(t *testing.T) {
	for result, want := range map[notice.Result][]time.Duration{
		notice.Refused: {0, 30 * time.Second, 1*minute + 30*time.Second, 3*minute + 30*time.Second},
		notice.Unknown: {0, 60 * minute, 120 * minute, 180 * minute},
	} {
		s, p := at{nodes: []node{lost}}.values()
		b, _ := notice.Book{}.Next(s, p, &wanted)
		var tries []time.Duration
		for now := s.Now; ; {
			keys, wake := b.Due(now)
			if len(keys) > 0 {
				tries = append(tries, now.Sub(begin))
				b, _ = b.Try(keys, now)
				b = b.Tried(keys, result)
				_, wake = b.Due(now)
			}
			s.Now = wake
			dropped := 0
			if b, dropped = b.Next(s, p, &wanted); dropped == 1 {
				assert.Equal(t, wake.Sub(begin) >= 24*time.Hour, true)
				break
			}
			now = wake
		}
		assert.DeepEqual(t, tries[:4], want)
		assert.Assert(t, len(tries) < 40, "%d tries in a day", len(tries))
	}
}

// However processes end, take over and are delayed, and however the receiver fails, a thing reaches it, and not twice
// within an hour; only where it took a message and its process knows nothing of that, an hour passes first.
func TestNotTwiceWithinAnHour(t *testing.T) {
	for seed := range uint64(150) {
		draw := rand.New(rand.NewPCG(seed, 1))
		stands, now := "", begin
		var got []time.Time
		s, p := at{nodes: []node{lost}}.values()
		// Two processes may both believe that they lead; what each read may be old.
		read := [2]string{}
		for range 400 {
			now = now.Add(time.Duration(draw.IntN(600)) * time.Second)
			s.Now = now
			who := draw.IntN(2)
			if draw.IntN(4) > 0 {
				read[who] = stands
			}
			b, _ := notice.Decode(read[who]).Next(s, p, &wanted)
			keys, _ := b.Due(now)
			b, _ = b.Try(keys, now)
			claim := b.Encode()
			if claim == read[who] || stands != read[who] {
				continue
			}
			stands, read[who] = claim, claim
			if len(keys) == 0 || draw.IntN(4) == 0 {
				continue
			}
			result := []notice.Result{notice.Sent, notice.Refused, notice.Unknown}[draw.IntN(3)]
			if result == notice.Sent || result == notice.Unknown && draw.IntN(2) == 0 {
				got = append(got, now)
			}
			if draw.IntN(3) == 0 || stands != claim {
				continue
			}
			stands = b.Tried(keys, result).Encode()
		}
		assert.Assert(t, len(got) > 0, "seed %d: it was never told", seed)
		assert.Assert(t, slices.IsSortedFunc(got, func(a, b time.Time) int { return int(time.Hour - b.Sub(a)) }), "seed %d: told at %v", seed, got)
	}
}
