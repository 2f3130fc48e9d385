package manifest

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"gotest.tools/v3/assert"
	is "gotest.tools/v3/assert/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
)

// A real API server takes the manifest without a warning, takes its pods, and a second kubectl apply
// changes nothing of what the operator has filled in between.
func TestApply(t *testing.T) {
	cp := controlplane.ForTest(t, controlplane.Config{ControllerManager: true})
	path := must(Path())
	kubectl := func(args ...string) string {
		t.Helper()
		out, err := exec.Command(cp.Binaries().Kubectl, append([]string{"--kubeconfig", cp.Kubeconfig()}, args...)...).CombinedOutput()
		assert.NilError(t, err, "%s", out)
		return string(out)
	}
	first := kubectl("apply", "-f", path)
	assert.Assert(t, !strings.Contains(first, "Warning"), first)

	ctx := context.Background()
	client, err := kubernetes.NewForConfig(cp.AdminConfig())
	assert.NilError(t, err)
	secret, err := client.CoreV1().Secrets(Namespace).Get(ctx, "update-operator-proxy-tls", metav1.GetOptions{})
	assert.NilError(t, err)
	secret.Data = map[string][]byte{"tls.key": []byte("key")}
	_, err = client.CoreV1().Secrets(Namespace).Update(ctx, secret, metav1.UpdateOptions{})
	assert.NilError(t, err)
	ca, err := client.CoreV1().ConfigMaps(Namespace).Get(ctx, "update-operator-proxy-ca", metav1.GetOptions{})
	assert.NilError(t, err)
	ca.Data = map[string]string{"ca.crt": "certificate"}
	_, err = client.CoreV1().ConfigMaps(Namespace).Update(ctx, ca, metav1.UpdateOptions{})
	assert.NilError(t, err)

	for _, line := range strings.Split(strings.TrimSpace(kubectl("apply", "-f", path)), "\n") {
		// kubectl sends a budget's selector every time, since its patches replace it as a whole.
		assert.Check(t, strings.HasSuffix(line, "unchanged") || strings.HasPrefix(line, "poddisruptionbudget"), line)
	}
	assert.Equal(t, kubectl("diff", "-f", path), "")

	// A GitOps controller takes the objects over, and the operator renews what it fills in. From then on it finds nothing to
	// write, and no conflict.
	gitops := func() string {
		return kubectl("apply", "--server-side", "--field-manager=argocd-controller", "-f", path)
	}
	gitops()
	before := revisions(t, kubectl)
	secret, err = client.CoreV1().Secrets(Namespace).Get(ctx, secret.Name, metav1.GetOptions{})
	assert.NilError(t, err)
	assert.Equal(t, string(secret.Data["tls.key"]), "key")
	secret.Data["tls.key"] = []byte("renewed")
	secret, err = client.CoreV1().Secrets(Namespace).Update(ctx, secret, metav1.UpdateOptions{FieldManager: "bottlerocket-update-operator"})
	assert.NilError(t, err)
	ca, err = client.CoreV1().ConfigMaps(Namespace).Get(ctx, ca.Name, metav1.GetOptions{})
	assert.NilError(t, err)
	assert.Equal(t, ca.Data["ca.crt"], "certificate")
	ca.Data["ca.crt"] = "renewed"
	ca, err = client.CoreV1().ConfigMaps(Namespace).Update(ctx, ca, metav1.UpdateOptions{FieldManager: "bottlerocket-update-operator"})
	assert.NilError(t, err)
	before["secret/"+secret.Name], before["configmap/"+ca.Name] = secret.ResourceVersion, ca.ResourceVersion
	gitops()
	assert.DeepEqual(t, revisions(t, kubectl), before)
	assert.Equal(t, kubectl("diff", "--server-side", "--field-manager=argocd-controller", "-f", path), "")

	// The controller manager checks the types of what the policies say.
	for _, p := range load(t).Policies {
		await(t, "the policy "+p.Name+" is checked", func() bool {
			p, err := client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(ctx, p.Name, metav1.GetOptions{})
			assert.NilError(t, err)
			checked := p.Status.TypeChecking
			assert.Check(t, checked == nil || len(checked.ExpressionWarnings) == 0, "%+v", checked)
			return p.Status.ObservedGeneration == p.Generation
		})
	}

	// Priority classes, pod security and service accounts are judged when a pod is made.
	for _, w := range load(t).Workloads() {
		pod, err := client.CoreV1().Pods(Namespace).Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: w.Component(), Labels: w.Template.Labels}, Spec: w.Template.Spec,
		}, metav1.CreateOptions{})
		assert.NilError(t, err)
		assert.Assert(t, *pod.Spec.Priority > 0)
		token := false
		for _, m := range pod.Spec.Containers[0].VolumeMounts {
			token = token || m.MountPath == "/var/run/secrets/kubernetes.io/serviceaccount"
		}
		assert.Equal(t, token, w.Component() != Agent, w.Component())
	}
}

// revisions are those of all that the manifest makes. An admission policy's is that of what is asked for, as the controller
// manager writes what it found into the status.
func revisions(t *testing.T, kubectl func(...string) string) map[string]string {
	t.Helper()
	var list struct {
		Items []metav1.PartialObjectMetadata
	}
	assert.NilError(t, json.Unmarshal([]byte(kubectl("get", "-f", must(Path()), "-o", "json")), &list))
	out := map[string]string{}
	for _, o := range list.Items {
		of := o.ResourceVersion
		if o.Kind == "ValidatingAdmissionPolicy" {
			of = fmt.Sprint("generation ", o.Generation)
		}
		out[strings.ToLower(o.Kind)+"/"+o.Name] = of
	}
	return out
}

func TestNodesStatus(t *testing.T) {
	status := func(nodes ...corev1.Node) string {
		t.Helper()
		return jq(t, nodesStatus(t), append([]corev1.Node{}, nodes...))
	}
	head := status()
	assert.Assert(t, is.Equal(strings.Count(head, "\n"), 1), head)
	node := func(name string, labels, marks map[string]string) corev1.Node {
		n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}, Annotations: map[string]string{}}}
		for k, v := range labels {
			n.Labels["bottlerocket.aws/"+k] = v
		}
		for k, v := range marks {
			n.Annotations["bottlerocket.aws/"+k] = v
		}
		return n
	}
	ready := node("b", map[string]string{"updater-interface-version": "2.0.0"}, map[string]string{
		"current-version": "1.0.0", "action-wanted": "prepare-update", "intent-id": "i", "active-id": "i", "action-state": "busy",
		"target-version": "1.1.0", "waiting-for": "Staging: the agent\tstages 1.1.0"})
	ready.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	old := node("a", map[string]string{"platform-version": "1.0.0"}, map[string]string{"intent-id": "i", "active-id": "h", "action-state": "busy"})
	old.Spec.Unschedulable = true
	assert.Equal(t, status(ready, old, node("c", nil, nil)), head+
		"a\t-\tyes\t-\t-\t-\t-\t-\t-\n"+
		"b\tTrue\tno\t1.0.0\t-\tprepare-update\t1.1.0\tbusy\tStaging: the agent stages 1.1.0\n")
}
