package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// planned is the fleet with what the controller would do with it.
type planned struct {
	now      time.Time
	nodes    map[string]*fleet.Node
	snapshot fleet.Snapshot
	settings policy.Settings
	outcome  policy.Outcome
	notes    []string
}

// look reads the fleet once and plans with the policy that is in force.
func (p *plugin) look(ctx context.Context, client kubernetes.Interface) (*planned, error) {
	now := p.now()
	lead := findLeader(ctx, client, p.namespace(), now)
	objects, err := kube.ReadObjects(ctx, client, p.namespace(), lead.options.AgentSelector)
	if err != nil {
		return nil, err
	}
	return plan(objects, lead, now, nil), nil
}

// plan decides as the leader would. A policy that isn't nil takes the place of the one in force.
func plan(objects *kube.Objects, lead leader, now time.Time, instead func(defaults policy.Settings) policy.Settings) *planned {
	l := &planned{now: now, nodes: map[string]*fleet.Node{}, notes: append([]string(nil), lead.notes...)}
	l.snapshot, l.settings = objects.Snapshot(now, lead.options.Policy)
	if instead != nil {
		l.snapshot.PolicyProblem, l.snapshot.NoPolicy = "", false
		l.settings = instead(lead.options.Policy)
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
	l.outcome = policy.Plan(l.snapshot, l.settings)
	return l
}

// foreseen is what the controller found in the way of a node's drain, by what it wrote to the node. A node on which it
// wrote nothing of that kind, it may not have looked at yet.
func foreseen(n *fleet.Node, now time.Time) *fleet.Forecast {
	f := &fleet.Forecast{At: now}
	if w := n.Marks.Waiting; w != nil {
		if f.Obstacle = policy.Obstacle(policy.Reason(w.Reason)); f.Obstacle != fleet.ObstacleNone {
			f.Message = strings.TrimPrefix(w.Message, policy.Staged)
			// It looks again without a word on when.
			f.Next = now.Add(time.Second)
		}
	}
	return f
}

// warn prints what people should know before they believe the rest.
func warn(out io.Writer, notes []string) {
	for _, n := range notes {
		fmt.Fprintf(out, "warning: %s\n", n)
	}
}
