package preflight

import (
	"strings"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// Read is a part of a cluster, or why it could not be read.
type Read[T any] struct {
	Value T
	// Refused is a sentence such as "you may not list nodes"; empty if the value is known.
	Refused string
	// Forbidden: it is for a right that the user lacks.
	Forbidden bool
}

type reading interface {
	refused() (why string, forbidden bool)
}

func (r Read[T]) refused() (why string, forbidden bool) { return r.Refused, r.Forbidden }

// Snapshot is a cluster as one user sees it.
type Snapshot struct {
	// Namespace is the operator's, PlansNamespace that of plans.
	Namespace, PlansNamespace string
	// Clock is that of the API server, beside this machine's.
	Clock Read[Clock]
	// Server is the API server's version, such as v1.36.3.
	Server Read[string]
	// Groups are the groups of the API, without versions.
	Groups Read[[]string]
	// Caller and Accounts are the answers to Asks: of the user, and of the operator's accounts.
	Caller, Accounts Read[[]Answer]
	// Home and PlansHome are the labels of the two namespaces; nil if there is none.
	Home, PlansHome Read[map[string]string]
	// Policies and Bindings are the admission policies of the cluster, by name.
	Policies Read[map[string]AdmissionPolicy]
	Bindings Read[map[string]AdmissionBinding]
	// Workloads are the operator's own by component; Pods are theirs.
	Workloads Read[map[string]Workload]
	Pods      Read[[]Pod]
	// EventsRefused is why what was last said of pods is not known; empty if it is.
	EventsRefused string
	Leader        Read[Lease]
	// Endpoints are the proxies that the Service sends agents to.
	Endpoints Read[int]
	// Bundle is the certificate authority that agents trust, and KeyStored whether the Secret of the proxies exists.
	Bundle    Read[Bundle]
	KeyStored Read[bool]
	Policy    Read[Policy]
	Pauses    Read[Pauses]
	Nodes     Read[[]Node]
	// Renewed is when each node's Lease was renewed, by the node's clock.
	Renewed Read[map[string]time.Time]
	Budgets Read[[]Budget]
	// Singles are Deployments and StatefulSets of one replica, and Bare pods without a controller: those with pods on
	// nodes that are, or could be, updated.
	Singles, Bare Read[[]string]
	// Overlapping are pods on such nodes that more than one budget selects.
	Overlapping Read[[]string]
	// DaemonSets are all of the cluster.
	DaemonSets Read[[]DaemonSet]
	// UpgradePlans are those of system-upgrade-controller.
	UpgradePlans Read[[]UpgradePlan]
	// Cut says what was too much to be looked at whole; empty if nothing was.
	Cut []string
}

// Clock is the time by the API server and by this machine, at one moment.
type Clock struct{ Server, Here time.Time }

// Components of the operator, as the label app.kubernetes.io/component names them.
const (
	Controller = "controller"
	Proxy      = "proxy"
	Agent      = "agent"
	Runner     = "runner"
)

// Account returns the name of the ServiceAccount, the Deployment or the DaemonSet of a component.
func Account(component string) string { return "update-operator-" + component }

// Workload is a Deployment or DaemonSet of the operator.
type Workload struct {
	// Desired, Ready and Updated count pods.
	Desired, Ready, Updated int
	Image                   string
	// Said are the last words on it, such as that its pods are refused.
	Said []Words
}

// Pod is one of the operator's own.
type Pod struct {
	Name, Component string
	// Node is where it runs, or is to run.
	Node  string
	Ready bool
	// Created is by the API server's clock.
	Created time.Time
	// Said are the last words on it: of the scheduler, of the kubelet, and its own.
	Said []Words
}

// Words are what was said of a pod.
type Words struct {
	// Reason is one word, such as ImagePullBackOff; empty for a line of a log.
	Reason, Message string
}

// Lease is by what the leader is elected.
type Lease struct {
	There  bool
	Holder string
	// Renewed is by the leader's clock; Duration is how long it leads from then on.
	Renewed  time.Time
	Duration time.Duration
}

// Bundle is the ConfigMap with the certificates that agents trust.
type Bundle struct {
	There bool
	// Filled: the key is there and not empty. Problem is why its value can't be read; empty if it can.
	Filled  bool
	Problem string
	// Ends is when the last of the certificates ends.
	Ends time.Time
}

// Policy is the ConfigMap of the policy.
type Policy struct {
	There bool
	// Mistakes are lines on what is wrong with it; Settings hold if there are none.
	Mistakes []string
	Settings policy.Settings
}

// Pauses are those of the ConfigMap that the plugin writes.
type Pauses struct {
	// Problem is why it can't be read, which pauses everything.
	Problem string
	// Standing are sentences, one for each pause.
	Standing []string
}

// Node is one node of the cluster.
type Node struct {
	fleet.Node
	// OSImage and Kubelet are what the kubelet reports.
	OSImage, Kubelet string
	// Excluded: the label for load balancers is there.
	Excluded bool
	// OldLabels are those that the first operator wrote.
	OldLabels []string
}

// bottlerocketImage begins what the kubelet of a Bottlerocket host reports.
const bottlerocketImage = "Bottlerocket OS"

// Bottlerocket reports whether that is the node's system.
func (n *Node) Bottlerocket() bool { return strings.HasPrefix(n.OSImage, bottlerocketImage) }

// Concerned reports whether the node is updated, or could be.
func (n *Node) Concerned() bool { return n.Labelled() || n.Bottlerocket() }

// wantsAgent reports whether an agent must be on the node.
func (n *Node) wantsAgent() bool { return n.Interface == fleet.InterfaceUpdateAPI }

// Budget is a PodDisruptionBudget.
type Budget struct {
	Name string
	// MinAvailable and MaxUnavailable are as they stand there; one of them is empty.
	MinAvailable, MaxUnavailable string
	// Expected, Healthy and Allowed are of its status.
	Expected, Healthy, Allowed int
	// Here is how many of its pods are on nodes that are, or could be, updated.
	Here int
}

// DaemonSet is one of any namespace.
type DaemonSet struct {
	Namespace, Name string
	// App is its label app.kubernetes.io/name, or app, or k8s-app or name.
	App string
	// Images are those of its containers.
	Images []string
}

// UpgradePlan is a Plan of system-upgrade-controller.
type UpgradePlan struct {
	Name string
	// Nodes are those with Bottlerocket, or the label, that it selects.
	Nodes []string
}

// installed reports whether anything of the operator is. Where that can't be read it counts as installed, so that each
// check tells what it lacks.
func (s *Snapshot) installed() bool {
	return s.Workloads.Refused != "" || len(s.Workloads.Value) > 0
}

func (s *Snapshot) plansInstalled() bool {
	_, there := s.Workloads.Value[Runner]
	return there
}
