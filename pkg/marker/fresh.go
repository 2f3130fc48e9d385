package marker

// TaintFresh is the key of the startup taint that keeps workloads away from a new node until it is updated. Users have
// it put on; its effect is NoSchedule, and the operator takes it off.
const TaintFresh = Prefix + "fresh"

// FreshMost is how often the operator takes the taint off a node. What puts it back after that means it.
const FreshMost = 3

// Fresh is what became of the taint of a node.
type Fresh struct {
	// Why is the reason for which it was taken off last, and Times how often that was.
	Why   string `json:"why"`
	Times int    `json:"times"`

	extra extra
}
