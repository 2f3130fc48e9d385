package access

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// foreignMark sets an annotation that no writer of the operator has, of another name each time: one that stood on the
// Node already would make the write none, or none that counts among many, and then no policy would refuse it.
func foreignMark() []byte {
	return fmt.Appendf(nil, `{"metadata":{"annotations":{"%swall-%s":"asked"}}}`, marker.Prefix, rand.Text())
}

// askedFor is the name of objects that are not there and are not to be: what is asked of them is refused.
const askedFor = "update-operator-wall"

// Walled reports whether an admission policy keeps the client's account from writing to a Node what isn't its own to
// write. It asks for such a write as a dry run, which admission judges like any other and which is never stored: a
// policy that is there and matches another account, or none, is found out too. An error says nothing of the policy; one
// is also a refusal by anything else.
func Walled(ctx context.Context, client kubernetes.Interface, node string) (bool, error) {
	_, err := client.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, foreignMark(), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	if byPolicy(err) {
		return true, nil
	}
	return false, errors.Wrapf(err, "asking for a write of node %q that is to be refused", node)
}

// ControllerWalled is Walled for all that policies keep the controller's account from: it asks also for a ConfigMap
// that isn't its own in the operator's namespace, and for the eviction there of a pod that doesn't exist, without a UID.
func ControllerWalled(ctx context.Context, client kubernetes.Interface, namespace, node string) (bool, error) {
	if walled, err := Walled(ctx, client, node); !walled || err != nil {
		return false, err
	}
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	object := metav1.ObjectMeta{Namespace: namespace, Name: askedFor}
	_, err := client.CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: object}, dry)
	if !byPolicy(err) {
		return false, errors.Wrapf(err, "asking for a ConfigMap in namespace %q that is to be refused", namespace)
	}
	err = client.CoreV1().RESTClient().Post().Namespace(namespace).Resource("pods").Name(askedFor).SubResource("eviction").
		VersionedParams(&dry, metav1.ParameterCodec).Body(&policyv1.Eviction{ObjectMeta: object}).Do(ctx).Error()
	if byPolicy(err) {
		return true, nil
	}
	if apierrors.IsNotFound(err) {
		// It was looked for.
		return false, nil
	}
	return false, errors.Wrapf(err, "asking for an eviction in namespace %q that is to be refused", namespace)
}

// byPolicy reports whether an admission policy refused what was asked for.
func byPolicy(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy")
}
