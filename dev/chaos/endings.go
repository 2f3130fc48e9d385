package chaos

import "github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"

// updated (L1): in the end every node runs the version by both witnesses, and is not disrupted.
func updated(s *story) {
	s.check(len(s.nodes) == s.terms.Nodes, "", s.terms.Rest.To, "the log knows %d nodes of %d", len(s.nodes), s.terms.Nodes)
	for _, name := range sortedNodes(s.nodes) {
		n := s.nodes.last(name)
		ok := n.os == s.terms.Version && n.mark(marker.KeyCurrentVersion) == s.terms.Version
		if ok {
			s.figures.NodesOnVersion++
		}
		s.check(ok, name, s.terms.Rest.To, "ends on %q by its kubelet and %q by its agent, not on %s", n.os, n.mark(marker.KeyCurrentVersion), s.terms.Version)
		s.check(!n.disrupted(), name, s.terms.Rest.To, "ends out of service")
	}
}

// rest (L4): while nothing changes the operator writes nothing to Nodes, ConfigMaps or Events.
func rest(s *story) {
	s.check(s.terms.Rest.To.After(s.terms.Rest.From), "", s.terms.Rest.To, "there was no time of rest to look at")
	for _, e := range s.log.Entries {
		if !s.terms.Rest.meets(e.Received.Time, e.Received.Time) || !e.writes() || !isOperator(e.User.Username) {
			continue
		}
		switch e.Object.Resource {
		case "nodes", "configmaps", "events":
			s.check(false, e.Object.Name, e.Received.Time, "%s wrote at rest: %s %s", e.User.Username, e.Verb, e.RequestURI)
		}
	}
}
