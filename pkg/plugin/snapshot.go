package plugin

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// snapshot is the fleet as Kubernetes' objects show it.
type snapshot struct {
	now time.Time
	// nodes are all nodes of the cluster, sorted by name.
	nodes []fleet.Node
	// policy says which group a node is in; nil where no policy can be read.
	policy *policy.Settings
	notes  []string
}

// look reads the fleet once.
func (p *plugin) look(ctx context.Context, client kubernetes.Interface) (*snapshot, error) {
	objects, err := kube.ReadObjects(ctx, client, p.namespace(), kube.AgentSelector)
	if err != nil {
		return nil, err
	}
	config, err := p.policyConfigMap(ctx, client)
	if err != nil {
		return nil, err
	}
	return newSnapshot(p.now(), objects, config), nil
}

func newSnapshot(now time.Time, objects *kube.Objects, config *corev1.ConfigMap) *snapshot {
	s := &snapshot{now: now, nodes: objects.Views()}
	set, err := decodePolicy(config)
	if err != nil {
		s.notes = []string{fmt.Sprintf("ConfigMap %s has a mistake, so groups are not shown: %v", kube.PolicyConfigMap, err)}
		return s
	}
	s.policy = &set
	return s
}

// cared reports whether the operator has anything to do with a node.
func cared(n *fleet.Node) bool { return n.Labelled() || n.Marked() }

func (s *snapshot) status(n *fleet.Node) Status {
	m := &n.Marks
	out := Status{
		printed: kind("Status"), Node: n.Name, Phase: n.Phase(), Version: m.Report.Current, Target: target(n), attempt: m.Intent.Target, Since: since(n), WaitingFor: waitingFor(n, s.now),
		Ready: n.Ready, Cordoned: n.Unschedulable, OSVersion: n.OSVersion, BootID: n.BootID, AgentReady: n.AgentReady,
		Answer: m.Report.Answer(m.Intent.ID), Message: m.Report.Message, Failure: m.Failure,
	}
	if n.Info != nil {
		// What it runs by its plans only the plan says: the marks tell of the plan that is under way.
		out.OSVersion = n.Info.OSImage
		if out.Version == "" {
			out.Version = n.Info.Kubelet
		}
	}
	if s.policy != nil {
		out.Group = s.policy.GroupOf(n.Labels)
	}
	switch {
	case out.WaitingFor.Reason == plan.ReasonLost:
		out.Phase = intent.PhaseLost
	case n.Info == nil && out.Phase == intent.PhaseWaiting && out.WaitingFor.Reason == "" && out.Target == "" && out.AgentReady && out.Answer == marker.StateReady:
		out.Phase = intent.PhaseUpToDate
	}
	if m.Paused {
		out.Paused = &m.PausedReason
	}
	return out
}

// waitingFor returns what the controller wrote on a node in progress, and else what stands there itself that holds it
// up. What more a node waits for only the plan says.
func waitingFor(n *fleet.Node, now time.Time) WaitingFor {
	switch m := &n.Marks; {
	case len(n.Problems) > 0:
		return WaitingFor{Reason: plan.ReasonAnnotationUnreadable, Message: "annotation " + n.Problems[0].String()}
	case m.Waiting != nil:
		return WaitingFor{Reason: plan.Reason(m.Waiting.Reason), Message: m.Waiting.Message}
	case m.Paused:
		return WaitingFor{Reason: plan.ReasonPaused, Message: "paused: " + m.PausedReason}
	case m.Failure != nil && m.Failure.RetryAfter.After(now):
		said := fmt.Sprintf("failed %d times in a row, last %s: %s", m.Failure.Count, m.Failure.Reason, m.Failure.Message)
		return WaitingFor{Reason: plan.ReasonBackingOff, Message: said, NotBefore: m.Failure.RetryAfter}
	}
	return WaitingFor{}
}

// target is the version that a node goes to, or is offered.
func target(n *fleet.Node) string {
	m := &n.Marks
	switch {
	case m.Intent.Target != "":
		return m.Intent.Target
	case n.Info == nil && m.Report.Available != m.Report.Current:
		return m.Report.Available
	}
	return ""
}

// since is when a node's phase began, by the controller's marks. A staged node counts from the beginning of its
// staging.
func since(n *fleet.Node) time.Time {
	m := &n.Marks
	switch d := m.Disruption; {
	case d == nil || len(n.Problems) > 0:
	case n.Phase() == intent.PhaseDraining:
		return d.Since
	case n.Phase() == intent.PhaseVerifying && d.Returned != nil:
		return *d.Returned
	}
	return m.Intent.Time
}
