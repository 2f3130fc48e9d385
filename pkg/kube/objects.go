package kube

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/pkg/errors"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/file"
)

// readSize is how many objects a process that reads once asks for at a time: it has memory, and a person waits.
const readSize = 500

// Objects are all that a plan is made from, as the API server shows them.
type Objects struct {
	Nodes  []*corev1.Node
	Agents []*corev1.Pod
	// State, Policy and Acknowledged are the ConfigMaps of these names; nil if there is none.
	State, Policy, Acknowledged *corev1.ConfigMap
}

// ReadObjects reads live, once, page by page. Unlike a Cluster it rebuilds nothing and writes nothing.
func ReadObjects(ctx context.Context, client kubernetes.Interface, namespace, agentSelector string) (*Objects, error) {
	o := &Objects{}
	var reading errgroup.Group
	reading.Go(func() error { return o.readNodes(ctx, client) })
	reading.Go(func() error { return o.readAgents(ctx, client, namespace, agentSelector) })
	reading.Go(func() error { return o.readConfigMaps(ctx, client, namespace) })
	return o, reading.Wait()
}

func (o *Objects) readNodes(ctx context.Context, client kubernetes.Interface) error {
	_, err := inPages(ctx, readSize, metav1.ListOptions{}, client.CoreV1().Nodes().List, func(page *corev1.NodeList) {
		for i := range page.Items {
			o.Nodes = append(o.Nodes, stripNode(&page.Items[i]))
		}
	})
	return errors.Wrap(err, "listing nodes")
}

func (o *Objects) readAgents(ctx context.Context, client kubernetes.Interface, namespace, selector string) error {
	_, err := inPages(ctx, readSize, metav1.ListOptions{LabelSelector: selector}, client.CoreV1().Pods(namespace).List, func(page *corev1.PodList) {
		for i := range page.Items {
			o.Agents = append(o.Agents, stripPod(&page.Items[i]))
		}
	})
	return errors.Wrapf(err, "listing the agents' pods in namespace %q", namespace)
}

func (o *Objects) readConfigMaps(ctx context.Context, client kubernetes.Interface, namespace string) error {
	for _, c := range []struct {
		name string
		into **corev1.ConfigMap
	}{{StateConfigMap, &o.State}, {PolicyConfigMap, &o.Policy}, {AcknowledgedConfigMap, &o.Acknowledged}} {
		found, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, c.name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return errors.Wrapf(err, "reading ConfigMap %s/%s", namespace, c.name)
		default:
			*c.into = found
		}
	}
	return nil
}

// Snapshot is the fleet as these objects show it, and the policy that they put in force over defaults. What a
// controller remembers of earlier looks is not in it, but for what the objects say themselves: since when a node
// has been out of service.
func (o *Objects) Snapshot(now time.Time, defaults policy.Settings) (fleet.Snapshot, policy.Settings) {
	s := fleet.Snapshot{Now: now, Nodes: make([]fleet.Node, 0, len(o.Nodes)), Slots: map[string]string{}}
	set := defaults
	if o.Policy != nil {
		var err error
		if set, err = decodePolicy(o.Policy, defaults); err != nil {
			// Nobody can tell here which one was good before.
			set, s.PolicyProblem, s.NoPolicy = defaults, policyProblem(err), true
			set.Pause = file.Pause([]byte(o.Policy.Data[PolicyKey]))
		}
	} else if o.HadPolicy() {
		s.PolicyProblem, s.NoPolicy = PolicyGone, true
	}
	if o.Acknowledged != nil {
		s.Acknowledged, s.PolicyWarnings = acknowledged(o.Acknowledged)
	}
	at := make(map[string]int, len(o.Nodes))
	for _, n := range slices.SortedFunc(slices.Values(o.Nodes), func(a, b *corev1.Node) int { return cmp.Compare(a.Name, b.Name) }) {
		at[n.Name] = len(s.Nodes)
		v := View(n)
		if !v.Disrupted() {
			v.UnavailableSince = unavailableSince(n, v.Ready)
		}
		s.Nodes = append(s.Nodes, v)
	}
	for _, p := range o.Agents {
		if i, ok := at[p.Spec.NodeName]; ok {
			seeAgent(&s.Nodes[i], p)
		}
	}
	o.slots(&s)
	return s, set
}

// HadPolicy reports whether this cluster has had a policy.
func (o *Objects) HadPolicy() bool { return hadPolicy(o.State) }

// slots reads the list as the controller would find it: one that is missing it rebuilds from the nodes.
func (o *Objects) slots(s *fleet.Snapshot) {
	if o.State != nil {
		s.Seen = seen(o.State.Data[seenKey])
		if _, listed := o.State.Data[slotsKey]; listed {
			held, err := holders(o.State)
			if err != nil {
				s.SlotsProblem = err.Error()
				return
			}
			s.Slots = held
			return
		}
	}
	for i := range s.Nodes {
		if n := &s.Nodes[i]; mayHold(n) {
			s.Slots[n.UID] = n.Name
		}
	}
}

// unavailableSince is since when a Node has been cordoned or not Ready, by the clocks of those who said so; zero if
// it is neither, or nobody said when.
func unavailableSince(n *corev1.Node, ready bool) time.Time {
	var since time.Time
	earlier := func(t metav1.Time) {
		if since.IsZero() || t.Time.Before(since) {
			since = t.Time
		}
	}
	for _, t := range n.Spec.Taints {
		if n.Spec.Unschedulable && t.Key == corev1.TaintNodeUnschedulable && t.TimeAdded != nil {
			earlier(*t.TimeAdded)
		}
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && !ready && !c.LastTransitionTime.IsZero() {
			earlier(c.LastTransitionTime)
		}
	}
	return since
}
