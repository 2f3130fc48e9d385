package plugin

import (
	"context"
	"fmt"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// check looks at what a run needs, before anything is written. It returns the node, what is well, and why nothing would
// come of a request, or the node be in the middle of an attempt already. What only keeps it waiting, such as a window,
// is no refusal.
func (r *e2eRun) check(ctx context.Context) (*fleet.Node, []string, error) {
	n, err := readNode(ctx, r.client, r.node)
	if err != nil {
		return nil, nil, err
	}
	v, err := r.agentOn(ctx, n)
	if err != nil {
		return nil, nil, err
	}
	if refused := refusedBefore(&v); refused != "" {
		return nil, nil, errors.Errorf("node %q %s", r.node, refused)
	}
	lines := []string{fmt.Sprintf("node %s is labelled for the operator, Ready and not paused", r.node)}
	pod, err := r.leader(ctx, r.client)
	if err != nil {
		return nil, lines, err
	}
	lines = append(lines, "pod "+pod+" leads the controllers")
	decision, stands := r.plannedNow(ctx)
	lines = append(lines, stands)
	m := &v.Marks
	version, offered := m.Report.Current, m.Report.Available != "" && m.Report.Available != m.Report.Current
	if v.Interface == fleet.InterfacePlan {
		if decision != nil && (decision.Phase == intent.PhaseUpToDate || decision.Reason == plan.ReasonNoPlan) {
			return nil, lines, errors.Errorf("plans update node %q, and none has anything to do on it: there is no cycle of a plan without a target", r.node)
		}
		lines = append(lines, "plans update it: it goes to the next target that one of them has for it")
	} else {
		if err := agentFit(&v, offered); err != nil {
			return nil, lines, errors.WithMessagef(err, "node %q", r.node)
		}
		lines = append(lines, fmt.Sprintf("its agent is Ready and speaks protocol %d", m.Report.Protocol))
		goes := fmt.Sprintf("nothing is offered: it is to go through a cycle, and to end on %s as it runs now", version)
		if offered {
			goes = fmt.Sprintf("%s is offered: it is to be updated", m.Report.Available)
		}
		lines = append(lines, fmt.Sprintf("runs %s, boot %s; %s", version, v.BootID, goes))
	}
	if v.Unschedulable {
		lines = append(lines, "it is cordoned now, and will end so")
	}
	return &v, append(lines, r.podsNow(ctx)), nil
}

// refusedBefore is why a node is not to be asked for; empty if it may be.
func refusedBefore(v *fleet.Node) string {
	switch m := &v.Marks; {
	case !v.Labelled():
		return fmt.Sprintf("is not in the operator's care: label it with %s=%s", marker.KeyInterfaceVersion, fleet.InterfaceUpdateAPI)
	case len(v.Problems) > 0:
		return fmt.Sprintf("is left alone by the operator: annotation %s; correct or remove it", v.Problems[0])
	case v.Disrupted() || v.Phase() == intent.PhaseResetting:
		return fmt.Sprintf("is in the middle of an attempt (%s): wait until that is over, see kubectl bottlerocket status %s", v.Phase(), v.Name)
	case m.Cycle != "":
		return fmt.Sprintf("is asked for already, by %s: wait for that, or take it back with kubectl annotate node %s %s-", m.Cycle, v.Name, marker.KeyCycle)
	case m.Paused:
		return fmt.Sprintf("is paused: %s; see kubectl bottlerocket resume %s", m.PausedReason, v.Name)
	case !v.Ready:
		return "is not Ready: nothing starts on it"
	}
	return ""
}

// agentFit says what keeps an agent from its part.
func agentFit(v *fleet.Node, offered bool) error {
	switch r := &v.Marks.Report; {
	case !v.AgentReady:
		return errors.New("no agent pod is Ready on it; see docs/troubleshooting.md")
	case r.Answer(v.Marks.Intent.ID) == marker.StateError:
		return errors.Errorf("its agent reports: %s", r.Message)
	case r.Current == "":
		return errors.New("its agent has not reported on its host yet")
	case !offered && r.Protocol < marker.CycleProtocol:
		return errors.Errorf("nothing is offered, and its agent speaks protocol %d: cycles need %d, so update the agents", r.Protocol, marker.CycleProtocol)
	}
	return nil
}

// plannedNow is what the leader's plan says of the node now; nil if it says nothing, or can't be asked.
func (r *e2eRun) plannedNow(ctx context.Context) (*plan.Decision, string) {
	out, err := r.ask(ctx, r.client, nil)
	if err != nil {
		return nil, "the leader's plan is not known: " + err.Error()
	}
	d := decisionOn(&out, r.node)
	if d == nil {
		return nil, "the leader's plan does not name the node yet"
	}
	return d, fmt.Sprintf("by the leader's plan it is %s now: %s: %s", d.Phase, d.Reason, d.Message)
}

// podsNow says how many pods are on the node.
func (r *e2eRun) podsNow(ctx context.Context) string {
	pods, err := podsOn(ctx, r.client, r.node)
	if err != nil {
		return "which pods are on it is not known: " + err.Error()
	}
	moving := 0
	for _, p := range pods {
		if !p.stays {
			moving++
		}
	}
	return fmt.Sprintf("%s on it, %d of them neither of a DaemonSet nor static", plural(len(pods), "pod"), moving)
}
