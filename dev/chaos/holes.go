package chaos

// holes: what the log lacks is explained by an outage, or by a write whose outcome is unknown. Without that
// the judge would judge by a log that can't be trusted.
func holes(s *story) {
	for _, name := range sortedNodes(s.nodes) {
		list := s.nodes[name]
		for i, st := range list {
			if !st.hole() {
				continue
			}
			s.figures.Holes++
			from := st.at
			if i > 0 {
				from = list[i-1].at
			}
			explained := s.inOutage(from, st.at)
			for _, e := range s.log.Entries {
				explained = explained || e.uncertain() && e.Object.Resource == "nodes" && e.Object.Name == name &&
					!e.Answered.Time.Before(from) && !e.Received.After(st.at)
			}
			s.check(explained, name, st.at, "changed between versions %d and %d, and no outage explains why the log does not say how", st.before.version, st.after.version)
		}
	}
}
