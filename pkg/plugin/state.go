package plugin

import (
	"context"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
)

// Kinds of objects, as kubectl writes them.
const (
	kindConfigMap = "configmap"
	kindSecret    = "secret"
	kindLease     = "lease"
)

// kept is an object that the operator keeps in its namespace, and writes itself.
type kept struct{ kind, name string }

func (k kept) String() string { return k.kind + "/" + k.name }

// state is every such object. What users write is not among them: the policy, pauses, and acknowledged versions.
var state = []kept{
	{kindConfigMap, kube.StateConfigMap},
	{kindConfigMap, "update-operator-proxy-ca"},
	{kindSecret, "update-operator-proxy-tls"},
	{kindLease, kube.LeaseName},
}

func stateNames() []string {
	var names []string
	for _, k := range state {
		names = append(names, k.String())
	}
	return names
}

// deleteState deletes the objects of state that exist, and reports whether there were any.
func (p *plugin) deleteState(ctx context.Context, client kubernetes.Interface, o *cleanOptions) (bool, error) {
	deleted := false
	for _, k := range state {
		var err error
		if o.sends() {
			err = k.delete(ctx, client, p.namespace(), metav1.DeleteOptions{DryRun: o.options()})
		} else {
			err = k.get(ctx, client, p.namespace())
		}
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return deleted, errors.Wrapf(err, "deleting %s in namespace %s", k, p.namespace())
		}
		deleted = true
		p.did(k.String(), "deleted", &o.dryRun)
	}
	return deleted, nil
}

func (k kept) delete(ctx context.Context, client kubernetes.Interface, namespace string, o metav1.DeleteOptions) error {
	switch k.kind {
	case kindConfigMap:
		return client.CoreV1().ConfigMaps(namespace).Delete(ctx, k.name, o)
	case kindSecret:
		return client.CoreV1().Secrets(namespace).Delete(ctx, k.name, o)
	}
	return client.CoordinationV1().Leases(namespace).Delete(ctx, k.name, o)
}

func (k kept) get(ctx context.Context, client kubernetes.Interface, namespace string) (err error) {
	switch k.kind {
	case kindConfigMap:
		_, err = client.CoreV1().ConfigMaps(namespace).Get(ctx, k.name, metav1.GetOptions{})
	case kindSecret:
		_, err = client.CoreV1().Secrets(namespace).Get(ctx, k.name, metav1.GetOptions{})
	default:
		_, err = client.CoordinationV1().Leases(namespace).Get(ctx, k.name, metav1.GetOptions{})
	}
	return err
}
