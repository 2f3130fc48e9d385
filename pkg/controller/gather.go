package controller

import (
	"context"
	"maps"
	"time"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

type passedOver struct {
	phase intent.Phase
	id    string
	// since is when the first such pass was.
	since time.Time
	in    inPhase
}

// inPhase is since when a node has been in its phase as the plan shows it, which knows of more phases than the marks.
type inPhase struct {
	phase intent.Phase
	since time.Time
	// whole: it began then. Else it was seen then for the first time.
	whole bool
}

// same reports whether the pass was over a node in that phase, under that intent.
func (p passedOver) same(n *fleet.Node) bool {
	return p.phase == n.Phase() && p.id == n.Marks.Intent.ID
}

// gather returns what a plan is made from: what the cluster holds, and what this process knows of it.
func (t *Term) gather(ctx context.Context) (fleet.Snapshot, policy.Settings, error) {
	s := fleet.Snapshot{Now: t.c.Now()}
	said := t.c.Policies.Current()
	var err error
	if s.Nodes, err = t.c.Cluster.Nodes(ctx); err != nil {
		return s, said.Settings, err
	}
	hadPolicy, err := t.gatherState(ctx, &s)
	if err != nil {
		return s, said.Settings, err
	}
	if hadPolicy {
		said = said.Required()
	}
	s.PolicyUnrecorded = !hadPolicy && said.Stands
	s.PolicyProblem, s.NoPolicy, s.Acknowledged, s.PolicyWarnings = said.Problem, said.None, said.Acknowledged, said.Warnings
	s.PlanTargets = said.PlanTargets
	t.mu.Lock()
	defer t.mu.Unlock()
	s.Alerts = t.alerts.found(wholeFleet, time.Time{})
	if a := t.admission.found(wholeFleet, time.Time{}); a != nil && a.Missing {
		s.AdmissionProblem = notRestricted
	}
	t.watch(&s)
	for i := range s.Nodes {
		t.recall(&s.Nodes[i], s.Now)
	}
	return s, said.Settings, nil
}

// gatherState adds what the controller's own object holds, and returns whether the cluster has had a policy.
func (t *Term) gatherState(ctx context.Context, s *fleet.Snapshot) (hadPolicy bool, err error) {
	state, err := t.c.Cluster.State(ctx)
	var unreadable *kube.SlotsUnreadableError
	if errors.As(err, &unreadable) {
		s.SlotsProblem, err = unreadable.Error(), nil
		t.c.Cluster.ForgetSlots()
	}
	s.Slots, s.FirstSeen, s.Notices, s.Rollouts = state.Slots, state.FirstSeen, state.Notices, state.Rollouts
	return state.HadPolicy, err
}

// watch adds since when this process has seen nodes in a state whose beginning no Node shows. The caller holds t.mu.
func (t *Term) watch(s *fleet.Snapshot) {
	away, agentLost := map[string]time.Time{}, map[string]time.Time{}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if (n.Unschedulable || !n.Ready) && !n.Disrupted() {
			n.UnavailableSince = since(t.away, n.UID, s.Now)
			away[n.UID] = n.UnavailableSince
		}
		// While the node itself isn't Ready, none of its pods is called so.
		if n.Disrupted() && n.Ready && !n.AgentReady {
			n.AgentLostSince = since(t.agentLost, n.UID, s.Now)
			agentLost[n.UID] = n.AgentLostSince
		}
	}
	t.away, t.agentLost = away, agentLost
}

// since is when something was seen first; now if it wasn't yet.
func since(seen map[string]time.Time, uid string, now time.Time) time.Time {
	if at, known := seen[uid]; known {
		return at
	}
	return now
}

// recall adds what this process knows of a node. The caller holds t.mu.
func (t *Term) recall(n *fleet.Node, now time.Time) {
	n.ControllerHere = t.c.NodeName != "" && n.Name == t.c.NodeName
	n.Forecast = t.looks.found(n.UID, time.Time{})
	n.WriteTrouble = troubleAt(t.writing[n.UID], now)
	if d := n.Marks.Disruption; d != nil {
		n.Drain = t.drains.found(n.UID, d.Since)
		n.Checked = t.checks.found(n.UID, d.Since)
	}
	if b := t.borne[n.UID]; b != nil {
		b.fill(n, now)
	}
	if p, passed := t.passed[n.UID]; passed && p.same(n) {
		n.PassedOver, n.WatchedSince = true, p.since
	}
}

// remember keeps, of managed nodes only, what the next pass wants to know.
func (t *Term) remember(s fleet.Snapshot, out plan.Plan) {
	managed := make(map[string]intent.Phase, len(out.Nodes))
	for _, n := range out.Nodes {
		managed[n.UID] = n.Phase
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	passed := make(map[string]passedOver, len(managed))
	disrupted, staged := map[string]bool{}, map[string]bool{}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if shown, is := managed[n.UID]; is {
			p := passedOver{n.Phase(), n.Marks.Intent.ID, s.Now, t.inPhase(n, shown, s.Now)}
			if n.PassedOver {
				p.since = n.WatchedSince
			}
			passed[n.UID] = p
			staged[n.UID] = p.phase == intent.PhaseStaged
		}
		disrupted[n.UID] = n.Disrupted()
	}
	t.passed = passed
	t.forgetWriting(s)
	t.drains.keep(disrupted)
	t.looks.keep(staged)
	t.checks.keep(disrupted)
	// By their age alone: taking the label off and putting it on again ends no memory.
	maps.DeleteFunc(t.borne, func(_ string, b *borne) bool { return b.over(s.Now) })
}

// inPhase returns since when a node has been in the phase that the plan shows, and counts the one that it has left. The
// caller holds t.mu.
func (t *Term) inPhase(n *fleet.Node, shown intent.Phase, now time.Time) inPhase {
	before, known := t.passed[n.UID]
	switch {
	case known && before.in.phase == shown:
		return before.in
	case known && before.in.whole:
		t.c.Metrics.left(before.in.phase, now.Sub(before.in.since))
	}
	if at := intent.BeganAt(n.Marks, shown); !at.IsZero() {
		return inPhase{shown, at, true}
	}
	return inPhase{shown, now, known}
}

// longest returns, of each phase, since when the node has been in it that has been in it for longest.
func (t *Term) longest() map[intent.Phase]time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	oldest := map[intent.Phase]time.Time{}
	for _, p := range t.passed {
		if at, known := oldest[p.in.phase]; !known || p.in.since.Before(at) {
			oldest[p.in.phase] = p.in.since
		}
	}
	return oldest
}
