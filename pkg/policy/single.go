package policy

// SingleNode is what becomes of the only node of a cluster, whose workloads have nowhere to go.
type SingleNode string

// The answers.
const (
	// SingleNodeNever lets it wait: an administrator must say that the only node may go down.
	SingleNodeNever SingleNode = "never"
	// SingleNodeAllow updates it with its workloads left in place: they go down with the host, and come back with it.
	SingleNodeAllow SingleNode = "allow"
)
