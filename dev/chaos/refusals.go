package chaos

// maxRefusals is how often the same account may be refused on the same version of a node: once by each of
// two processes, and once more by chance.
const maxRefusals = 3

// refusals: a process whose write was refused, as another client had written, looks again before it
// retries. A watch may be behind for long, and a retry from it would be a request every few milliseconds.
func refusals(s *story) {
	type attempt struct{ by, node, version string }
	refused := map[attempt]int{}
	for _, e := range s.log.Entries {
		if !isOperator(e.User.Username) || e.Object.Resource != "nodes" || e.Answer.Code != 409 {
			continue
		}
		a := attempt{e.User.Username, e.Object.Name, parsePatch(e.Request).Metadata.ResourceVersion}
		refused[a]++
		s.check(refused[a] != maxRefusals+1, a.node, e.Received.Time, "%s was refused more than %d times on version %s", a.by, maxRefusals, a.version)
	}
}
