package planner

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner/check"
)

// proofs returns which version each group has proven. It is shown, for what comes after this cluster to go by; nothing
// that decides here asks for it.
func (p *planner) proofs() []plan.Proof {
	proofs := []plan.Proof{}
	for _, g := range p.groups {
		proofs = append(proofs, p.proof(g))
	}
	if rest := p.proof(p.fleet); rest.Nodes > 0 || len(proofs) == 0 {
		proofs = append(proofs, rest)
	}
	return proofs
}

// proof goes by the rule by which a group waits for another one, but for one version alone, and for this group's own
// soak. A node that plans update has no part in it, nor one on its way out.
func (p *planner) proof(g *group) plan.Proof {
	out := plan.Proof{}
	if g.policy != nil {
		out.Group = g.policy.Name
	}
	var nodes []*member
	runs := map[string][]string{}
	for i := range p.members {
		if m := &p.members[i]; m.group == g && m.Labelled() && !m.Planned() && m.Leaving == "" {
			nodes = append(nodes, m)
			runs[m.OSVersion] = append(runs[m.OSVersion], m.Name)
		}
	}
	out.Nodes = len(nodes)
	lacks := func(l plan.Lack, m plan.Message) plan.Proof {
		out.Reason, out.Message = l, m
		return out
	}
	switch {
	case p.NoPolicy:
		return lacks(plan.LackPolicy, check.NoPolicy(&p.Snapshot).Message)
	case len(nodes) == 0:
		return lacks(plan.LackNode, plan.Messagef("no node of it is in the operator's care"))
	case len(runs) > 1:
		return lacks(plan.LackOne, several(runs))
	case nodes[0].OSVersion == "":
		return lacks(plan.LackVersion, plan.Messagef("of %s the kubelet reports no version", nodes[0].Name))
	}
	out.Version = nodes[0].OSVersion
	w := &check.Wave{Version: out.Version, Down: true, Soak: g.scope.Rules().Soak}
	w.Since, w.Seen = p.FirstSeen[out.Version]
	for _, m := range nodes {
		if since := w.HasSince(&m.View); since.After(out.Since) {
			out.Since = since
		}
		lack, message, end := w.Lacks(&m.View, m.OSVersion)
		if r := m.Marks.Report.Current; lack == "" && r != "" && r != out.Version {
			lack, message = plan.LackVersion, plan.Messagef("of %s the agent reports %s, and the kubelet %s", m.Name, r, out.Version)
		}
		if why := failedWith(m, out.Version); why != "" && !p.Acknowledged[out.Version] {
			lack, message = plan.LackSuccess, plan.Messagef("%s failed with %s (%s); if that was not its fault: `kubectl bottlerocket acknowledge %s`",
				m.Name, out.Version, why, out.Version)
		}
		// The clock ends a soak: what else is lacking is said first, and of several soaks the longest.
		if worse := out.Reason == "" || out.Reason == plan.LackTime && (lack != plan.LackTime || end.After(out.NotBefore)); lack != "" && worse {
			out.Reason, out.Message, out.NotBefore = lack, message, end
		}
	}
	if denied := p.version(g.scope.Rules(), out.Version).Denied; denied.Refuses() {
		out.Reason, out.Message, out.NotBefore = plan.LackLeave, denied.Message, denied.Again
	}
	out.Proven = out.Reason == ""
	return out
}

// failedWith is for what a version failed on a node, as far as that is remembered and was to blame on the version;
// empty if it didn't.
func failedWith(m *member, version string) string {
	if f := m.Marks.Failure; f != nil && slices.Contains(f.Broken, version) {
		return f.Reason
	}
	for _, a := range m.Marks.History {
		blamed := a.Reason == string(plan.ReasonRolledBack) || a.Reason == string(plan.ReasonWorkloadsNotReady)
		if a.Version == version && a.Outcome == marker.OutcomeFailed && a.Cycle == "" && blamed && !a.Retried {
			return a.Reason
		}
	}
	return ""
}

// several says which versions run on which nodes.
func several(runs map[string][]string) plan.Message {
	var each []string
	for _, v := range slices.SortedFunc(maps.Keys(runs), func(a, b string) int { return marker.CompareVersions(b, a) }) {
		name := v
		if v == "" {
			name = "an unknown version"
		}
		each = append(each, fmt.Sprintf("%s on %s", name, plan.Some(runs[v])))
	}
	return plan.Text(strings.Join(each, "; "))
}
