package preflight

import (
	"fmt"
	"strconv"
)

// never reports whether a budget lets no pod go, however well all are.
func (b *Budget) never() bool {
	switch {
	case b.Here == 0 || b.Expected == 0:
		return false
	case b.MaxUnavailable == "0", b.MaxUnavailable == "0%", b.MinAvailable == "100%":
		return true
	}
	n, err := strconv.Atoi(b.MinAvailable)
	return err == nil && n >= b.Expected || b.Allowed == 0 && b.Healthy >= b.Expected
}

func budgets(s *Snapshot) []Finding {
	if b := blind(s.Nodes, s.Budgets, s.Overlapping); b != nil {
		return b
	}
	var never, now []string
	for i := range s.Budgets.Value {
		switch b := &s.Budgets.Value[i]; {
		case b.never():
			never = append(never, b.Name)
		case b.Here > 0 && b.Allowed == 0:
			now = append(now, fmt.Sprintf("%s (%d of %d healthy)", b.Name, b.Healthy, b.Expected))
		}
	}
	var found []Finding
	const mend = "let one pod go, or run one more: kubectl -n NAMESPACE edit poddisruptionbudget NAME"
	switch names := of(never, "PodDisruptionBudget"); {
	case len(never) == 0:
	case s.overrides():
		found = append(found,
			warned("never let a pod go by themselves, and the policy drains such nodes all the same: "+names, mend)...)
	default:
		found = append(found, failed("never let a pod go, so nodes with such pods are not updated: "+names,
			mend+"; if something moves the pods once their node is cordoned, say drain.predict: false in the policy")...)
	}
	if names := s.Overlapping.Value; len(names) > 0 {
		found = append(found,
			failed("selected by more than one PodDisruptionBudget, so Kubernetes never evicts them, are "+of(names,
				"pod"),
				"leave one budget for each pod: kubectl get poddisruptionbudgets -A")...)
	}
	if len(now) > 0 {
		found = append(found, warned("let no pod go now, because not all are healthy: "+of(now, "PodDisruptionBudget"),
			"repair the workloads: kubectl get pods -A | grep -v Running")...)
	}
	return append(found, s.wellIf(found, "each PodDisruptionBudget lets a pod go")...)
}

// overrides reports whether the policy cordons nodes whatever budgets say, or deletes what is left in the end.
func (s *Snapshot) overrides() bool {
	p := s.Policy.Value
	if !p.There || len(p.Mistakes) > 0 {
		return false
	}
	e := p.Settings.Draining.Eviction
	return e.Force || !e.Predict
}

func singleReplicas(s *Snapshot) []Finding {
	if b := blind(s.Nodes, s.Singles); b != nil {
		return b
	}
	var found []Finding
	if names := s.Singles.Value; len(names) > 0 {
		found = warned("out of service for a moment when their node is drained, as they have one replica, are "+of(names, "workload"),
			"run two where that matters: kubectl -n NAMESPACE scale deployment NAME --replicas=2")
	}
	return append(found, s.wellIf(found, "no workload on these nodes has one replica")...)
}

func barePods(s *Snapshot) []Finding {
	if b := blind(s.Nodes, s.Bare); b != nil {
		return b
	}
	var found []Finding
	if names := s.Bare.Value; len(names) > 0 {
		found = warned("gone for good when their node is drained, as no controller makes them anew, are "+of(names,
			"pod"),
			"run them by a Deployment, or say drain.unmanagedPods: block in the policy (docs/policy.md#drains): kubectl -n NAMESPACE get pod NAME -o yaml")
	}
	return append(found, s.wellIf(found, "each pod on these nodes has a controller")...)
}

// wellIf is the finding of a check that found nothing else; what was cut off is said.
func (s *Snapshot) wellIf(found []Finding, message string) []Finding {
	if len(s.Cut) > 0 {
		return warned("not all was looked at: "+list(s.Cut),
			"look at the others yourself: kubectl get poddisruptionbudgets,deployments,statefulsets,pods -A")
	}
	if found == nil {
		return well(message)
	}
	return nil
}
