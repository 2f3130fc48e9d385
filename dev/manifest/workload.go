package manifest

import (
	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Workload is a Deployment or DaemonSet.
type Workload struct {
	Kind, Name, Namespace string
	Selector              *metav1.LabelSelector
	// Template is the one in Objects, so a change of it changes the manifest.
	Template *corev1.PodTemplateSpec
}

// Component is what the pods' label says.
func (w Workload) Component() string { return w.Template.Labels[LabelComponent] }

// Container is the operator's own, the only one.
func (w Workload) Container() *corev1.Container { return &w.Template.Spec.Containers[0] }

// Workloads are all that run pods.
func (o Objects) Workloads() []Workload {
	var all []Workload
	for _, d := range o.Deployments {
		all = append(all, Workload{"Deployment", d.Name, d.Namespace, d.Spec.Selector, &d.Spec.Template})
	}
	for _, d := range o.DaemonSets {
		all = append(all, Workload{"DaemonSet", d.Name, d.Namespace, d.Spec.Selector, &d.Spec.Template})
	}
	return all
}

// Workload returns a component's. It has exactly one container.
func (o Objects) Workload(component string) (Workload, error) {
	for _, w := range o.Workloads() {
		if w.Component() != component {
			continue
		}
		if n := len(w.Template.Spec.Containers); n != 1 {
			return Workload{}, errors.Errorf("%s %s has %d containers, not one", w.Kind, w.Name, n)
		}
		return w, nil
	}
	return Workload{}, errors.Errorf("the manifest has no workload with label %s=%s", LabelComponent, component)
}
