package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// planned is the fleet with what the controller would do with it.
type planned struct {
	now      time.Time
	nodes    map[string]*fleet.Node
	snapshot fleet.Snapshot
	settings policy.Settings
	outcome  plan.Plan
	// live reports whether the outcome is the leader's own word.
	live  bool
	notes []string
}

// look reads the fleet once, with what the leader says of it; what it would say where it doesn't answer.
func (p *plugin) look(ctx context.Context, client kubernetes.Interface) (*planned, error) {
	now := p.now()
	lead := findLeader(ctx, client, p.namespace(), now)
	objects, err := kube.ReadObjects(ctx, client, p.namespace(), lead.options.AgentSelector)
	if err != nil {
		return nil, err
	}
	return p.judge(ctx, client, objects, lead, now), nil
}

// judge returns the leader's plan for what was read, or the one that is made here in its place.
func (p *plugin) judge(ctx context.Context, client kubernetes.Interface, objects *kube.Objects, lead leader, now time.Time) *planned {
	if lead.name == "" {
		return planHere(objects, lead, now, nil)
	}
	out, err := lead.plan(ctx, client, p.namespace())
	if err != nil {
		lead.note("the controller's own plan can't be had, so this one is made here, by what stands on the nodes: %v", err)
		return planHere(objects, lead, now, nil)
	}
	l := gather(objects, lead, now, nil)
	l.outcome, l.live = out, true
	if out.PolicyProblem != "" {
		l.notes = append(l.notes, "the controller goes by a policy that was good before, or by none: groups of that are not known here")
	}
	return l
}

// planHere decides as the leader would. A policy that isn't nil takes the place of the one in force.
func planHere(objects *kube.Objects, lead leader, now time.Time, instead *policy.Settings) *planned {
	l := gather(objects, lead, now, instead)
	if l.snapshot.NoPolicy && objects.Policy != nil {
		l.notes = append(l.notes, "the policy that stands there has a mistake; a controller that read a good one before goes on with that, which is not known here")
	}
	if problem := l.snapshot.SlotsProblem; problem != "" {
		l.notes = append(l.notes, problem)
	}
	if a := l.settings.Alerts; a.URL != "" {
		// Prometheus may be within the controller's reach alone.
		l.snapshot.Alerts = &fleet.Alerts{At: now, URL: a.URL, Query: a.Query}
		l.notes = append(l.notes, "the policy lets nothing start while alerts stand, and this doesn't ask for them: the controller's own plan and its Events say what it found")
	}
	l.outcome = planner.Plan(l.snapshot, l.settings)
	if l.snapshot.PolicyProblem == "" {
		l.outcome.Budgets = planner.Budgets(l.snapshot, l.settings)
	}
	return l
}

// gather returns all that a plan is made from, as a leader would have it.
func gather(objects *kube.Objects, lead leader, now time.Time, instead *policy.Settings) *planned {
	l := &planned{now: now, nodes: map[string]*fleet.Node{}, notes: append([]string(nil), lead.notes...)}
	l.snapshot, l.settings = objects.Snapshot(now, lead.options.Policy)
	if instead != nil {
		l.snapshot.PolicyProblem, l.snapshot.NoPolicy = "", false
		l.settings = *instead
	}
	for i := range l.snapshot.Nodes {
		n := &l.snapshot.Nodes[i]
		n.ControllerHere = lead.node != "" && n.Name == lead.node
		// Deadlines fire only once a controller has passed over the node, so that one that was away doesn't act on
		// what it missed. One that leads has, within seconds, and one that begins to lead has at its second pass.
		n.PassedOver = true
		// A controller counts from its own first look.
		if !n.UnavailableSince.IsZero() && n.UnavailableSince.Before(lead.since) {
			n.UnavailableSince = lead.since
		}
		n.Forecast = foreseen(n, now)
		l.nodes[n.Name] = n
	}
	return l
}

// obstacles are what a node waits for before its cordon, by the reason.
var obstacles = map[plan.Reason]fleet.Obstacle{plan.ReasonBudgetBlocks: fleet.ObstacleBudget, plan.ReasonPodAwaited: fleet.ObstacleAwaited,
	plan.ReasonPodProtected: fleet.ObstacleProtected, plan.ReasonDrainFailing: fleet.ObstacleUnknown}

// foreseen is what the controller found in the way of a node's drain, by what it wrote to the node. A node on which it
// wrote nothing of that kind, it may not have looked at yet.
func foreseen(n *fleet.Node, now time.Time) *fleet.Forecast {
	f := &fleet.Forecast{At: now}
	if w := n.Marks.Waiting; w != nil {
		if f.Obstacle = obstacles[plan.Reason(w.Reason)]; f.Obstacle != fleet.ObstacleNone {
			f.Message = strings.TrimPrefix(w.Message, plan.Staged)
			// It looks again without a word on when.
			f.Next = now.Add(time.Second)
		}
	}
	return f
}

// waitingFor returns why a node gets no further: the plan's sentence. Only where the plan was made here, and a live
// look would have to be taken, what stands on the node says more, and was so when it was written.
func (l *planned) waitingFor(n *fleet.Node, s *plan.Decision) WaitingFor {
	w := WaitingFor{Reason: s.Reason, Message: s.Message.String(), NotBefore: s.NotBefore}
	stands := n.Marks.Waiting
	if l.live || stands == nil {
		return w
	}
	looks := s.Act == intent.ActDrain || s.Act == intent.ActCheck || s.Act == intent.ActLook
	looked := s.Phase == intent.PhasePrepared && obstacles[s.Reason] != fleet.ObstacleNone
	if !looks && !looked {
		return w
	}
	w.Reason, w.Message = plan.Reason(stands.Reason), stands.Message
	return w
}

// warnings returns what to know before the rest is believed, and what the policy allows and may not mean.
func (l *planned) warnings() []string {
	return append(append([]string{}, l.notes...), l.outcome.Warnings...)
}

// warn prints what people should know before they believe the rest.
func warn(out io.Writer, notes []string) {
	for _, n := range notes {
		fmt.Fprintf(out, "warning: %s\n", line(n))
	}
}
