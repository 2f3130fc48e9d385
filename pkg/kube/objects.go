package kube

import (
	"cmp"
	"context"
	"slices"

	"github.com/pkg/errors"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
)

// readSize is how many objects a process that reads once asks for at a time: it has memory, and a user waits.
const readSize = 500

// Objects are the nodes and the agents' pods, as the API server shows them.
type Objects struct {
	Nodes  []*corev1.Node
	Agents []*corev1.Pod
}

// ReadObjects reads live, once, page by page. Unlike a Cluster it rebuilds nothing and writes nothing.
func ReadObjects(ctx context.Context, client kubernetes.Interface, namespace, agentSelector string) (*Objects, error) {
	o := &Objects{}
	var reading errgroup.Group
	reading.Go(func() (err error) {
		o.Nodes, err = ReadNodes(ctx, client)
		return err
	})
	reading.Go(func() error { return o.readAgents(ctx, client, namespace, agentSelector) })
	return o, reading.Wait()
}

// ReadNodes is ReadObjects of the nodes alone.
func ReadNodes(ctx context.Context, client kubernetes.Interface) ([]*corev1.Node, error) {
	var nodes []*corev1.Node
	_, err := inPages(ctx, readSize, metav1.ListOptions{}, client.CoreV1().Nodes().List, func(page *corev1.NodeList) {
		for i := range page.Items {
			nodes = append(nodes, stripNode(&page.Items[i]))
		}
	})
	return nodes, errors.Wrap(err, "listing nodes")
}

func (o *Objects) readAgents(ctx context.Context, client kubernetes.Interface, namespace, selector string) error {
	_, err := inPages(ctx, readSize, metav1.ListOptions{LabelSelector: selector}, client.CoreV1().Pods(namespace).List, func(page *corev1.PodList) {
		for i := range page.Items {
			o.Agents = append(o.Agents, stripPod(&page.Items[i]))
		}
	})
	return errors.Wrapf(err, "listing the agents' pods in namespace %q", namespace)
}

// Views are the nodes with their agents, sorted by name.
func (o *Objects) Views() []fleet.Node {
	views, at := make([]fleet.Node, 0, len(o.Nodes)), make(map[string]int, len(o.Nodes))
	for _, n := range slices.SortedFunc(slices.Values(o.Nodes), func(a, b *corev1.Node) int { return cmp.Compare(a.Name, b.Name) }) {
		at[n.Name] = len(views)
		views = append(views, View(n))
	}
	for _, p := range o.Agents {
		if isRunner(p) {
			for i := range views {
				if views[i].Interface == fleet.InterfacePlan {
					seeAgent(&views[i], p)
				}
			}
		} else if i, ok := at[p.Spec.NodeName]; ok && views[i].Interface != fleet.InterfacePlan {
			seeAgent(&views[i], p)
		}
	}
	return views
}
