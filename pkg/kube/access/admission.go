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

// foreignMark sets an annotation that no part of the operator writes, with a random name: if the Node had it already,
// the write would change nothing, and no policy would refuse it.
func foreignMark() []byte {
	return fmt.Appendf(nil, `{"metadata":{"annotations":{"%sadmission-%s":"asked"}}}`, marker.Prefix, rand.Text())
}

// askedFor is the name of objects that do not exist: a request about them must be refused.
const askedFor = "update-operator-admission"

// Restricted reports whether an admission policy keeps the client's account from writing other annotations to a Node
// than its own. It sends such a write as a dry run, which is judged like any other and never stored, so a policy that
// matches the wrong account is found too. With an error nothing is known of the policy; a refusal by anything else is
// such an error.
func Restricted(ctx context.Context, client kubernetes.Interface, node string) (bool, error) {
	_, err := client.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, foreignMark(), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	if byPolicy(err) {
		return true, nil
	}
	return false, errors.Wrapf(err, "asking for a write of node %q that is to be refused", node)
}

// ControllerRestricted is Restricted for all policies about the controller's account: it also tries to create a
// ConfigMap that isn't the controller's, and to evict a pod that doesn't exist without a UID, in the operator's
// namespace.
func ControllerRestricted(ctx context.Context, client kubernetes.Interface, namespace, node string) (bool, error) {
	if restricted, err := creationsRestricted(ctx, client, namespace, node); !restricted || err != nil {
		return false, err
	}
	object := metav1.ObjectMeta{Namespace: namespace, Name: askedFor}
	err := client.CoreV1().RESTClient().Post().Namespace(namespace).Resource("pods").Name(askedFor).SubResource("eviction").
		VersionedParams(&asksOnly, metav1.ParameterCodec).Body(&policyv1.Eviction{ObjectMeta: object}).Do(ctx).Error()
	if byPolicy(err) {
		return true, nil
	}
	if apierrors.IsNotFound(err) {
		// It was looked for.
		return false, nil
	}
	return false, errors.Wrapf(err, "asking for an eviction in namespace %q that is to be refused", namespace)
}

// RunnerRestricted is Restricted for the policies about the runner's account: it also tries to create a ConfigMap
// that isn't the runner's, and a pod that no node asks for in the namespace of plans. Which of the policies about pods
// refuses that one is not asked.
func RunnerRestricted(ctx context.Context, client kubernetes.Interface, namespace, plansNamespace, node string) (bool, error) {
	if restricted, err := creationsRestricted(ctx, client, namespace, node); !restricted || err != nil {
		return false, err
	}
	_, err := client.CoreV1().Pods(plansNamespace).Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: plansNamespace, Name: askedFor},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "asked", Image: askedFor}}}}, asksOnly)
	if byPolicy(err) {
		return true, nil
	}
	return false, errors.Wrapf(err, "asking for a pod in namespace %q that is to be refused", plansNamespace)
}

var asksOnly = metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}

// creationsRestricted is Restricted for what an account may create in the operator's namespace, too.
func creationsRestricted(ctx context.Context, client kubernetes.Interface, namespace, node string) (bool, error) {
	if restricted, err := Restricted(ctx, client, node); !restricted || err != nil {
		return false, err
	}
	_, err := client.CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: askedFor}}, asksOnly)
	if byPolicy(err) {
		return true, nil
	}
	return false, errors.Wrapf(err, "asking for a ConfigMap in namespace %q that is to be refused", namespace)
}

// byPolicy reports whether an admission policy refused what was asked for.
func byPolicy(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy")
}
