package planner_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/window"
)

// choices makes a fleet and a policy of the fuzzer's bytes; when they are used up, all is as simple as can be.
type choices struct{ bytes []byte }

// of draws a number below n.
func (c *choices) of(n int) int {
	if len(c.bytes) == 0 {
		return 0
	}
	b := c.bytes[0]
	c.bytes = c.bytes[1:]
	return int(b) % n
}

func (c *choices) limit() policy.Limit {
	return []policy.Limit{policy.Count(1), policy.Count(2), policy.Count(0), policy.Percent(10), policy.Percent(60), policy.Unlimited, policy.Count(4)}[c.of(7)]
}

func (c *choices) node(i int) fleet.Node {
	situations := []change{
		func(*fleet.Node) {}, offered(v2), offered(v3), preparing, prepared, draining, rebooting, busy, back(v2), back(v1), verifying(time.Second),
		verifying(time.Hour), resetting, lost, func(n *fleet.Node) { n.Marks = marker.Marks{} },
		func(n *fleet.Node) { prepared(n); n.Marks.Report.Available, n.Marks.Intent.Target = v3, v3 },
	}
	twists := []change{
		func(*fleet.Node) {}, cordoned, schedulable, paused, notReady, agentAway, firstLook, unlabelled, failedOnce(time.Hour, v2), failedOnce(-time.Hour, v2),
		updated(time.Minute, time.Minute), awaySince(30 * time.Minute), awaySince(3 * time.Hour), issued(10 * time.Hour), answers(marker.StateError, "e"),
		answers(marker.StateBusy, ""), unanswered, func(n *fleet.Node) { n.Leaving = "the cluster autoscaler" }, func(n *fleet.Node) { n.Marks.Retry = true },
		func(n *fleet.Node) { n.Problems = []marker.Problem{{}} }, func(n *fleet.Node) { n.Interface = "9" },
		func(n *fleet.Node) { n.Marks.Report.Current, n.OSVersion = "1.0.5", "1.0.5" },
		forecast(nil), found(time.Minute, fleet.ObstacleNone, 0), found(time.Second, fleet.ObstacleBudget, time.Minute), found(time.Minute, fleet.ObstacleAwaited, -time.Second),
		drain(fleet.Drain{}), drain(fleet.Drain{Remaining: 1}), drain(fleet.Drain{Remaining: 1, Unevictable: "x"}), drain(fleet.Drain{Remaining: 1, Awaited: "x", Forced: true}),
		disrupted(marked), disrupted(asked("after-drain.", time.Minute)), disrupted(asked("after-drain.", time.Hour)), disrupted(asked("before-uncordon.", time.Minute)),
		disrupted(asked("before-uncordon.", time.Hour)), hooksAnswered(healthy, quorum, released), unlooked, disrupted(noted),
		looked(fleet.Checked{For: fleet.CheckBaseline, Workloads: map[string]int{"Deployment/a/b": 1}}), looked(fleet.Checked{For: fleet.CheckVolumes, Problem: "v"}),
		looked(fleet.Checked{For: fleet.CheckVolumes, Failed: "f"}), looked(fleet.Checked{For: fleet.CheckPods, Problem: "p"}), looked(fleet.Checked{For: fleet.CheckPods}),
		looked(fleet.Checked{For: fleet.CheckWorkloads, Problem: "w"}), looked(fleet.Checked{For: fleet.CheckWorkloads}),
		disrupted(lateSince(time.Minute)), disrupted(lateSince(time.Hour)), disrupted(emptySince(time.Minute)), disrupted(emptySince(time.Hour)),
		looked(fleet.Checked{For: fleet.CheckBaseline, Failed: "f"}),
		stand(balancers, "mine"), stand(scaleDown, "mine"), stand(disrupt, "true"),
	}
	n := node(fmt.Sprintf("n%02d", i), situations[c.of(len(situations))], stageOf([]string{"canary", "production", "else"}[c.of(3)]), zone([]string{"x", "y", "z"}[c.of(3)]))
	if n.Marks.Disruption != nil && n.Marks.Disruption.Soak == nil {
		n.Unschedulable = true
	}
	for range c.of(3) {
		twists[c.of(len(twists))](&n)
	}
	return n
}

// disrupted is a change of nodes that are disrupted alone.
func disrupted(f change) change {
	return func(n *fleet.Node) {
		if n.Disrupted() {
			f(n)
		}
	}
}

func (c *choices) settings() policy.Settings {
	s := policy.DefaultSettings()
	s.MaxUnavailable, s.MaxLost, s.MaxFailed = c.limit(), c.limit(), []policy.Limit{policy.Count(3), policy.Count(1), policy.Percent(20), policy.Unlimited}[c.of(4)]
	s.CountUnavailable = c.of(4) != 1
	s.MaxStaging = []int{10, 1, 3}[c.of(3)]
	if c.of(3) == 1 {
		s.Topology = []policy.Topology{{Key: zoneKey, MaxUnavailable: c.limit(), MaxDomains: c.of(3)}}
	}
	switch c.of(7) {
	case 5:
		withHooks(&s)
		withPods(&s)
	case 1:
		withHooks(&s)
	case 2:
		withPods(&s)
	case 3:
		s.Balancers.Wait, s.Volumes.OnTimeout = time.Minute, policy.Abort
	case 4:
		s.Balancers.Exclude, s.Protect, s.Volumes.Wait, s.Verify.OnWorkloads = false, false, 0, policy.IgnoreWorkloads
	}
	calendars := []window.Calendar{{}, {Freezes: []window.Freeze{{From: now.Add(-time.Hour), To: now.Add(time.Hour)}}}}
	if c.of(4) == 1 {
		groups(&s, func(canary, production *policy.Group) {
			canary.MaxUnavailable, production.MaxUnavailable = c.limit(), c.limit()
			production.AfterSoak = time.Duration(c.of(3)) * time.Hour
			production.Calendar = calendars[c.of(2)]
			production.Topology = []policy.Topology{{Key: zoneKey, MaxUnavailable: c.limit()}}
			if c.of(4) == 1 {
				canary.Pause = &policy.Pause{Reason: "p", InFlight: policy.Return}
			}
		})
	}
	switch c.of(8) {
	case 1:
		s.Versions.Deny = exactly(v2)
	case 2:
		s.Versions.Hold = v2
	case 3:
		s.Versions.MinAge = time.Hour
	case 4:
		s.Pause = &policy.Pause{Reason: "p", InFlight: []policy.Ending{policy.Finish, policy.Return}[c.of(2)]}
	case 5:
		s.Calendar = calendars[c.of(2)]
	case 6:
		s.Eviction.Predict = false
	case 7:
		s.Eviction.Force = true
	}
	for i := range s.Groups {
		s.Groups[i].Versions = s.Versions
	}
	if c.of(4) == 1 {
		s.Alerts.URL = "http://prometheus"
	}
	if c.of(2) == 1 {
		s.SingleNode = policy.SingleNodeAllow
	}
	return s
}

func (c *choices) fleet() fleet.Snapshot {
	var all []fleet.Node
	for i := range 1 + c.of(12) {
		all = append(all, c.node(i))
	}
	s := fleetOf(all)
	for i := range all {
		if all[i].Disrupted() && c.of(8) != 1 || c.of(12) == 1 {
			s.Slots[all[i].UID] = all[i].Name
		}
	}
	switch c.of(16) {
	case 1:
		s.Slots["uid-gone"] = "gone"
	case 2:
		s.SlotsProblem = "broken"
	case 3:
		s.NoPolicy, s.PolicyProblem = true, "broken"
	}
	s.FirstSeen = map[string]time.Time{v1: now.Add(-time.Hour), v2: now.Add(-30 * time.Minute)}
	switch c.of(4) {
	case 1:
		s.Alerts = &fleet.Alerts{At: now, URL: "http://prometheus"}
	case 2:
		s.Alerts = &fleet.Alerts{At: now, URL: "http://prometheus", Active: []fleet.Alert{{Name: "NodeDown"}}}
	}
	return s
}

// FuzzPlan holds what is true of every plan (S1, S8, S9, L1, L2).
func FuzzPlan(f *testing.F) {
	for seed := range uint64(64) {
		f.Add(corpus(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &choices{data}
		set := c.settings()
		s := c.fleet()
		c.plans(&s, &set)
		c.cycles(&s)
		assert.NilError(t, set.Validate())
		out := planner.Plan(s, set)

		everyNode(t, s, out)
		marksForOthers(t, s, out)
		withinBudgets(t, s, set, out)
		drainedOrAlone(t, s, set, out)
		inAnyOrder(t, s, set, out, c.of(len(s.Nodes)))
		largerIsNoFewer(t, s, set, out)
		onlyItsOwn(t, s, set, out, c)
		converges(t, s, set)
	})
}

// cycles has users ask for some nodes, some of which are on their way for it.
func (c *choices) cycles(s *fleet.Snapshot) {
	if c.of(3) != 1 {
		return
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if c.of(2) == 1 {
			n.Marks.Cycle = []string{"x", "y"}[c.of(2)]
		}
		if c.of(2) == 1 && n.Marks.Intent.Target != "" && n.Marks.Plan == nil {
			n.Marks.Intent.Target, n.Marks.Report.Available = n.Marks.Report.Current, ""
			if n.Disrupted() {
				d := *n.Marks.Disruption
				n.Marks.Disruption, d.Cycle = &d, "x"
			}
		}
	}
}

// plans makes nodes of plans of some, which are as far on their way as they were.
func (c *choices) plans(s *fleet.Snapshot, set *policy.Settings) {
	if c.of(3) != 1 {
		return
	}
	up := k3s([]string{k2, k3, k1}[c.of(3)])
	up.Effect = []marker.Effect{marker.EffectRestart, marker.EffectReboot}[c.of(2)]
	up.Drain = []marker.PlanDrain{marker.DrainAll, marker.DrainCordon}[c.of(2)]
	set.Plans = [][]policy.Plan{{up, files}, {files}, {up}, nil}[c.of(4)]
	if s.PlanTargets = targets(); c.of(6) == 1 {
		delete(s.PlanTargets, "k3s")
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Interface != fleet.InterfaceUpdateAPI || c.of(3) == 1 {
			continue
		}
		n.Interface, n.Info = fleet.InterfacePlan, &fleet.NodeInfo{Kubelet: []string{k1, k2, k3, "?"}[c.of(4)]}
		if n.Marks.Intent.Target == "" && n.Marks.Disruption == nil {
			continue
		}
		p := []policy.Plan{up, files}[c.of(2)]
		n.Marks.Plan = &marker.Plan{Name: p.Name, Digest: []string{digest, digest2}[c.of(2)], Proof: p.Proof, Effect: p.Effect, Drain: p.Drain, Apply: p.Apply, Deadline: p.Deadline.String()}
		if n.Marks.Intent.Target != "" {
			n.Marks.Intent.Target = n.Marks.Plan.Version([]string{k2, k3}[c.of(2)])
		}
		n.Marks.Report.Current = n.Marks.Plan.Version([]string{k1, k2, k3}[c.of(3)])
	}
}

// onlyItsOwn has one agent say something else: no other node goes that waited for a group or for a version's age.
func onlyItsOwn(t *testing.T, s fleet.Snapshot, set policy.Settings, out plan.Plan, c *choices) {
	at := c.of(len(s.Nodes))
	s.Nodes = slices.Clone(s.Nodes)
	r := &s.Nodes[at].Marks.Report
	versions := []string{v3, v2, v1, "", "9.9.9"}
	r.Current, r.Available = versions[c.of(5)], versions[c.of(5)]
	r.ActiveID, r.State = s.Nodes[at].Marks.Intent.ID, marker.States()[c.of(3)]
	lied := planner.Plan(s, set)
	for i, n := range lied.Nodes {
		waited := out.Nodes[i].Reason == plan.ReasonAfterGroup || out.Nodes[i].Reason == plan.ReasonVersionTooNew
		if n.Node != s.Nodes[at].Name && waited {
			assert.Check(t, n.Act != intent.ActStage && n.Act != intent.ActCordon && n.Act != intent.ActConfirm, "%s goes by the word of %s\n%s", n.Node, s.Nodes[at].Name, lied)
		}
	}
}

// inAnyOrder plans for the same nodes in another order.
func inAnyOrder(t *testing.T, s fleet.Snapshot, set policy.Settings, out plan.Plan, at int) {
	s.Nodes = append(slices.Clone(s.Nodes[at:]), s.Nodes[:at]...)
	slices.Reverse(s.Nodes)
	assert.Equal(t, told(planner.Plan(s, set)), told(out))
}

// largerIsNoFewer plans with a larger budget. With a limit of zones one node more in a zone can be what keeps two
// out of another.
func largerIsNoFewer(t *testing.T, s fleet.Snapshot, set policy.Settings, out plan.Plan) {
	if len(set.Topology) > 0 && set.Topology[0].MaxDomains > 0 {
		return
	}
	for _, larger := range []policy.Limit{policy.Count(set.MaxUnavailable.Of(len(s.Nodes)) + 1), policy.Unlimited} {
		more := set
		more.MaxUnavailable = larger
		assert.Assert(t, starts(planner.Plan(s, more)) >= starts(out), "%s instead of %s", larger, set.MaxUnavailable)
	}
}

// told is what of a plan can be compared.
func told(o plan.Plan) string {
	text := o.String()
	for _, s := range o.Steps {
		text += fmt.Sprintf("%s %s %s %s\n", s.Node, s.Act, s.Reason, s.Message)
	}
	return text
}

func starts(o plan.Plan) int {
	n := 0
	for _, s := range o.Steps {
		if s.Act == intent.ActCordon {
			n++
		}
	}
	return n
}

func everyNode(t *testing.T, s fleet.Snapshot, out plan.Plan) {
	said := map[string]plan.Decision{}
	for _, standing := range out.Nodes {
		said[standing.Node] = standing
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		standing, ok := said[n.Name]
		assert.Check(t, ok || !s.Managed(n) && !n.Marked(), "nothing is said of %s", n.Name)
		assert.Check(t, !ok || standing.Reason != "" && standing.Message.String() != "", "%+v", standing)
	}
	stepped := map[string]bool{}
	for _, step := range out.Steps {
		assert.Check(t, !stepped[step.UID], "%s gets two steps", step.Node)
		stepped[step.UID] = true
	}
}

// marksForOthers are put with a record of what stood there, and taken back by it: none of ours stands on a node that
// is not disrupted (S5).
func marksForOthers(t *testing.T, s fleet.Snapshot, out plan.Plan) {
	for _, step := range out.Steps {
		if step.Change == nil {
			continue
		}
		n := &s.Nodes[slices.IndexFunc(s.Nodes, func(n fleet.Node) bool { return n.UID == step.UID })]
		var before, after map[string]*string
		if d := n.Marks.Disruption; d != nil {
			before = d.Before
		}
		if d := step.Change.Marks.Disruption; d != nil {
			after = d.Before
		}
		for _, key := range []string{balancers, scaleDown, disrupt} {
			stood, stands := n.Autoscalers[key]
			write, writes := step.Change.Annotations[key]
			if key == balancers {
				stood, stands = n.Labels[key]
				write, writes = step.Change.Labels[key]
			}
			was, wasOurs := before[key]
			_, isOurs := after[key]
			switch {
			case wasOurs && !isOurs:
				assert.Check(t, writes == (stands && stood == "true"), "%s of %s: %s", key, step.Node, step.Act)
				assert.Check(t, !writes || write == was, "%s of %s is not put back", key, step.Node)
			case isOurs && !wasOurs:
				assert.Check(t, writes && *write == "true" && (after[key] == nil) == !stands, "%s of %s is noted wrong", key, step.Node)
			default:
				assert.Check(t, !writes, "%s of %s is not ours", key, step.Node)
			}
		}
	}
}

// withinBudgets counts by itself: where something starts, no more nodes than the limit are out of service after it.
func withinBudgets(t *testing.T, s fleet.Snapshot, set policy.Settings, out plan.Plan) {
	starting := map[string]bool{}
	for _, step := range out.Steps {
		if step.Act == intent.ActCordon {
			starting[step.Node] = true
		}
	}
	check := func(what string, l policy.Limit, in func(*fleet.Node) bool) {
		capacity, away, late, begins := 0, 0, 0, false
		for i := range s.Nodes {
			n := &s.Nodes[i]
			if !in(n) || !s.Managed(n) && !n.Marked() {
				continue
			}
			if n.Labelled() && n.Leaving == "" {
				capacity++
			}
			_, slot := s.Slots[n.UID]
			if slot || n.Disrupted() || starting[n.Name] {
				away++
			}
			// Lost ones lend their place on, and only what is late can be Lost.
			if n.Disrupted() && (n.Marks.Intent.Time.Before(now.Add(-set.Deadlines.Return)) || soakedLong(n, set) || askedLong(n, set)) {
				late++
			}
			begins = begins || starting[n.Name] && !slot
		}
		away -= min(out.LostUncounted, late)
		assert.Check(t, !begins || away <= l.Of(capacity), "%s: %d are out, %s of %d may be\n%s\n%v", what, away, l, capacity, out, s.Slots)
	}
	topologies := func(what string, of []policy.Topology, in func(*fleet.Node) bool) {
		for _, top := range of {
			for _, value := range []string{"x", "y", "z"} {
				check(what+" in zone "+value, top.MaxUnavailable, func(n *fleet.Node) bool { return in(n) && n.Labels[top.Key] == value })
			}
		}
	}
	everywhere := func(*fleet.Node) bool { return true }
	check("the fleet", set.MaxUnavailable, everywhere)
	topologies("the fleet", set.Topology, everywhere)
	for _, g := range set.Groups {
		in := func(n *fleet.Node) bool { return g.Selector.Matches(n.Labels) }
		check(g.Name, g.MaxUnavailable, in)
		topologies(g.Name, g.Topology, in)
	}
}

// soakedLong reports whether the pods of a node itself have had their time after the soak.
func soakedLong(n *fleet.Node, set policy.Settings) bool {
	soak := n.Marks.Disruption.Soak
	return len(set.Verify.Pods) > 0 && soak != nil && !soak.After(now.Add(-set.Soak-set.Verify.Deadline))
}

// askedLong reports whether hooks that keep the node cordoned have had their time.
func askedLong(n *fleet.Node, set policy.Settings) bool {
	asked := n.Marks.Disruption.Asked
	return asked != nil && !asked.After(now.Add(-policy.LongestHook(set.Hooks.BeforeUncordon)))
}

// drainedOrAlone looks for nodes that are asked to reboot with pods on them (S2).
func drainedOrAlone(t *testing.T, s fleet.Snapshot, set policy.Settings, out plan.Plan) {
	staying := 0
	for i := range s.Nodes {
		if s.Nodes[i].Leaving == "" {
			staying++
		}
	}
	for _, step := range out.Steps {
		if step.Act != intent.ActReboot || step.Reason == plan.ReasonRebootedEarly {
			continue
		}
		n := &s.Nodes[slices.IndexFunc(s.Nodes, func(n fleet.Node) bool { return n.UID == step.UID })]
		drained := n.Drain != nil && n.Drain.Failed == "" && n.Drain.Remaining == 0
		if p := n.Marks.Plan; p != nil && p.Drain != marker.DrainAll {
			assert.Check(t, n.Unschedulable || p.Drain == marker.DrainNothing, "%s is asked to run its plan\n%s", n.Name, out)
			continue
		}
		alone := set.SingleNode == policy.SingleNodeAllow && staying == 1 && n.Leaving == ""
		assert.Check(t, n.Unschedulable && (drained || alone), "%s is asked to reboot\n%s", n.Name, out)
		assert.Check(t, drained || step.Reason == plan.ReasonSingleNode, "%s isn't looked at as the only node", n.Name)
	}
}

// converges carries plans out, with agents that don't answer, at one moment of the clock: soon nothing is left to do.
func converges(t *testing.T, s fleet.Snapshot, set policy.Settings) {
	if out := carryOut(&s, set); slices.ContainsFunc(out.Steps, changes) {
		t.Errorf("still something to do:\n%s", out)
	}
}

func carryOut(s *fleet.Snapshot, set policy.Settings) plan.Plan {
	s.Nodes = slices.Clone(s.Nodes)
	for round := range 8 {
		out := planner.Plan(*s, set)
		if !slices.ContainsFunc(out.Steps, changes) {
			return out
		}
		for _, step := range out.Steps {
			if step.TakesSlot {
				s.Slots[step.UID] = step.Node
			}
			if step.FreesSlot {
				delete(s.Slots, step.UID)
			}
			if step.Change == nil {
				continue
			}
			at := slices.IndexFunc(s.Nodes, func(n fleet.Node) bool { return n.UID == step.UID })
			n := &s.Nodes[at]
			n.Marks, n.ResourceVersion = step.Change.Marks, fmt.Sprint(round, "0")
			if step.Change.Unschedulable != nil {
				n.Unschedulable = *step.Change.Unschedulable
			}
			for key, value := range step.Change.Annotations {
				n.Autoscalers = maps.Clone(n.Autoscalers)
				if n.Autoscalers == nil {
					n.Autoscalers = map[string]string{}
				}
				if delete(n.Autoscalers, key); value != nil {
					n.Autoscalers[key] = *value
				}
			}
			if step.Change.DropRetry {
				n.Marks.Retry = false
			}
			if step.Change.DropCycle {
				n.Marks.Cycle = ""
			}
		}
	}
	return planner.Plan(*s, set)
}

// changes reports whether a step does something but to evict pods.
func changes(s plan.Step) bool { return s.Change != nil || s.FreesSlot }
