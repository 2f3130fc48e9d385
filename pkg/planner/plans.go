package planner

import (
	"slices"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner/check"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner/lifecycle"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// withWishes returns the nodes with those that plans update turned into nodes as all else here knows them: with a
// version that they run and one that they are offered. Beside them, by their places, it returns what plans want of
// them; nil where there is no such node.
func withWishes(s *fleet.Snapshot, set *policy.Settings) ([]fleet.Node, []*lifecycle.Wish) {
	if !slices.ContainsFunc(s.Nodes, func(n fleet.Node) bool { return n.Planned() }) {
		return s.Nodes, nil
	}
	nodes, wishes := slices.Clone(s.Nodes), make([]*lifecycle.Wish, len(s.Nodes))
	for i := range nodes {
		switch n := &nodes[i]; {
		case n.Marks.Plan != nil:
			wishes[i] = goesOn(n, s, set)
		case n.Interface == fleet.InterfacePlan:
			wishes[i] = goesNext(n, s, set)
		}
	}
	return nodes, wishes
}

// goesNext finds the first plan whose target a node doesn't have. A node that shows a higher one has it, unless its
// plan goes down too.
func goesNext(n *fleet.Node, s *fleet.Snapshot, set *policy.Settings) *lifecycle.Wish {
	r := &n.Marks.Report
	plans := set.PlansOf(n.Labels)
	if len(plans) == 0 && s.NoPolicy {
		return &lifecycle.Wish{NoTarget: check.NoPolicy(s)}
	}
	if len(plans) == 0 {
		return &lifecycle.Wish{NoTarget: plan.Refuse(plan.ReasonNoPlan, plan.Messagef("no plan of the policy chooses the node by its labels"))}
	}
	var has, before []string
	for i, p := range plans {
		w, target := wish(p, s)
		runs := shows(n, &w.Plan)
		if i == 0 {
			n.OSVersion, r.Current, r.Available = runs, runs, runs
		}
		if hasTarget(w, runs, target) {
			has, before = append(has, p.Name+"/"+marker.PlanTargetOf(runs)), append(before, target)
			continue
		}
		if undone := slices.IndexFunc(before, func(earlier string) bool { return undoes(s, set, w, target, earlier) }); undone >= 0 {
			w.NoTarget = plan.Refuse(plan.ReasonPlansContradict, plan.Messagef("plan %s wants %s, and would take the node off %s, which an earlier plan of the list wants",
				p.Name, marker.PlanTargetOf(target), marker.ShortVersion(before[undone])))
		}
		w.SkipsMinor = target != "" && p.SkipsMinor(marker.PlanTargetOf(runs), marker.PlanTargetOf(target))
		n.OSVersion, r.Current, r.Available = runs, runs, target
		return w
	}
	return &lifecycle.Wish{Has: has}
}

// hasTarget reports whether a node that runs a version has the target of a plan; no target is had by none.
func hasTarget(w *lifecycle.Wish, runs, target string) bool {
	return target != "" && marker.PlanHas(runs, target) && (!w.Downgrade || marker.PlanHas(target, runs))
}

// undoes reports whether a node that goes to a plan's target doesn't have that of an earlier plan any more: the two
// would take turns for ever.
func undoes(s *fleet.Snapshot, set *policy.Settings, w *lifecycle.Wish, target, earlier string) bool {
	e, _ := wish(set.PlanNamed(marker.PlanOf(earlier)), s)
	return target != "" && w.Plan.Proof != marker.ProofContent && e.Plan.Proof == w.Plan.Proof &&
		!hasTarget(e, e.Plan.Version(marker.PlanTargetOf(target)), earlier)
}

// goesOn looks whether the plan that a node's attempt is of is as it was when the attempt began. What the runner has
// not said again, after a start of its own for example, has not changed.
func goesOn(n *fleet.Node, s *fleet.Snapshot, set *policy.Settings) *lifecycle.Wish {
	mark, r, to := n.Marks.Plan, &n.Marks.Report, n.Marks.Intent.Target
	n.OSVersion = shows(n, mark)
	if marker.PlanHas(n.OSVersion, to) && marker.PlanHas(to, n.OSVersion) {
		// Also where the one is written with a leading v and the other is not.
		n.OSVersion = to
	}
	if mark.Proof == marker.ProofContent {
		// No kubelet shows it: the controller reads the pod's word itself before it believes the runner's.
		n.OSVersion = r.Current
	}
	r.Available = ""
	p := set.PlanNamed(mark.Name)
	if p == nil && s.NoPolicy {
		// It isn't known whether there is such a plan; that nothing starts has this reason too.
		r.Available = to
		return &lifecycle.Wish{}
	}
	if p == nil || !p.Selector.Matches(n.Labels) {
		return &lifecycle.Wish{}
	}
	w, target := wish(p, s)
	switch {
	case w.NoTarget.Reason == plan.ReasonTargetUnknown:
		r.Available = to
	case marker.PlanHas(n.OSVersion, target) && !marker.PlanHas(target, n.OSVersion) && !w.Downgrade:
		// Others have taken the node above it, so that it has the target, as one at rest has.
	case w.Plan.Same(mark):
		r.Available = target
	}
	return w
}

// wish is what a plan wants of any node, and the version that it targets; empty where that isn't known.
func wish(p *policy.Plan, s *fleet.Snapshot) (*lifecycle.Wish, string) {
	t := s.PlanTargets[p.Name]
	looked := t.Apply == p.Apply && t.Prepare == p.Prepare && t.Channel == p.Target.Channel
	w := &lifecycle.Wish{Prepare: p.Prepare, Downgrade: p.Versions.Downgrade,
		Plan: marker.Plan{Name: p.Name, Digest: t.Digest, Proof: p.Proof, Effect: p.Effect, Drain: p.Drains(), Apply: p.Apply, Deadline: p.Deadline.String()}}
	value := p.Target.Version
	switch {
	case p.Target.Content:
		value = marker.ContentTarget
	case p.Target.Channel != "":
		value = t.Version
	}
	switch {
	case !looked:
		w.NoTarget = plan.Refuse(plan.ReasonTargetUnknown, plan.Messagef("the runner has not looked at the plan %s yet", p.Name))
	case t.Missing:
		w.NoTarget = plan.Refuse(plan.ReasonTemplateMissing, plan.Messagef("plan %s: %s", p.Name, t.Problem))
	case t.Digest == "" || value == "":
		w.NoTarget = plan.Refuse(plan.ReasonTargetUnknown, plan.Messagef("plan %s: %s", p.Name, t.Problem))
	}
	if value == "" || p.Target.Content && w.NoTarget.Refuses() {
		return w, ""
	}
	return w, w.Plan.Version(value)
}

// shows is what a node runs by a plan's proof: as its kubelet says, or the content that it was given.
func shows(n *fleet.Node, p *marker.Plan) string {
	if p.Proof == marker.ProofContent {
		return p.Done(n.Marks.PlanDone[p.Name])
	}
	return p.Version(n.Info.Shows(p.Proof))
}

// runs is what a member runs where the question is for a version: of a plan, what it shows by that; false: it has
// nothing to do with the version.
func (p *planner) runs(m *member, version string) (string, bool) {
	name := marker.PlanOf(version)
	if (name == "") != (m.Wish == nil) {
		return "", false
	}
	if name == "" {
		return m.OSVersion, true
	}
	chosen := p.set.PlanNamed(name)
	if chosen == nil || !chosen.Selector.Matches(m.Labels) {
		return "", false
	}
	w, _ := wish(chosen, &p.Snapshot)
	return shows(m.Node, &w.Plan), true
}

// versionsOf are the rules for a version: those of its plan, or of the group.
func versionsOf(version string, set *policy.Settings, group *policy.Rules) *policy.HostVersions {
	name := marker.PlanOf(version)
	if name == "" {
		return &group.Versions
	}
	if p := set.PlanNamed(name); p != nil {
		return &policy.HostVersions{Versions: p.Versions}
	}
	// A node that is on its way for a plan that is gone is called back for that.
	return &policy.HostVersions{}
}
