package notice

import (
	"fmt"
	"strings"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plain"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/rollout"
)

// Notice is one thing to tell.
type Notice struct {
	Occasion policy.Occasion `json:"occasion"`
	// Node is the name of the node that it is about; empty if it is about the fleet.
	Node    string `json:"node,omitempty"`
	Version string `json:"version,omitempty"`
	// Reason is one of plan.Reasons; empty if there is none.
	Reason  string    `json:"reason,omitempty"`
	Message string    `json:"message"`
	At      time.Time `json:"at"`
}

// maxMessage is how long a notice's message may be, in bytes.
const maxMessage = 300

// thing is what there is to tell. key identifies it in the Book, of the occurrence: the same thing may happen again.
type thing struct {
	key, of string
	notice  Notice
}

// nodes begins the keys of what is told of nodes. There is one for each node and occasion: whatever a node says, it
// takes no more room than that.
const nodes = "Node"

// ofNodes returns what there is to tell of single nodes.
func ofNodes(s *fleet.Snapshot, p *plan.Plan) []thing {
	var things []thing
	rollout.Nodes(s, p, func(d *plan.Decision, n *fleet.Node) { things = append(things, ofNode(d, &n.Marks, s.Now)...) })
	return things
}

// ofNode returns what there is to tell of one node.
func ofNode(d *plan.Decision, m *marker.Marks, now time.Time) []thing {
	var things []thing
	if f := m.Failure; f != nil && f.Count > 0 {
		version := ""
		if len(f.Versions) > 0 {
			version = f.Versions[len(f.Versions)-1]
		}
		things = append(things, thing{key: string(policy.NodeFailed) + "/" + d.UID, of: f.At.UTC().Format(time.RFC3339),
			notice: Notice{Occasion: policy.NodeFailed, Node: d.Node, Version: version, Reason: f.Reason, At: f.At,
				Message: fmt.Sprintf("node %s failed on its way to %s: %s", d.Node, version, f.Message)}})
	}
	if d.Phase == intent.PhaseLost {
		things = append(things, thing{key: string(policy.NodeLost) + "/" + d.UID, of: m.Intent.ID,
			notice: Notice{Occasion: policy.NodeLost, Node: d.Node, Version: d.Target, Reason: string(plan.ReasonLost), At: now,
				Message: fmt.Sprintf("node %s is Lost: %s", d.Node, d.Message)}})
	}
	return things
}

// stopped returns what there is to tell of versions that are stopped.
func stopped(p *plan.Plan, now time.Time) []thing {
	var things []thing
	for _, v := range p.Stopped {
		things = append(things, thing{key: string(policy.VersionStopped) + "/" + v.Version,
			notice: Notice{Occasion: policy.VersionStopped, Version: v.Version, Reason: string(plan.ReasonVersionStopped), At: now,
				Message: v.Message.String()}})
	}
	return things
}

// began is the beginning of a rollout.
func began(c *rollout.Census, version string, at time.Time) thing {
	return thing{key: string(policy.RolloutBegan) + "/" + version, of: at.Format(time.RFC3339),
		notice: Notice{Occasion: policy.RolloutBegan, Version: version, At: at,
			Message: fmt.Sprintf("the rollout of %s began: %d of %d nodes are to go to it", version, c.UnderWay[version]+c.Awaits[version], c.Managed)}}
}

// ended is the end of a rollout that began at that time.
func ended(c *rollout.Census, version string, began, now time.Time) thing {
	took := plain.Duration(max(0, now.Sub(began).Round(time.Second)))
	message := fmt.Sprintf("the rollout of %s ended after %s: %d of %d nodes run it", version, took, c.Runs[version], c.Managed)
	aside := c.SetAside[version]
	var reasons []string
	for _, r := range plan.Reasons() {
		if n := aside[r]; n > 0 {
			reasons = append(reasons, fmt.Sprintf("%d %s", n, r))
		}
	}
	if len(reasons) > 0 {
		message += "; waiting for a user: " + strings.Join(reasons, ", ")
	}
	return thing{key: string(policy.RolloutEnded) + "/" + version, of: began.Format(time.RFC3339),
		notice: Notice{Occasion: policy.RolloutEnded, Version: version, At: now, Message: message}}
}
