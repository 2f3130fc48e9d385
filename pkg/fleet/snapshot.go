package fleet

import "time"

// Snapshot is the fleet at one moment.
type Snapshot struct {
	// Now is read once for the whole pass.
	Now time.Time
	// Nodes are all nodes of the cluster, by name.
	Nodes []Node
	// SlotsProblem is a sentence on why the list of slots can't be read; nothing starts then.
	SlotsProblem string
	// Slots are the nodes that hold a slot by the controller's ConfigMap: names by UID.
	Slots map[string]string
	// PolicyProblem is a sentence on why there is no readable policy now. NoPolicy: no earlier one is in force either, so
	// nothing starts.
	PolicyProblem string
	NoPolicy      bool
	// PolicyUnrecorded: there is a policy, and the controller's ConfigMap doesn't say yet that this cluster has had one.
	PolicyUnrecorded bool
	// PolicyWarnings are sentences on what in the policy may be a mistake.
	PolicyWarnings []string
	// AdmissionProblem is a sentence on the admission policies not binding the controller's account; empty if they do, or
	// if that isn't known.
	AdmissionProblem string
	// FirstSeen is when each version was first seen in this cluster.
	FirstSeen map[string]time.Time
	// PlanTargets are what the runner has found out of the policy's plans, by name.
	PlanTargets map[string]PlanTarget
	// Notices is what is kept of messages, as pkg/notice writes it.
	Notices string
	// Rollouts is what is remembered of rollouts, as pkg/rollout writes it.
	Rollouts string
	// Alerts is what the last look at the alerts found; nil if there was none.
	Alerts *Alerts
	// Acknowledged are versions that go on although they failed on many nodes, because a user acknowledged that.
	Acknowledged map[string]bool
}

// Managed reports whether the node is the operator's: labelled, disrupted, locked, or holding a slot.
func (s *Snapshot) Managed(n *Node) bool {
	_, slot := s.Slots[n.UID]
	return n.Labelled() || n.Disrupted() || n.Marks.Lock != nil || slot
}

// Alerts are the alerts that stop the operator, as Prometheus has them.
type Alerts struct {
	// At is when the query was made.
	At         time.Time
	URL, Query string
	// Active are the pending and firing alerts, by name. Failed is a sentence on why they are not known.
	Active []Alert
	Failed string
}

// Alert is one alert. Pending: it has not stood for long enough to fire.
type Alert struct {
	Name    string
	Pending bool
}
