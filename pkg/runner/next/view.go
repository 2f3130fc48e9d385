package next

import (
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// View is all that a step is decided from.
type View struct {
	Now time.Time
	// Node is nil where no Node has the name.
	Node *Node
	// Pods are those that a runner made for a Node of this name.
	Pods []Pod
	// Template is what is known of the template of the present intent; it counts only while the intent has no pod.
	Template Template
	Memory   Memory
	// Build is that of the runner.
	Build string
}

// Node is one node of plans.
type Node struct {
	Name, UID string
	// Labelled: it has the label value plan.
	Labelled      bool
	Unschedulable bool
	// Ready, BootID and Info are the kubelet's word.
	Ready  bool
	BootID string
	// ReadySince is since when it is Ready or not, by the kubelet's clock.
	ReadySince time.Time
	Info       fleet.NodeInfo
	// Annotations are the Node's, as a report is compared with them.
	Annotations map[string]string
	Paused      bool
	Intent      marker.Intent
	// Plan is what the attempt does; nil outside one.
	Plan   *marker.Plan
	Report marker.Report
	// Unreadable: intent or plan can't be read, so nothing is done.
	Unreadable bool
}

// NodeOf reads the marks of a node.
func NodeOf(n Node) *Node {
	var problems, more []marker.Problem
	n.Intent, problems = marker.DecodeIntent(n.Annotations)
	n.Plan, more = marker.DecodePlan(n.Annotations)
	n.Unreadable = len(problems)+len(more) > 0
	// What can't be read of the runner's own report is written anew.
	n.Report, _ = marker.DecodeReport(n.Annotations)
	_, n.Paused = n.Annotations[string(marker.KeyPaused)]
	return &n
}

// Template is what a look at the template of an intent found.
type Template struct {
	// Known: it was looked at; else nothing follows from the rest.
	Known bool
	// Problem is a sentence on why no pod can be made of it: it is gone, or no more what the attempt is about.
	Problem string
}

// Memory is what a process remembers of a node.
type Memory struct {
	// Intent is what the memory is of; of another one it doesn't count.
	Intent string
	// Tried: a dry run of the pod succeeded.
	Tried bool
	// Refused is the API server's answer to the last request for the pod, dry run or not, that it refused, and Refusals
	// how often it did.
	Refused  string
	Refusals int
	// LogOf is the pod whose log was read, by UID, and Log its last line.
	LogOf, Log string
}

// Pod is one pod that a runner made.
type Pod struct {
	Name, UID string
	// Plan, Intent, NodeUID and Template are what it was made for.
	Plan, Intent, NodeUID, Template string
	// Until is the intent-until of that intent; zero where this process has not seen it.
	Until   time.Time
	Created time.Time
	// Phase is the pod's, and Reason why the kubelet, or what else ended it, did so; empty where it ended by itself.
	Phase  Phase
	Reason string
	// Status is that of the container that ended with another one than 0, Signal what ended it, if one did, and Container
	// its name.
	Status    int
	Signal    int
	Container string
	// Lost: the kubelet does not know how the container ended.
	Lost bool
	// Said is the termination message of the first container.
	Said string
	// Started: some container has run.
	Started bool
	// Taken is when the kubelet took the pod, and Ended when the last container ended, by the kubelet's clock; zero where
	// it has not, and where it is not over.
	Taken, Ended time.Time
	// Deleting: its deletion was asked for. Held: the finalizer stands.
	Deleting, Held bool
}

// Phase is a pod's.
type Phase string

// The phases, as Kubernetes names them.
const (
	Pending   Phase = "Pending"
	Running   Phase = "Running"
	Succeeded Phase = "Succeeded"
	Failed    Phase = "Failed"
	Unknown   Phase = "Unknown"
)

// Over reports whether none of the pod's containers runs or will run.
func (p *Pod) Over() bool { return p.Phase == Succeeded || p.Phase == Failed }

// own returns the pod of the present intent.
func (v *View) own() *Pod {
	for i := range v.Pods {
		if p := &v.Pods[i]; v.is(p) {
			return p
		}
	}
	return nil
}

// is reports whether a pod is that of the present intent.
func (v *View) is(p *Pod) bool {
	return v.Node != nil && p.NodeUID == v.Node.UID && p.Intent == v.Node.Intent.ID && p.Intent != ""
}

// leftover returns a pod of another intent that is not over. One that was made for an earlier Node of this name counts
// too: it runs on the same machine, if a user deleted the Node and the kubelet registered it anew.
func (v *View) leftover() *Pod {
	for i := range v.Pods {
		if p := &v.Pods[i]; !v.is(p) && !p.Over() {
			return p
		}
	}
	return nil
}

// rebooted reports whether the node is in a later boot than the one that is to be left.
func (n *Node) rebooted() bool {
	return n.BootID != "" && n.Intent.RebootFrom != "" && n.BootID != n.Intent.RebootFrom
}
