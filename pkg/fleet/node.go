package fleet

import (
	"slices"
	"strings"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// Interface is how a labelled host is updated.
type Interface string

const (
	// InterfaceNone: the node isn't labelled.
	InterfaceNone Interface = ""
	// InterfaceUpdateAPI: label updater-interface-version=2.0.0, or a label of the first operator.
	InterfaceUpdateAPI Interface = "2.0.0"
	// InterfacePlan: label updater-interface-version=plan. The policy's plans update the node, whatever its system.
	InterfacePlan Interface = "plan"
)

// Known reports whether this build speaks the interface.
func (i Interface) Known() bool { return i == InterfaceUpdateAPI || i == InterfacePlan }

// firstInterface is the value of either label by which the first operator, 0.1.x, ran commands on the host. Every host
// since Bottlerocket 0.4.1 has the Update API too, so it means the same now.
const firstInterface = "1.0.0"

// InterfaceOf returns the interface that a node's labels ask for. An unknown value is returned as it is, that of the
// first label with the label's name.
func InterfaceOf(labels map[string]string) Interface {
	v, named := labels[string(marker.KeyInterfaceVersion)]
	first, firstNamed := labels[string(marker.KeyPlatformVersion)]
	switch {
	case named && v == firstInterface, !named && firstNamed && first == firstInterface:
		return InterfaceUpdateAPI
	case named:
		return Interface(v)
	case firstNamed:
		return Interface(string(marker.KeyPlatformVersion) + "=" + first)
	}
	return InterfaceNone
}

// Node is one node as far as decisions need it.
type Node struct {
	Name            string
	UID             string
	ResourceVersion string
	Interface       Interface
	// Labels are all labels of the node; Zone is the value of ZoneLabel.
	Labels        map[string]string
	Zone          string
	Unschedulable bool
	// Autoscalers are the node's annotations for autoscalers, whether the operator wrote them or not.
	Autoscalers map[string]string
	// Created is when the Node was created, by the API server's clock.
	Created time.Time
	// Ready: the kubelet's Ready condition is True. ReadySince is its lastTransitionTime as text: another machine's clock,
	// compared for change only.
	Ready      bool
	ReadySince string
	// BootID and OSVersion are from the kubelet's nodeInfo; OSVersion is empty for what isn't Bottlerocket.
	BootID    string
	OSVersion string
	// Info is what else the kubelet says of the node; nil but for nodes with InterfacePlan.
	Info *NodeInfo

	// FreshTaint: the taint of new nodes is on it.
	FreshTaint bool
	// Leaving names what is removing the node from the cluster; empty if nothing is.
	Leaving string
	// UnavailableSince is since when the node has not been Ready, or has been cordoned, as far as this process knows; zero
	// if it is available.
	UnavailableSince time.Time

	// HooksAnswered are the annotations that have the value of hook-id, sorted; nil while no hook is asked.
	HooksAnswered []string

	Marks    marker.Marks
	Problems []marker.Problem

	// AgentPod: an agent's pod is on the node. AgentReady: it is Ready.
	AgentPod, AgentReady bool
	// AgentLostSince is since when a node that the operator holds has been Ready without a Ready agent's pod, as far as
	// this process knows; zero if it has one.
	AgentLostSince time.Time
	// ControllerHere: this controller itself runs on the node.
	ControllerHere bool
	// PassedOver: this process has made a whole pass over the node in its phase, so deadlines of that phase may end it.
	// WatchedSince is when it made the first one.
	PassedOver   bool
	WatchedSince time.Time
	// WriteTrouble is nil while this process's writes to the node succeed.
	WriteTrouble *WriteTrouble
	// Forecast is this process's last look at what would block a drain; nil if there was none.
	Forecast *Forecast
	// Checked is this process's last live look in the current disruption; nil if there was none.
	Checked *Checked
	// TakenOut is when this process took the node out of service last; zero if it didn't.
	TakenOut time.Time
	// Evicted is how many pods this process evicted from the node within the last hour, and EvictedUntil when they are
	// fewer.
	Evicted      int
	EvictedUntil time.Time
	// Drain is this process's last eviction pass in the current disruption; nil if there was none.
	Drain *Drain
}

// Forecast is what a look at a node's pods found before its cordon.
type Forecast struct {
	// At is when the look was made, and Next when to look again if there is an obstacle.
	At, Next time.Time
	// Obstacle is what would block the drain, and Message a sentence on it.
	Obstacle Obstacle
	Message  string
	// Workloads are those that had Ready pods on the node, as in Checked; nil if they are not needed.
	Workloads map[string]int
}

// Obstacle is the kind of thing that blocks a drain.
type Obstacle string

// The obstacles.
const (
	// ObstacleNone: the node can be drained.
	ObstacleNone Obstacle = ""
	// ObstacleBudget: a PodDisruptionBudget would not let a pod go.
	ObstacleBudget Obstacle = "budget"
	// ObstacleAwaited: the policy waits for a pod to end.
	ObstacleAwaited Obstacle = "awaited"
	// ObstacleProtected: the policy protects a pod from eviction.
	ObstacleProtected Obstacle = "protected"
	// ObstacleUnknown: the look failed.
	ObstacleUnknown Obstacle = "unknown"
)

// Drain is what an eviction pass found.
type Drain struct {
	// Remaining is how many pods are still to go; 0 means drained.
	Remaining int
	// Blocked is a sentence on the first pod that may not be evicted now; empty if none is blocked.
	Blocked string
	// Unevictable is a sentence on a pod that can't be evicted, however long it is tried; empty if there is none.
	Unevictable string
	// Awaited is a sentence on a pod that ends by itself, Waiting on anything else that the pass waits for.
	Awaited, Waiting string
	// Forced: the pass deleted what it found.
	Forced bool
	// Failed is a sentence on why the pass failed; nothing is known then.
	Failed string
	// Next is when to make another pass.
	Next time.Time
}

// ZoneLabel is the label of a node's zone, https://kubernetes.io/docs/reference/labels-annotations-taints/.
const ZoneLabel = "topology.kubernetes.io/zone"

// Label returns the value of a label. The zone, which is needed most, is read once for each node.
func (n *Node) Label(key string) string {
	if key == ZoneLabel {
		return n.Zone
	}
	return n.Labels[key]
}

// Labelled reports whether a user put the node into the operator's care.
func (n *Node) Labelled() bool { return n.Interface != InterfaceNone }

// Planned reports whether plans update the node, or an attempt of one stands on it.
func (n *Node) Planned() bool { return n.Interface == InterfacePlan || n.Marks.Plan != nil }

// Phase returns the node's phase by its marks; those that depend on the time are the planner's.
func (n *Node) Phase() intent.Phase {
	if len(n.Problems) > 0 {
		return intent.PhaseUnreadable
	}
	return intent.PhaseOf(n.Marks)
}

// Disrupted reports whether the node has a disruption. An unreadable one counts.
func (n *Node) Disrupted() bool { return n.Marks.Disruption != nil }

// DisruptionUnreadable reports whether what the node shows of a disruption can't be read.
func (n *Node) DisruptionUnreadable() bool {
	return slices.ContainsFunc(n.Problems, func(p marker.Problem) bool { return p.Key == marker.KeyDisruption })
}

// Marked reports whether the node has a mark of an intent, a disruption or a report.
func (n *Node) Marked() bool {
	return n.Marks.Intent.ID != "" || n.Disrupted() || n.Marks.Report.Protocol > 0
}

// OSVersion returns the version in a kubelet's osImage, which is os-release's PRETTY_NAME:
// "Bottlerocket OS 1.26.1 (aws-k8s-1.31)". It is empty for any other operating system.
func OSVersion(osImage string) string {
	rest, ok := strings.CutPrefix(osImage, "Bottlerocket OS ")
	if !ok {
		return ""
	}
	v, _, _ := strings.Cut(rest, " ")
	if !marker.ValidVersion(v) {
		return ""
	}
	return v
}
