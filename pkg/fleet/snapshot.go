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
}

// Schedulable counts the nodes that take new pods now: not cordoned, and Ready.
func (s Snapshot) Schedulable() int {
	n := 0
	for _, node := range s.Nodes {
		if !node.Unschedulable && node.Ready {
			n++
		}
	}
	return n
}

// Managed tells if the operator answers for the node: labelled, disrupted by us, or holding a slot.
func (s Snapshot) Managed(n Node) bool {
	_, slot := s.Slots[n.UID]
	return n.Labelled() || n.Disrupted() || slot
}
