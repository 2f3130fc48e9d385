package fleet

import "time"

// Snapshot is the fleet at one moment.
type Snapshot struct {
	// Now is read once for the whole pass.
	Now time.Time
	// Nodes are all nodes of the cluster, sorted by name.
	Nodes []Node
	// SlotsProblem is a sentence on why the list of slots can not be read; nothing starts then.
	SlotsProblem string
	// Slots are the nodes' UIDs, with their names, that hold a slot by the controller's ConfigMap.
	Slots map[string]string
	// PolicyProblem is a sentence on why the policy that stands now can't be read, or why none stands; NoPolicy: and there
	// is none from before that is in force, so nothing starts.
	PolicyProblem string
	NoPolicy      bool
	// PolicyUnrecorded: a policy stands, and the controller's ConfigMap doesn't say yet that this cluster has had one.
	PolicyUnrecorded bool
	// PolicyWarnings are sentences on what was read and may not have been meant.
	PolicyWarnings []string
	// Unwalled is a sentence on the admission policy that doesn't hold the controller's account; empty if it does, or that
	// isn't known.
	Unwalled string
	// Seen is since when each version has been known in this cluster.
	Seen map[string]time.Time
	// Alerts is what the last look at the alerts found; nil if there was none.
	Alerts *Alerts
	// Acknowledged are versions that go on although they failed on many nodes, because a person said so.
	Acknowledged map[string]bool
}

// Managed tells if the operator answers for the node: labelled, disrupted by us, or holding a slot.
func (s *Snapshot) Managed(n *Node) bool {
	_, slot := s.Slots[n.UID]
	return n.Labelled() || n.Disrupted() || slot
}

// Alerts is what a Prometheus said.
type Alerts struct {
	// At is when, URL and Query what was asked.
	At         time.Time
	URL, Query string
	// Standing are the alerts, by name; Failed is a sentence on why they are not known.
	Standing []Alert
	Failed   string
}

// Alert is one that stands. Pending: not for as long yet as it takes to fire.
type Alert struct {
	Name    string
	Pending bool
}
