package preflight

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
)

func judgePolicy(s *Snapshot) []Finding {
	if b := blind(s.Policy); b != nil {
		return b
	}
	p := s.Policy.Value
	switch {
	case !p.There:
		return well("there is no ConfigMap update-policy, so the defaults hold: one node at a time, at any hour")
	case len(p.Mistakes) > 0:
		return failed(fmt.Sprintf("ConfigMap update-policy has %s: %s", count(len(p.Mistakes), "mistake"),
			strings.Join(p.Mistakes[:min(len(p.Mistakes), 3)], "; ")),
			fmt.Sprintf("correct it, see docs/policy.md: kubectl -n %s edit configmap update-policy", s.Namespace))
	}
	return well("ConfigMap update-policy is valid")
}

func pauses(s *Snapshot) []Finding {
	var found []Finding
	if p := s.Policy.Value; p.There && len(p.Mistakes) == 0 {
		edit := fmt.Sprintf("take the pause out when it should end: kubectl -n %s edit configmap update-policy",
			s.Namespace)
		if pause := p.Settings.Pause; pause != nil {
			found = append(found, warned("the policy pauses the fleet: "+pause.Reason, edit)...)
		}
		for _, g := range p.Settings.Groups {
			if g.Pause != nil {
				found = append(found, warned(fmt.Sprintf("the policy pauses group %s: %s", g.Name, g.Pause.Reason),
					edit)...)
			}
		}
	}
	if problem := s.Pauses.Value.Problem; problem != "" {
		found = append(found, failed("ConfigMap update-pause can't be read, which pauses everything: "+problem,
			fmt.Sprintf("delete it to end its pauses: kubectl -n %s delete configmap update-pause", s.Namespace))...)
	}
	for _, standing := range s.Pauses.Value.Standing {
		found = append(found, warned(standing, "kubectl bottlerocket resume, with --group NAME for a group")...)
	}
	var paused []string
	for i := range s.Nodes.Value {
		if n := &s.Nodes.Value[i]; n.Labelled() && n.Marks.Paused {
			paused = append(paused, n.Name)
		}
	}
	if len(paused) > 0 {
		found = append(found, warned("paused by themselves are "+of(paused, "node"),
			"kubectl bottlerocket resume NODE")...)
	}
	for _, part := range []reading{s.Policy, s.Pauses} {
		if b := blind(part); b != nil {
			found = append(found, b...)
		}
	}
	if found == nil {
		return well("nothing is paused")
	}
	return found
}

// plans looks at what components/plans/plans.yaml brings, if anything asks for it.
func plans(s *Snapshot) []Finding {
	if b := blind(s.Workloads); b != nil {
		return b
	}
	var wanted []string
	if p := s.Policy.Value; p.There && len(p.Mistakes) == 0 && len(p.Settings.Plans) > 0 {
		wanted = append(wanted, "the policy has plans")
	}
	if slices.ContainsFunc(s.Nodes.Value, func(n Node) bool { return n.Interface == fleet.InterfacePlan }) {
		wanted = append(wanted, "nodes have the label value plan")
	}
	switch {
	case !s.plansInstalled() && wanted != nil && s.installed():
		return failed(strings.Join(wanted, " and ")+", and components/plans/plans.yaml is not installed",
			"kubectl apply -f components/plans/plans.yaml, the component plans, or Helm's plans.enabled")
	case !s.plansInstalled():
		return well("no plans are used")
	}
	found := s.available(Runner)
	switch level, there := s.PlansHome.Value[enforceLabel]; {
	case s.PlansHome.Refused != "":
		found = append(found, blind(s.PlansHome)...)
	case s.PlansHome.Value == nil:
		found = append(found, failed("there is no namespace "+s.PlansNamespace+" for the pods of plans", restorePlans)...)
	case there && level != privileged:
		found = append(found,
			warned(fmt.Sprintf("namespace %s enforces the pod security level %q, which refuses pods that change their host", s.PlansNamespace, level),
				fmt.Sprintf("kubectl label namespace %s %s=%s --overwrite", s.PlansNamespace, enforceLabel, privileged))...)
	}
	return found
}
