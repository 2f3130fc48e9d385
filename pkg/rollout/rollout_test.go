package rollout_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/rollout"
)

const (
	v1 = "1.54.0"
	v2 = "1.55.0"
)

var began = time.Date(2026, 11, 24, 10, 0, 0, 0, time.UTC)

// is is a node in a plan: its phase, what it runs, where it goes, and why it waits.
func is(phase intent.Phase, runs, goes string, r plan.Reason) (fleet.Node, plan.Decision) {
	n := fleet.Node{OSVersion: runs}
	n.Marks.Report.Current, n.Marks.Report.Available = runs, goes
	d := plan.Decision{Phase: phase, Reason: r}
	if phase != intent.PhaseWaiting && phase != intent.PhaseUpToDate {
		d.Target = goes
	}
	return n, d
}

// census is that of such nodes.
func census(nodes ...func() (fleet.Node, plan.Decision)) rollout.Census {
	var s fleet.Snapshot
	var p plan.Plan
	for i, node := range nodes {
		n, d := node()
		n.UID = fmt.Sprint(i)
		d.UID = n.UID
		s.Nodes, p.Nodes = append(s.Nodes, n), append(p.Nodes, d)
	}
	return rollout.Count(&s, &p)
}

func waits(goes string, r plan.Reason) func() (fleet.Node, plan.Decision) {
	return func() (fleet.Node, plan.Decision) { return is(intent.PhaseWaiting, v1, goes, r) }
}

func reboots(goes string) func() (fleet.Node, plan.Decision) {
	return func() (fleet.Node, plan.Decision) {
		return is(intent.PhaseRebooting, v1, goes, plan.ReasonRebooting)
	}
}

func done(runs string) func() (fleet.Node, plan.Decision) {
	return func() (fleet.Node, plan.Decision) {
		return is(intent.PhaseUpToDate, runs, "", plan.ReasonUpToDate)
	}
}

// said is a log in short.
func said(l rollout.Log) string {
	var all []string
	for _, r := range l.Rollouts {
		one := fmt.Sprintf("%s most %d", r.Version, r.Most)
		if r.UnderWay() {
			one += " under way"
		}
		for _, reason := range []plan.Reason{plan.ReasonUnavailableLimit, plan.ReasonWindowClosed} {
			if r.Waits[reason] > 0 {
				one += fmt.Sprintf(" %s %d", reason, r.Waits[reason])
			}
		}
		if r.Unseen > 0 {
			one += fmt.Sprintf(" unseen %d", r.Unseen)
		}
		all = append(all, one)
	}
	return strings.Join(all, "; ")
}

// A rollout begins with the first node on its way, and ends when none is and none goes by itself. What nodes wait for
// meanwhile is added up, and is written down as it begins, every ten minutes, and as it ends.
func TestLog(t *testing.T) {
	limited, closed := plan.ReasonUnavailableLimit, plan.ReasonWindowClosed
	var l rollout.Log
	for _, step := range []struct {
		after  time.Duration
		census rollout.Census
		want   string
		due    bool
	}{
		{0, census(waits(v2, closed), done(v1)), "", false},
		{time.Minute, census(reboots(v2), waits(v2, limited), waits(v2, limited)), v2 + " most 3 under way", true},
		{2 * time.Minute, census(reboots(v2), waits(v2, limited), waits(v2, limited)), v2 + " most 3 under way UnavailableLimit 120", false},
		{10 * time.Minute, census(done(v2), waits(v2, limited), waits(v2, closed)), v2 + " most 3 under way UnavailableLimit 1080", false},
		{12 * time.Minute, census(done(v2), reboots(v2), waits(v2, plan.ReasonPaused)), v2 + " most 3 under way UnavailableLimit 1200 WindowClosed 120", true},
		{13 * time.Minute, census(done(v2), done(v2), waits(v2, plan.ReasonPaused)), v2 + " most 3 UnavailableLimit 1200 WindowClosed 120", true},
		{20 * time.Hour, census(done(v2), done(v2), waits(v2, limited)), v2 + " most 3 UnavailableLimit 1200 WindowClosed 120", false},
		{21 * time.Hour, census(done(v2), done(v2), reboots(v2)), v2 + " most 3 under way UnavailableLimit 1200 WindowClosed 120", true},
		{22 * time.Hour, census(done(v2), done(v2), done(v2)), v2 + " most 3 UnavailableLimit 1200 WindowClosed 120", true},
		{50 * time.Hour, census(reboots(v2)), v2 + " most 3 UnavailableLimit 1200 WindowClosed 120; " + v2 + " most 1 under way", true},
	} {
		l = l.Next(&step.census, began.Add(step.after))
		assert.Equal(t, said(l), step.want, "after %s", step.after)
		assert.Equal(t, l.Due(), step.due, "after %s", step.after)
		if l.Due() {
			l = l.Written()
		}
	}
}

// Another process goes on with what was written, and says for how long it did not see what nodes waited for. What can't
// be read is no account.
func TestLogOutlivesProcesses(t *testing.T) {
	c := census(reboots(v2), waits(v2, plan.ReasonUnavailableLimit))
	l := rollout.Log{}.Next(&c, began)
	next := rollout.Decode(l.Encode()).Next(&c, began.Add(5*time.Minute)).Next(&c, began.Add(6*time.Minute))
	assert.Equal(t, said(next), v2+" most 2 under way UnavailableLimit 60 unseen 300")
	for _, broken := range []string{"", "[", `{"rollouts":[{"began":1}]}`} {
		assert.Equal(t, said(rollout.Decode(broken)), "")
	}
	// A clock that was put back makes no time.
	back := l.Next(&c, began.Add(-time.Hour))
	assert.Equal(t, said(back), v2+" most 2 under way")
}

// The log is bounded, and versions that roll out again and again don't push out those of others.
func TestLogForgets(t *testing.T) {
	var l rollout.Log
	now := began
	roll := func(version string) {
		for _, c := range []rollout.Census{census(reboots(version)), census(done(version))} {
			now = now.Add(25 * time.Hour)
			l = l.Next(&c, now)
		}
	}
	roll("1.50.0")
	for range 60 {
		roll(v2)
	}
	assert.Equal(t, len(l.Rollouts), 20)
	assert.Equal(t, l.Rollouts[0].Version, "1.50.0")
	assert.Equal(t, len(rollout.Decode(l.Encode()).Rollouts), 20)
}

func attempt(version string, o marker.Outcome, at time.Duration, out, pods int) marker.Attempt {
	return marker.Attempt{Version: version, Outcome: o, Reason: "RolledBack", Started: began.Add(at), Ended: began.Add(at + 10*time.Minute), Out: out, Pods: pods}
}

// A report is made of what the nodes remember of this rollout and of no other, and says what they have forgotten.
func TestReport(t *testing.T) {
	r := plan.Rollout{Version: v2, Began: began, Ended: began.Add(2 * time.Hour), Most: 6, Unseen: 60}
	node := func(name, runs, goes string, phase intent.Phase, h ...marker.Attempt) rollout.Seen {
		return rollout.Seen{Decision: plan.Decision{Node: name, Phase: phase, Target: goes, Reason: plan.ReasonWindowClosed, Message: plan.Messagef("x")}, Runs: runs, History: h}
	}
	cycle := attempt(v2, marker.OutcomeCycled, time.Hour, 50, 9)
	cycle.Cycle = "x"
	out := rollout.Of(r, []rollout.Seen{
		node("a", v2, "", intent.PhaseUpToDate, attempt(v1, marker.OutcomeUpdated, time.Minute, 7, 7), attempt(v2, marker.OutcomeFailed, 5*time.Minute, 60, 3), attempt(v2, marker.OutcomeUpdated, 40*time.Minute, 90, 2), cycle),
		node("b", v2, "", intent.PhaseUpToDate, attempt(v2, marker.OutcomeUpdated, 0, 100, 4)),
		node("c", v2, "", intent.PhaseUpToDate, attempt(v2, marker.OutcomeUpdated, -time.Hour, 30, 1)),
		node("d", v1, v2, intent.PhaseRebooting),
		node("e", v1, v2, intent.PhaseWaiting, attempt(v2, marker.OutcomeFailed, 20*time.Minute, 20, 0)),
		node("f", v1, "", intent.PhaseUpToDate),
		node("g", v1, "1.60.0", intent.PhaseWaiting, attempt(v2, marker.OutcomeAbandoned, 30*time.Minute, 0, 0)),
		func() rollout.Seen {
			n := node("h", v1, v2, intent.PhaseWaiting)
			n.Unreadable = true
			for i := range marker.HistoryLength {
				n.History = append(n.History, attempt(v1, marker.OutcomeFailed, time.Duration(i)*time.Minute, 1, 1))
			}
			return n
		}(),
	}, began.Add(50*time.Hour))
	var lines []string
	for _, n := range out.Nodes {
		lines = append(lines, fmt.Sprintf("%s %s %s %d %s %d", n.Node, n.Outcome, n.Reason, n.Attempts, n.OutOfService, n.Pods))
	}
	assert.DeepEqual(t, lines, []string{"b updated  1 1m40s 4", "a updated  2 2m30s 5", "e failed WindowClosed 1 20s 0", "g waiting WindowClosed 1 0s 0",
		"c before  0 0s 0", "d underWay WindowClosed 0 0s 0", "h waiting WindowClosed 0 0s 0"})
	assert.Equal(t, out.Took.String(), "2h")
	assert.Equal(t, fmt.Sprint(out.OutOfService, out.Pods), "4m30s 9")
	assert.DeepEqual(t, out.Outcomes, map[rollout.Outcome]int{rollout.Updated: 2, rollout.Before: 1, rollout.UnderWay: 1, rollout.Failed: 1, rollout.Waiting: 2})
	assert.DeepEqual(t, out.Failures, []rollout.Failure{{Node: "a", At: began.Add(15 * time.Minute), Reason: "RolledBack"}, {Node: "e", At: began.Add(30 * time.Minute), Reason: "RolledBack"}})
	assert.DeepEqual(t, out.Forgotten, []string{
		"1 nodes have had more attempts than the 5 that a node remembers: earlier ones are not counted",
		"what 1 nodes remember can't be read",
		"what nodes waited for was not seen for 1m, when no controller led or a new one took over",
	})
	r.Ended, r.Most = time.Time{}, 9
	out = rollout.Of(r, nil, began.Add(time.Hour))
	assert.Equal(t, out.Took.String(), "1h")
	assert.Equal(t, out.Forgotten[0], "9 nodes were to go to it, and 9 of them are gone or in no care any more")
}
