package preflight

import (
	"fmt"
	"slices"
	"strings"
)

// AdmissionPolicy is a ValidatingAdmissionPolicy.
type AdmissionPolicy struct {
	// Fails: what it can't judge it refuses.
	Fails bool
	// Warnings are what the API server found in its expressions.
	Warnings []string
}

// AdmissionBinding is a ValidatingAdmissionPolicyBinding.
type AdmissionBinding struct {
	Policy  string
	Actions []string
	// Narrowed: it holds for some objects alone.
	Narrowed bool
}

// walls are the admission policies of the operator by file; each has a binding of its name.
var walls = []string{"update-operator-proxy", "update-operator-controller", "update-operator-controller-evictions",
	"update-operator-controller-creations"}

var planWalls = []string{"update-operator-runner", "update-operator-runner-pods", "update-operator-runner-templates",
	"update-operator-runner-intents",
	"update-operator-runner-plans", "update-operator-runner-creations"}

// Walls returns the names of the admission policies of update-operator.yaml, and with plans of those of
// components/plans/plans.yaml. Each has a binding of the same name.
func Walls(plans bool) []string {
	if plans {
		return slices.Concat(walls, planWalls)
	}
	return slices.Clone(walls)
}

func admission(s *Snapshot) []Finding {
	if !s.installed() {
		return absent(s)
	}
	if b := blind(s.Policies, s.Bindings); b != nil {
		return b
	}
	names := Walls(s.plansInstalled())
	var found []Finding
	for _, name := range names {
		remedy := restoreIt
		if slices.Contains(planWalls, name) {
			remedy = restorePlans
		}
		add := func(wrong string) {
			found = append(found,
				failed(fmt.Sprintf("admission policy %s %s: a stolen token of that account may do more than it should",
					name, wrong), remedy)...)
		}
		p, there := s.Policies.Value[name]
		b, bound := s.Bindings.Value[name]
		switch {
		case !there:
			add("is missing")
		case !p.Fails:
			add("lets through what it can't judge (failurePolicy is not Fail)")
		case !bound:
			add("is not bound, so it holds for nothing")
		case b.Policy != name:
			add(fmt.Sprintf("is not bound: its binding is of policy %q", b.Policy))
		case !slices.Contains(b.Actions, "Deny"):
			add(fmt.Sprintf("refuses nothing: its binding does %s, and not Deny", strings.Join(b.Actions, ", ")))
		case b.Narrowed:
			add("holds for some objects alone: its binding has matchResources")
		case len(p.Warnings) > 0:
			found = append(found, warned(fmt.Sprintf("the API server warns of admission policy %s: %s", name,
				p.Warnings[0]), remedy)...)
		}
	}
	if found == nil {
		return well(fmt.Sprintf("%d admission policies are there and bound", len(names)))
	}
	return found
}
