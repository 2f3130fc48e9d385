package chaos

import (
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// successes (S7): a node is called updated only when the kubelet's own status shows another boot than the
// one to be left and the target, the agent's report says the same, and the node was Ready for the whole
// soak.
func successes(s *story) {
	for _, name := range sortedNodes(s.nodes) {
		list := s.nodes[name]
		for i, st := range list {
			if !st.before.disrupted() || st.after.disrupted() {
				continue
			}
			outcome := marker.OutcomeAbandoned
			h := st.after.marks().History
			if len(h) > 0 {
				outcome = h[len(h)-1].Outcome
			}
			switch outcome {
			case marker.OutcomeUpdated:
				s.figures.Updated++
				s.success(list[:i+1], h[len(h)-1].Version)
			case marker.OutcomeFailed:
				s.figures.Failed++
			default:
				s.figures.Abandoned++
			}
		}
	}
}

// success looks at the last of these steps, which claims it.
func (s *story) success(list []step, version string) {
	st := list[len(list)-1]
	b, a := st.before, st.after
	from, target := b.mark(marker.KeyRebootFrom), b.mark(marker.KeyTargetVersion)
	s.check(target != "" && version == target, st.node, st.at, "counted as updated to %q while %q was the target", version, target)
	s.check(a.bootID != "" && from != "" && a.bootID != from, st.node, st.at, "counted as updated; the kubelet's boot is %q, to be left was %q", a.bootID, from)
	s.check(a.os == target, st.node, st.at, "counted as updated to %q; the kubelet says %q", target, a.os)
	s.check(a.mark(marker.KeyBootID) == a.bootID, st.node, st.at, "counted as updated; the agent's boot is %q, the kubelet's %q", a.mark(marker.KeyBootID), a.bootID)
	s.check(a.mark(marker.KeyCurrentVersion) == target, st.node, st.at, "counted as updated to %q; the agent says %q", target, a.mark(marker.KeyCurrentVersion))
	s.check(a.ready, st.node, st.at, "counted as updated while it is not Ready")
	d := b.marks().Disruption
	if d == nil || d.Soak == nil {
		s.check(false, st.node, st.at, "counted as updated without a soak")
		return
	}
	if !st.hole() {
		s.check(!st.at.Before(d.Soak.Add(s.terms.Soak)), st.node, st.at, "counted as updated %s after the soak of %s began", st.at.Sub(*d.Soak), s.terms.Soak)
	}
	// Back to the step that began this soak.
	for i := len(list) - 1; i >= 0; i-- {
		was := list[i].after.marks().Disruption
		if i < len(list)-1 && (was == nil || was.Soak == nil || !was.Soak.Equal(*d.Soak)) {
			break
		}
		n := list[i].after
		s.check(n.ready && n.readySince == a.readySince, st.node, list[i].at, "was not Ready throughout the soak that ended at %s", st.at.Format("15:04:05.000"))
	}
}
