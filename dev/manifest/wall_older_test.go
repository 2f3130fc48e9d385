package manifest

import (
	"strings"
	"testing"

	"gotest.tools/v3/assert"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// A wall that is older than the agents refuses each optional fact as forbidden, which an agent goes by, and lets all
// others through, also beside one that stands (L1).
func TestOlderWall(t *testing.T) {
	const name = "older"
	w := newWall(t, Namespace)
	p := load(t).Policies[0].DeepCopy()
	p.Name = name
	p.Spec.MatchConditions[0].Expression += " && request.userInfo.username.startsWith('system:serviceaccount:" + name + ":')"
	for i := range p.Spec.Variables {
		if v := &p.Spec.Variables[i]; v.Name == "known" {
			for _, k := range marker.OptionalKeys() {
				less := strings.Replace(v.Expression, "'"+string(k)+"',", "", 1)
				assert.Assert(t, less != v.Expression, "%s", k)
				v.Expression = less
			}
		}
	}
	admission := w.admin.AdmissionregistrationV1()
	_, err := admission.ValidatingAdmissionPolicies().Create(t.Context(), p, metav1.CreateOptions{})
	assert.NilError(t, err)
	_, err = admission.ValidatingAdmissionPolicyBindings().Create(t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}}}, metav1.CreateOptions{})
	assert.NilError(t, err)
	defer func() {
		assert.Check(t, admission.ValidatingAdmissionPolicyBindings().Delete(t.Context(), name, metav1.DeleteOptions{}))
		assert.Check(t, admission.ValidatingAdmissionPolicies().Delete(t.Context(), name, metav1.DeleteOptions{}))
	}()
	proxy := w.almighty(t, name, Proxy)
	patch := func(key marker.Key, value any) error {
		_, err := proxy.CoreV1().Nodes().Patch(t.Context(), wallNode, types.MergePatchType, []byte(setAnnotation(string(key), value)),
			metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	await(t, "the older policy is in force", func() bool { return byPolicy(patch(marker.KeyVersionLock, "latest")) })
	_, err = w.admin.CoreV1().Nodes().Patch(t.Context(), wallNode, types.MergePatchType, []byte(setAnnotation(string(marker.KeyVersionLock), "1.50.0")), metav1.PatchOptions{})
	assert.NilError(t, err)
	optional := map[string]bool{}
	for _, k := range marker.OptionalKeys() {
		optional[string(k)] = true
		assert.Check(t, apierrors.IsForbidden(patch(k, "1.50.0-x")), k)
	}
	assert.Check(t, apierrors.IsForbidden(patch(marker.KeyVersionLock, nil)), "a removal is a change")
	for _, k := range names(marker.WriterAgent) {
		if !optional[k] {
			assert.Check(t, patch(marker.Key(k), "one"), k)
		}
	}
}
