package chaos

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// reports (S4): agents don't talk to the API server at all. What the proxy writes for them is a report:
// the agent's keys alone, made from a version of the node that stood then, answering the intent that
// stands, about the host of that very node.
func reports(s *story) {
	host := map[string]string{} // by boot ID
	for name, list := range s.nodes {
		for _, st := range list {
			host[st.after.bootID] = name
		}
	}
	// An API server takes a policy that was just applied into force some seconds later, so what counts is the last answer.
	walled := map[string]time.Time{}
	for _, e := range s.log.Entries {
		if e.dry() && e.Answer.Code == http.StatusForbidden {
			walled[e.User.Username] = e.Received.Time
		}
	}
	for _, e := range s.log.Entries {
		s.check(e.User.Username != agentAccount, e.Object.Name, e.Received.Time, "an agent's account was used on the API server: %s %s", e.Verb, e.RequestURI)
		s.check(!e.dry() || !isOperator(e.User.Username) || !e.succeeded() || walled[e.User.Username].After(e.Received.Time), e.Object.Name, e.Received.Time,
			"the admission policy of %s let a foreign write through: %s", e.User.Username, e.RequestURI)
		if e.User.Username == proxyAccount && e.writes() && e.Object.Resource == "nodes" {
			s.check(onlyReport(e), e.Object.Name, e.Received.Time, "the proxy asked for more than a report: %s %s %s", e.Verb, e.RequestURI, e.Request)
		}
	}
	for _, st := range s.nodes.all() {
		if st.by != proxyAccount || st.first || st.hole() || !st.entry.writes() {
			continue
		}
		s.answer(st)
		boot := st.patch.Metadata.Annotations[string(marker.KeyBootID)]
		if boot != nil {
			of, known := host[*boot]
			s.check(!known || of == st.node, st.node, st.at, "reports the boot of %s", of)
		}
	}
}

func (s *story) answer(st step) {
	answers := false
	for _, k := range []marker.Key{marker.KeyActiveID, marker.KeyActionState, marker.KeyMessage} {
		_, ok := st.patch.Metadata.Annotations[string(k)]
		answers = answers || ok
	}
	if answers {
		id, standing := st.after.mark(marker.KeyActiveID), st.after.mark(marker.KeyIntentID)
		s.check(id == standing && id != "", st.node, st.at, "answers intent %q while %q stands", id, standing)
	}
}

// onlyReport reports whether a request is a patch of a node's report and nothing else.
func onlyReport(e *Entry) bool {
	if e.Verb != "patch" || e.Object.Subresource != "" {
		return false
	}
	if len(e.Request) == 0 {
		return !e.succeeded() // refused before it was read
	}
	var body, metadata map[string]json.RawMessage
	if json.Unmarshal(e.Request, &body) != nil || len(body) != 1 || json.Unmarshal(body["metadata"], &metadata) != nil {
		return false
	}
	for field := range metadata {
		if field != "annotations" && field != "resourceVersion" {
			return false
		}
	}
	p := parsePatch(e.Request)
	for k := range p.Metadata.Annotations {
		if !marker.Owns(marker.WriterAgent, k) {
			return false
		}
	}
	return p.Metadata.ResourceVersion != ""
}
