package plan

import "time"

// Proof is whether a group has proven a version: each of its nodes in the operator's care runs it, is in service, and
// has run it for the group's soak, and it failed on none.
type Proof struct {
	// Group is empty for the nodes in no group.
	Group string `json:"group"`
	Nodes int    `json:"nodes"`
	// Version is the one that all nodes run; empty if there are several, or none.
	Version string `json:"version,omitempty"`
	Proven  bool   `json:"proven"`
	// Since is since when the last of the nodes has run it.
	Since time.Time `json:"since,omitzero"`
	// Reason and Message are why it is not proven, and NotBefore is when that may be over by the clock alone.
	Reason    Lack      `json:"reason,omitempty"`
	Message   Message   `json:"message,omitzero"`
	NotBefore time.Time `json:"notBefore,omitzero"`
}

// Lack is what a node, or a group, lacks for a version to count as proven there.
type Lack string

// The lacks.
const (
	// LackPolicy: no policy is in force, so the groups aren't known.
	LackPolicy Lack = "NoPolicy"
	// LackNode: no node is in the operator's care.
	LackNode Lack = "NoNode"
	// LackOne: the nodes run several versions.
	LackOne Lack = "SeveralVersions"
	// LackVersion: a node does not run it, or agent and kubelet don't agree on that.
	LackVersion Lack = "NotRunning"
	// LackService: a node that runs it is not back in service.
	LackService Lack = "NotInService"
	// LackTime: a node has not run it for long enough.
	LackTime Lack = "Soaking"
	// LackSuccess: it failed on a node.
	LackSuccess Lack = "Failed"
	// LackLeave: the policy denies it, or pins the group to another, or it was stopped.
	LackLeave Lack = "NotAllowed"
)

// Lacks is the closed list.
func Lacks() []Lack {
	return []Lack{LackPolicy, LackNode, LackOne, LackVersion, LackService, LackTime, LackSuccess, LackLeave}
}
