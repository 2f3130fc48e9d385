package plugin

import (
	"context"
	"strings"

	"github.com/pkg/errors"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
)

// stateObject is an object that the operator keeps in its namespace, and writes itself.
type stateObject struct {
	resource schema.GroupVersionResource
	name     string
}

// String names the object as kubectl does.
func (s stateObject) String() string {
	return strings.TrimSuffix(s.resource.Resource, "s") + "/" + s.name
}

// state is every such object. What users write is not among them: the policy, pauses, and acknowledged versions.
var state = []stateObject{
	{corev1.SchemeGroupVersion.WithResource("configmaps"), kube.StateConfigMap},
	{corev1.SchemeGroupVersion.WithResource("configmaps"), "update-operator-proxy-ca"},
	{corev1.SchemeGroupVersion.WithResource("secrets"), "update-operator-proxy-tls"},
	{coordinationv1.SchemeGroupVersion.WithResource("leases"), kube.LeaseName},
}

func stateNames() []string {
	var names []string
	for _, s := range state {
		names = append(names, s.String())
	}
	return names
}

// deleteState deletes the objects of state that exist, and reports whether there were any.
func (p *plugin) deleteState(ctx context.Context, o *cleanOptions) (bool, error) {
	client, err := p.metadataClient()
	if err != nil {
		return false, err
	}
	deleted := false
	for _, s := range state {
		objects := client.Resource(s.resource).Namespace(p.namespace())
		if o.sends() {
			err = objects.Delete(ctx, s.name, metav1.DeleteOptions{DryRun: o.options()})
		} else {
			_, err = objects.Get(ctx, s.name, metav1.GetOptions{})
		}
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return deleted, errors.Wrapf(err, "deleting %s in namespace %s", s, p.namespace())
		}
		deleted = true
		p.did(s.String(), "deleted", &o.dryRun)
	}
	return deleted, nil
}
