package fleet

import (
	"strings"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// Interface is how a labelled host wants to be updated.
type Interface string

const (
	// InterfaceNone: the node isn't labelled.
	InterfaceNone Interface = ""
	// InterfaceUpdateAPI: label updater-interface-version=2.0.0, or what the first operator's users wrote.
	InterfaceUpdateAPI Interface = "2.0.0"
)

// firstInterface is what the first operator, 0.1.x, read as updates by commands on the host, in either label. Every host
// since Bottlerocket 0.4.1 has the Update API as well, so it means the same.
const firstInterface = "1.0.0"

// InterfaceOf reads the labels of a node. A value that isn't known is returned as it stands, one of the label's first
// name with that name.
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
	// Labels are all of the node's, and Zone is that of ZoneLabel among them.
	Labels        map[string]string
	Zone          string
	Unschedulable bool
	// Autoscalers are the node's annotations for autoscalers, ours and others'.
	Autoscalers map[string]string
	// Created is when the Node was made, by the API server's clock.
	Created time.Time
	// Ready is the kubelet's Ready condition being True; ReadySince its lastTransitionTime, another
	// machine's clock as text, compared for change only.
	Ready      bool
	ReadySince string
	// BootID and OSVersion are the kubelet's own nodeInfo; OSVersion is empty for what isn't Bottlerocket.
	BootID    string
	OSVersion string

	// Leaving says who is taking the node out of the cluster; empty if nobody is.
	Leaving string
	// UnavailableSince is since when, as far as this process knows, the node has not been Ready or was cordoned;
	// zero if it is neither, or was not for as long as this process has looked.
	UnavailableSince time.Time

	// HooksAnswered are annotations that have the value of hook-id, sorted; nil while no hook is asked.
	HooksAnswered []string

	Marks    marker.Marks
	Problems []marker.Problem

	// AgentPod tells if an agent's pod is on the node, AgentReady if it is Ready.
	AgentPod, AgentReady bool
	// AgentLostSince is since when this process has seen no Ready agent's pod on a Ready node that the operator holds; zero
	// if there is one, or that isn't known.
	AgentLostSince time.Time
	// ControllerHere: this very controller runs there.
	ControllerHere bool
	// PassedOver: this process has made a whole pass over the node in the phase that it is in, so
	// deadlines of that phase may fire. WatchedSince is when it made the first one.
	PassedOver   bool
	WatchedSince time.Time
	// WriteTrouble is nil while this process's writes to the node go well.
	WriteTrouble *WriteTrouble
	// Forecast is the last look of this process at what would keep a drain from its end; nil if there was none.
	Forecast *Forecast
	// Checked is the last live look of this process in the current disruption; nil if there was none.
	Checked *Checked
	// TakenOut is when this process took the node out of service last; zero if it didn't.
	TakenOut time.Time
	// Evicted is how many pods this process evicted from the node within the last hour, and EvictedUntil when they are
	// fewer.
	Evicted      int
	EvictedUntil time.Time
	// Drain is the last eviction pass of this process over the current disruption; nil if there was none.
	Drain *Drain
}

// Forecast is what a look at a node's pods, before its cordon, found.
type Forecast struct {
	// At is when it was made, and Next when another one is worth while if something stands in the way.
	At, Next time.Time
	// Obstacle is what kind of thing that is, and Message a sentence on it.
	Obstacle Obstacle
	Message  string
	// Workloads are those that had Ready pods on the node, as in Checked; nil if nobody asked for them.
	Workloads map[string]int
}

// Obstacle is a kind of thing that keeps a node from being drained.
type Obstacle string

// The obstacles.
const (
	// ObstacleNone: the node can be drained.
	ObstacleNone Obstacle = ""
	// ObstacleBudget: a PodDisruptionBudget would not let a pod go.
	ObstacleBudget Obstacle = "budget"
	// ObstacleAwaited: a pod runs whose end the policy waits for.
	ObstacleAwaited Obstacle = "awaited"
	// ObstacleProtected: the policy lets nobody evict a pod.
	ObstacleProtected Obstacle = "protected"
	// ObstacleUnknown: the look could not be made.
	ObstacleUnknown Obstacle = "unknown"
)

// Drain is what an eviction pass found.
type Drain struct {
	// Remaining is how many pods are still to go; 0 means drained.
	Remaining int
	// Blocked is a sentence on the first pod that may not be evicted now; empty if none is blocked.
	Blocked string
	// Hopeless is a sentence on a pod that will never be let go; empty if there is none.
	Hopeless string
	// Awaited is a sentence on a pod that ends by itself, Waiting on what the pass waits for otherwise.
	Awaited, Waiting string
	// Forced: the pass deleted what it found.
	Forced bool
	// Failed is a sentence on why the pass could not be made; nothing is known then.
	Failed string
	// Next is when another pass is worth while.
	Next time.Time
}

// ZoneLabel is where a node stands, https://kubernetes.io/docs/reference/labels-annotations-taints/.
const ZoneLabel = "topology.kubernetes.io/zone"

// Label is the value of a label. That of ZoneLabel is asked for often, and of thousands of nodes.
func (n *Node) Label(key string) string {
	if key == ZoneLabel {
		return n.Zone
	}
	return n.Labels[key]
}

// Labelled tells if a user put the node into the operator's care.
func (n *Node) Labelled() bool { return n.Interface != InterfaceNone }

// Phase derives the node's phase from its marks; time-dependent ones are policy's.
func (n *Node) Phase() intent.Phase {
	if len(n.Problems) > 0 {
		return intent.PhaseUnreadable
	}
	return intent.PhaseOf(n.Marks)
}

// Disrupted tells if the node shows a disruption of ours. An unreadable one counts.
func (n *Node) Disrupted() bool { return n.Marks.Disruption != nil }

// Marked tells if any mark of an intent or a disruption of ours is on the node.
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
