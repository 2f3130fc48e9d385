package sim

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// labelRule is the rule by which the controller labels nodes.
const labelRule = "autoLabel: true"

// enrol draws, for a part of the seeds with policies and Bottlerocket nodes, that the controller labels nodes, and what
// users do to labels then. All of the policies say it or none: which of them a controller went by is hard to tell.
func (s *Scenario) enrol(r *rand.Rand) {
	nodes := s.Nodes - s.PlanNodes
	if len(s.Policies) == 0 || nodes <= 0 || r.IntN(8) > 0 {
		return
	}
	for i := range s.Policies {
		s.Policies[i].put("autoLabel", "true")
	}
	for range 1 + r.IntN(4) {
		s.Faults = append(s.Faults, Fault{At: time.Duration(r.Int64N(int64(s.Trouble))).Truncate(time.Millisecond), Kind: PersonUnlabels, On: r.IntN(nodes),
			For: time.Duration(r.Int64N(int64(4 * time.Minute))).Truncate(time.Millisecond), N: r.IntN(16), When: pick(r, "", "", AtPrepare, AtCordon, AtEnd)})
	}
}

// autoLabels reports whether the controller labels nodes.
func (s Scenario) autoLabels() bool {
	return len(s.Policies) > 0 && !slices.ContainsFunc(s.Policies, func(r Rules) bool { return !slices.Contains(r, labelRule) })
}

// comesUnlabelled reports whether a machine's Node is registered without the label, for the controller to set.
func (m *machine) comesUnlabelled() bool {
	return m.w.scenario.autoLabels() && !m.isPlanned && strings.HasSuffix(m.name, "1")
}

// labels holds that the controller changes no label but by labelling a node that runs Bottlerocket and was never
// labelled, and that it never labels one again whose label a user removed (S5, S6). What it labels it puts into its own
// care, and the DaemonSet follows.
func (c *checks) labels(actor string, controller bool, before, after *corev1.Node) {
	was, is := before.Labels[string(marker.KeyInterfaceVersion)], after.Labels[string(marker.KeyInterfaceVersion)]
	k, w := c.of(after), c.w
	// Of a node that no controller has written to, nothing tells that it was labelled.
	known := has(before, marker.KeyIntentID) || has(before, marker.KeyAutoLabelled)
	switch {
	case !controller:
		k.unlabelled = k.unlabelled || was != "" && is == "" && known
		return
	case annotation(before, marker.KeyAutoLabelled) != annotation(after, marker.KeyAutoLabelled) && has(before, marker.KeyAutoLabelled):
		w.violate("S5", "%s changes the mark that %s was labelled", actor, after.Name)
	case was == is:
		if leaves := has(before, marker.KeyIntentID) && !has(after, marker.KeyIntentID); leaves && w.server.ConfigMap(namespace, kube.PolicyConfigMap) == nil {
			// Where users have deleted the policy, and with the slots what tells that there was one, nothing says autoLabel.
			k.unlabelled = false
		}
		return
	}
	c.count("S5")
	c.count("S6")
	if was != "" || is != "2.0.0" || !has(after, marker.KeyAutoLabelled) {
		w.violate("S5", "%s changes the label of %s from %q to %q", actor, after.Name, was, is)
	}
	if k.unlabelled && !c.tampered[string(after.UID)] {
		w.violate("S5", "%s labels %s, whose label a user removed", actor, after.Name)
	}
	if !w.scenario.autoLabels() || !strings.HasPrefix(before.Status.NodeInfo.OSImage, "Bottlerocket OS ") {
		w.violate("S6", "%s labels %s, which nothing says", actor, after.Name)
	}
	m := w.cluster.machineOf(after.Name)
	m.labelled = true
	w.after(w.between(100*time.Millisecond, 5*time.Second), func() {
		if w.server.Pod(namespace, m.agent.pod) == nil {
			m.agent.podScheduled()
		}
	})
}
