package chaos

import (
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
)

// budget (S1): no cordon takes the count of nodes out of service above the limit, Lost ones up to
// their own limit on top; and no node is cordoned that does not stand in the list of slots at that moment.
func budget(s *story) {
	for _, st := range s.nodes.all() {
		if st.before.disrupted() || !st.after.disrupted() {
			continue
		}
		s.figures.Cordons++
		held, lost := 0, 0
		for _, name := range sortedNodes(s.nodes) {
			if n, ok := s.nodes.inHandsAt(name, st.after.version); ok {
				held++
				if s.lost(n, st.at) {
					lost++
				}
			}
		}
		s.figures.MostDisrupted = max(s.figures.MostDisrupted, held)
		s.check(held-min(lost, s.terms.MaxLost) <= s.terms.Limit, st.node, st.at,
			"cordoned as one of %d nodes out of service, %d of them Lost; the limit is %d", held, lost, s.terms.Limit)
		s.check(s.slots.held(st.after.uid, st.after.version), st.node, st.at, "cordoned without a slot")
	}
}

// lost reports whether a node is past its deadline after the point of no return, as far as the log shows.
func (s *story) lost(n nodeState, at time.Time) bool {
	m := n.marks()
	switch intent.PhaseOf(m) {
	case intent.PhaseRebooting:
		return intent.PointOfNoReturn(m) && at.After(m.Intent.Time.Add(s.terms.RebootDeadline))
	case intent.PhaseReturning:
		return at.After(m.Intent.Time.Add(s.terms.RebootDeadline + s.terms.ReturnDeadline))
	case intent.PhaseVerifying:
		return at.After(m.Intent.Time.Add(s.terms.Soak + s.terms.ReturnDeadline))
	default:
		return false
	}
}
