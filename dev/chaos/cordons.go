package chaos

// cordons (S5): the operator records what stood there before its cordon, takes back its own cordon alone,
// and in the end every node is as its users left it.
func cordons(s *story) {
	for _, name := range sortedNodes(s.nodes) {
		cordoned := false
		for _, st := range s.nodes[name] {
			b, a := st.before, st.after
			if st.first {
				cordoned = a.unschedulable
				continue
			}
			if !st.hole() && !isOperator(st.by) && (a.unschedulable != b.unschedulable || st.patch.cordons) {
				cordoned = a.unschedulable
			}
			d := b.marks().Disruption
			switch {
			case st.by == controllerAccount && a.unschedulable && !b.unschedulable:
				s.check(a.disrupted(), name, st.at, "cordoned without a record of it")
			case st.by == controllerAccount && b.unschedulable && !a.unschedulable:
				s.check(d != nil && !d.WasUnschedulable, name, st.at, "uncordoned, and the cordon was not the operator's")
			}
			if made := a.marks().Disruption; d == nil && made != nil {
				// In a hole what stood before may have been lost too.
				s.check(st.hole() || made.WasUnschedulable == b.unschedulable, name, st.at,
					"the record says that the node was cordoned before: %t; it was: %t", made.WasUnschedulable, b.unschedulable)
				s.check(a.unschedulable, name, st.at, "out of service and not cordoned")
			}
		}
		end := s.nodes.last(name)
		if !end.unschedulable {
			s.figures.NodesScheduled++
		}
		s.check(end.unschedulable == cordoned, name, s.terms.Rest.To, "ends cordoned: %t; users had it cordoned: %t", end.unschedulable, cordoned)
	}
}
