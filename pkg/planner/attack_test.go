package planner_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// says is what a stolen agent's token reports of the version that runs.
func says(v string) change { return func(n *fleet.Node) { n.Marks.Report.Current = v } }

// A canary whose agent alone says that it runs the version lets no other node go to it, and one whose agent denies it
// holds no other up (S6).
func TestAttackCanary(t *testing.T) {
	for name, tc := range map[string]struct {
		canary change
		want   string
	}{
		"says that it has the version":   {says(v2), "Staged wait AfterGroup"},
		"says that it has a later one":   {says(v3), "Staged wait AfterGroup"},
		"denies that it has the version": {func(n *fleet.Node) { runs(v2)(n); says(v1)(n) }, "Staged Cordon Cordoned"},
		"says nothing":                   {func(n *fleet.Node) { runs(v2)(n); says("")(n) }, "Staged Cordon Cordoned"},
	} {
		t.Run(name, func(t *testing.T) {
			set := policy.DefaultSettings()
			groups(&set)
			out := planner.Plan(fleetOf([]fleet.Node{node("a", stageOf("canary"), tc.canary), node("b", prepared, stageOf("production"))}), set)
			got, _ := find(t, out, "b")
			assert.Equal(t, verdict(got), tc.want, got.Message)
		})
	}
}

// An agent that says it runs an old version doesn't go before the others (L3).
func TestAttackOrder(t *testing.T) {
	out := planner.Plan(fleetOf([]fleet.Node{node("a", prepared), node("b", prepared, says("0.0.1"))}), policy.DefaultSettings())
	got, _ := find(t, out, "a")
	assert.Equal(t, verdict(got), "Staged Cordon Cordoned")
}

// An agent that says it runs what its kubelet doesn't is not called up to date, and nothing starts on its word (S9).
func TestAttackVersion(t *testing.T) {
	for _, at := range []change{says(v2), func(n *fleet.Node) { offered(v3)(n); says(v2)(n) }} {
		got, _ := find(t, planner.Plan(fleetOf([]fleet.Node{node("a", at)}), policy.DefaultSettings()), "a")
		assert.Equal(t, verdict(got), "Waiting wait BootUnconfirmed", got.Message)
	}
}

// A version's age begins when a second node names it: one agent begins none, however many it makes up, and of what it
// makes up nothing is kept (S6).
func TestAttackAges(t *testing.T) {
	set := policy.DefaultSettings()
	set.Versions.MinAge = time.Hour
	plan := func(nodes ...fleet.Node) plan.Plan {
		s := fleetOf(nodes)
		s.FirstSeen = map[string]time.Time{v1: now.Add(-24 * time.Hour)}
		return planner.Plan(s, set)
	}
	for i := range 100 {
		out := plan(node("a", offered(fmt.Sprintf("2.0.%d", i))), node("b"), node("c"))
		assert.Equal(t, len(out.Saw), 0, "%v", out.Saw)
		got, _ := find(t, out, "a")
		assert.Equal(t, verdict(got), "Waiting wait VersionTooNew")
		assert.Assert(t, out.Wake.IsZero(), "nothing is to come by the clock alone")
	}
	// That it runs the version as well makes no second witness of one, nor does its kubelet.
	assert.Equal(t, len(plan(node("a", offered(v2), says(v2)), node("b"), node("c")).Saw), 0)
	assert.Equal(t, len(plan(node("a", offered(v2), runs(v2)), node("b"), node("c")).Saw), 0)

	out := plan(node("a", offered(v2)), node("b", offered(v2)), node("c", offered("9.9.9")))
	assert.DeepEqual(t, out.Saw, []string{v2})
	assert.DeepEqual(t, out.Named, []string{v1, v2, "9.9.9"})
	// A kubelet's word counts too.
	assert.DeepEqual(t, plan(node("a", offered(v2)), node("b", runs(v2))).Saw, []string{v2})
	// L1: the last node that could go to a version, or the only one, is no liar but the one that it concerns.
	assert.DeepEqual(t, plan(node("a", offered(v2)), node("b", runs(v3)), node("c", runs(v3))).Saw, []string{v2, v3})
	assert.DeepEqual(t, plan(node("a", offered(v2))).Saw, []string{v2})
	assert.DeepEqual(t, plan(node("a", runs(v2)), node("b")).Saw, []string{v2})
	// Nodes of plans never go to a version of Bottlerocket.
	assert.DeepEqual(t, plan(node("a", offered(v2)), node("b", planned), node("c", planned)).Saw, []string{v2})
	set.Versions.Downgrade = true
	assert.DeepEqual(t, plan(node("a", runs(v2)), node("b")).Saw, []string{v2})
}

// An agent that calls an update failed which its kubelet shows well takes nothing from the version (S10).
func TestAttackBlame(t *testing.T) {
	failed := node("a", back(v2), answers(marker.StateError, "it broke"))
	step := stepOf(t, failed, intent.ActReturn)
	assert.Equal(t, step.Reason, plan.ReasonHostError)
	assert.Assert(t, step.Change.Marks.Failure.Count == 1 && len(step.Change.Marks.Failure.Broken) == 0)

	set := policy.DefaultSettings()
	set.MaxFailed, set.MaxLost = policy.Count(3), policy.Unlimited
	set.MaxUnavailable = policy.Unlimited
	long := func(n *fleet.Node) { n.Marks.Intent.Time = now.Add(-24 * time.Hour) }
	silent := func(n *fleet.Node) { n.Marks.Report = marker.Report{} }
	soaked := func(n *fleet.Node) { verifying(20 * time.Hour)(n) }
	for name, tc := range map[string]struct {
		node []change
		want string
	}{
		"on its way back":      {[]change{back(v2), says("0.0.1"), long}, "Staged Cordon Cordoned"},
		"before it answered":   {[]change{busy, back(v2), silent, long}, "Staged Cordon Cordoned"},
		"with another boot":    {[]change{back(v2), long, func(n *fleet.Node) { n.Marks.Report.BootID = "b9" }}, "Staged Cordon Cordoned"},
		"once it had soaked":   {[]change{soaked, says("0.0.1"), long}, "Staged Cordon Cordoned"},
		"and its kubelet, too": {[]change{back(v2), says("0.0.1"), notReady, long}, "Staged wait VersionStopped"},
		"and it fell back":     {[]change{back(v2), runs(v1), long}, "Staged wait VersionStopped"},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := []fleet.Node{node("y"), node("z", prepared)}
			for _, name := range []string{"a", "b", "c"} {
				nodes = append(nodes, node(name, tc.node...))
			}
			out := planner.Plan(fleetOf(nodes, "a", "b", "c"), set)
			got, _ := find(t, out, "z")
			assert.Equal(t, verdict(got), tc.want, out)
			assert.Equal(t, len(out.Stopped) > 0, tc.want != "Staged Cordon Cordoned")
		})
	}
}

// thief answers whatever leads its node on fastest. It returns what it has done, or false for nothing.
type thief struct {
	n       *fleet.Node
	version int
	// made is the version that it makes up next time, or always the same one.
	made func(i int) string
	// spoils what was achieved: once staged, or once drained.
	spoils func(n *fleet.Node) bool
}

func (a *thief) acts() bool {
	m := &a.n.Marks
	r := &m.Report
	switch phase := a.n.Phase(); {
	case phase == intent.PhaseWaiting && r.Answer(m.Intent.ID) == marker.StateReady && r.Available == "":
		a.version++
		r.Available, r.Current = a.made(a.version), a.n.OSVersion
	case a.spoils(a.n):
	case r.Answer(m.Intent.ID) == marker.StateReady:
		return false
	case phase == intent.PhaseRebooting:
		// It has no host to reboot: that would end it.
		return false
	default:
		r.ActiveID, r.State, r.Message = m.Intent.ID, marker.StateReady, ""
	}
	return true
}

// writtenAndRead are marks after they stood on a Node.
func writtenAndRead(t *testing.T, m marker.Marks, r marker.Report) marker.Marks {
	t.Helper()
	annotations := map[string]string{}
	for _, encoded := range []map[marker.Key]string{marker.Encode(m), marker.EncodeReport(r)} {
		for k, v := range encoded {
			annotations[string(k)] = v
		}
	}
	read, problems := marker.Decode(annotations)
	assert.Equal(t, len(problems), 0, "%v", problems)
	return read
}

// withdraws has the offer gone for a moment.
func withdraws(in intent.Phase) func(n *fleet.Node) bool {
	return func(n *fleet.Node) bool {
		if n.Phase() != in || n.Marks.Report.Available == "" {
			return false
		}
		n.Marks.Report.Available = ""
		return true
	}
}

// A thief of one agent's token has its node cordoned, staged and uncordoned a few times in an hour and fewer in a day,
// whatever it says (report: 68 cordons a minute by an offer that comes and goes, 173 attempts by made-up versions).
func TestAttackChurn(t *testing.T) {
	same := func(int) string { return v2 }
	newer := func(i int) string { return fmt.Sprintf("2.%d.0", i) }
	longer := func(i int) string {
		v := newer(i)
		return v + "-" + strings.Repeat("a", 127-len(v))
	}
	fails := func(n *fleet.Node) bool {
		m := &n.Marks
		if n.Phase() != intent.PhaseStaging || m.Report.Answer(m.Intent.ID) == marker.StateError {
			return false
		}
		m.Report.ActiveID, m.Report.State, m.Report.Message = m.Intent.ID, marker.StateError, "no"
		return true
	}
	for name, tc := range map[string]struct {
		made   func(int) string
		spoils func(*fleet.Node) bool
	}{
		"an offer that comes and goes in the drain": {same, withdraws(intent.PhaseDraining)},
		"and another one each time":                 {newer, withdraws(intent.PhaseDraining)},
		"and the longest names that may be":         {longer, withdraws(intent.PhaseDraining)},
		"an offer that comes and goes once staged":  {same, withdraws(intent.PhaseStaged)},
		"and while it is staged":                    {newer, withdraws(intent.PhaseStaging)},
		"a newer version after each failure": {newer, func(n *fleet.Node) bool {
			if n.Phase() == intent.PhaseWaiting && n.Marks.Failure != nil && slices.Contains(n.Marks.Failure.Versions, n.Marks.Report.Available) {
				n.Marks.Report.Available = ""
				return true
			}
			return fails(n)
		}},
		"it says that it runs the version, and then that it doesn't": {same, func(n *fleet.Node) bool {
			r := &n.Marks.Report
			switch {
			case n.Phase() == intent.PhaseStaged && r.Current != v2:
				r.Current = v2
			case n.Phase() == intent.PhaseWaiting && r.Current == v2:
				r.Current = v1
			default:
				return false
			}
			return true
		}},
		"it says in the drain that it runs a later one": {same, func(n *fleet.Node) bool {
			r := &n.Marks.Report
			switch {
			case n.Phase() == intent.PhaseDraining && r.Current != v3:
				r.Current = v3
			case n.Phase() == intent.PhaseStaged && r.Current == v3:
				r.Current = v1
			default:
				return false
			}
			return true
		}},
	} {
		t.Run(name, func(t *testing.T) {
			set := policy.DefaultSettings()
			s := fleetOf([]fleet.Node{node("a"), node("b")})
			a := thief{n: &s.Nodes[0], made: tc.made, spoils: tc.spoils}
			begun := map[intent.Act][]time.Time{}
			for s.Now.Before(now.Add(48 * time.Hour)) {
				// Its pods never go, and nothing is in the way of its cordon.
				a.n.Drain, a.n.Forecast = nil, &fleet.Forecast{At: s.Now}
				if d := a.n.Marks.Disruption; d != nil {
					a.n.Drain = &fleet.Drain{Remaining: 1, Next: s.Now.Add(time.Second)}
				}
				out := planner.Plan(s, set)
				_, step := find(t, out, "a")
				if step == nil || step.Change == nil {
					if !a.acts() {
						s.Now = s.Now.Add(time.Minute)
					}
					continue
				}
				begun[step.Act] = append(begun[step.Act], s.Now)
				a.n.ResourceVersion = fmt.Sprint(len(begun[step.Act]), step.Act)
				// As they are read back from the Node.
				report := a.n.Marks.Report
				a.n.Marks = writtenAndRead(t, step.Change.Marks, report)
				if u := step.Change.Unschedulable; u != nil {
					a.n.Unschedulable = *u
				}
				if step.TakesSlot {
					s.Slots[a.n.UID] = a.n.Name
				}
				if step.FreesSlot {
					delete(s.Slots, a.n.UID)
				}
				a.acts()
				s.Now = s.Now.Add(time.Second)
			}
			assert.Assert(t, len(begun[intent.ActStage])+len(begun[intent.ActCordon]) > 3, "%v", begun)
			for _, act := range []intent.Act{intent.ActStage, intent.ActCordon} {
				within := func(d time.Duration, most int) {
					for i, at := range begun[act] {
						if i >= most {
							assert.Assert(t, at.Sub(begun[act][i-most]) >= d, "%s %d times within %s", act, most+1, d)
						}
					}
				}
				// What begins is bounded by what ended before: 3 in an hour, 5 in a day.
				within(time.Hour, 3)
				within(24*time.Hour, 5)
			}
		})
	}
}

// An agent that is asked to confirm what it has staged, and lets that be asked again and again without an answer that
// leads on, keeps others from no place for longer than an agent needs (L3).
func TestAttackConfirm(t *testing.T) {
	s := fleetOf([]fleet.Node{node("a", prepared, issued(time.Hour)), node("b", prepared), node("c", controller, prepared)})
	a, asked, waited := &s.Nodes[0], 0, 0
	for s.Now.Before(now.Add(6 * time.Hour)) {
		for i := range s.Nodes {
			s.Nodes[i].Forecast = &fleet.Forecast{At: s.Now}
			if i > 0 {
				s.Nodes[i].Marks.Intent.Time = s.Now
			}
		}
		if m := &a.Marks; m.Intent.Action == marker.ActionConfirmUpdate {
			switch age := s.Now.Sub(m.Intent.Time); {
			case age > 30*time.Minute:
				m.Report.BootID = a.BootID
			case age > 29*time.Minute:
				// Staged, and nothing to be done with it.
				m.Report.ActiveID, m.Report.State, m.Report.BootID = m.Intent.ID, marker.StateReady, "b9"
			}
		}
		out := planner.Plan(s, policy.DefaultSettings())
		if _, step := find(t, out, "a"); step != nil && step.Act == intent.ActConfirm {
			asked++
			a.ResourceVersion = fmt.Sprint(asked)
			a.Marks = step.Change.Marks
		}
		if got, _ := find(t, out, "b"); got.Act != intent.ActCordon {
			waited++
		}
		s.Now = s.Now.Add(time.Second)
	}
	assert.Assert(t, asked == 1 && waited <= 2*60, "asked %d times, and the other waited for %d s", asked, waited)
}

// The user's wish ends the wait at once, and what is remembered stays to be read.
func TestRetryEndsTheWaitAfterAttempts(t *testing.T) {
	given := func(n *fleet.Node) {
		for i := range 3 {
			n.Marks.History = append(n.Marks.History, marker.Attempt{Version: v2, Outcome: marker.OutcomeAbandoned, Reason: "OfferWithdrawn",
				Started: now.Add(-time.Hour), Ended: now.Add(time.Duration(i-10) * time.Minute)})
		}
	}
	for _, at := range []change{offered(v2), prepared} {
		got, _ := find(t, planner.Plan(fleetOf([]fleet.Node{node("a", at, given), node("b")}), policy.DefaultSettings()), "a")
		assert.Equal(t, got.Reason, plan.ReasonBackingOff, got.Message)
		assert.Equal(t, got.NotBefore, now.Add(50*time.Minute))
	}
	// A success in between is none of them, and is not named for one.
	got, _ := find(t, planner.Plan(fleetOf([]fleet.Node{node("a", offered(v3), given, func(n *fleet.Node) {
		n.Marks.History = append(n.Marks.History, marker.Attempt{Version: v2, Outcome: marker.OutcomeUpdated, Reason: "Updated", Ended: now.Add(-time.Minute)})
	}), node("b")}), policy.DefaultSettings()), "a")
	assert.Assert(t, got.Reason == plan.ReasonBackingOff && strings.Contains(got.Message.String(), "the last by OfferWithdrawn"), got.Message)
	n := node("a", offered(v2), given, func(n *fleet.Node) { n.Marks.Retry = true })
	n.Marks = stepOf(t, n, intent.ActRetry).Change.Marks
	n.Marks.Retry = false
	assert.Equal(t, len(n.Marks.History), 3)
	stepOf(t, n, intent.ActStage)
}

// A node that was taken out of service a short while ago comes after the others, also if its kubelet took away what was
// remembered on it (L3).
func TestAttackTurns(t *testing.T) {
	again := node("a", prepared, func(n *fleet.Node) { n.TakenOut = now.Add(-time.Minute) })
	got, _ := find(t, planner.Plan(fleetOf([]fleet.Node{again, node("b", prepared)}), policy.DefaultSettings()), "b")
	assert.Equal(t, verdict(got), "Staged Cordon Cordoned")
	again.TakenOut = now.Add(-48 * time.Hour)
	got, _ = find(t, planner.Plan(fleetOf([]fleet.Node{again, node("b", prepared)}), policy.DefaultSettings()), "a")
	assert.Equal(t, verdict(got), "Staged Cordon Cordoned")
}

// As many pods as the policy lets are evicted from a node within an hour, and then none; what becomes of the others is
// looked at all the same.
func TestAttackEvictions(t *testing.T) {
	set := policy.DefaultSettings()
	set.Eviction.PerHour = 10
	plan := func(evicted int) (plan.Decision, *plan.Step) {
		n := node("a", draining, drain(fleet.Drain{Remaining: 7}), func(n *fleet.Node) { n.Evicted, n.EvictedUntil = evicted, now.Add(20*time.Minute) })
		return find(t, planner.Plan(fleetOf([]fleet.Node{n, node("b")}, "a"), set), "a")
	}
	for evicted, most := range map[int]int{0: 10, 9: 1} {
		got, step := plan(evicted)
		assert.Equal(t, verdict(got), "Draining Drain Draining")
		assert.Equal(t, step.Most, most)
	}
	for _, evicted := range []int{10, 12} {
		got, step := plan(evicted)
		assert.Equal(t, verdict(got), "Draining Drain EvictionLimit")
		assert.Equal(t, step.Most, 0)
	}
}
