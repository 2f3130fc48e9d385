package manifest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

const (
	balancerLabel = "node.kubernetes.io/exclude-from-external-load-balancers"
	wallNode      = "walled"
)

// autoscalerMarks are annotations of others that the controller sets while a node is in our hands.
var autoscalerMarks = []string{"cluster-autoscaler.kubernetes.io/scale-down-disabled", "karpenter.sh/do-not-disrupt"}

// The policies' lists are marker's table, and what they say of spec is all that spec has.
func TestWallKnowsAllKeys(t *testing.T) {
	o := load(t)
	assert.Equal(t, len(o.Policies), 2)
	assert.Equal(t, len(o.PolicyBindings), 2)
	for i, writer := range map[int]marker.Writer{0: marker.WriterAgent, 1: marker.WriterController} {
		p, b := o.Policies[i], o.PolicyBindings[i]
		assert.Equal(t, b.Spec.PolicyName, p.Name)
		assert.Equal(t, string(*p.Spec.FailurePolicy), "Fail")
		assert.Equal(t, p.Spec.MatchConditions[0].Expression,
			fmt.Sprintf("request.userInfo.username.startsWith('system:serviceaccount:') && request.userInfo.username.endsWith(':%s')", p.Name))
		want := map[string]bool{}
		for _, k := range marker.Keys(writer) {
			want[string(k)] = true
		}
		if writer == marker.WriterController {
			for _, k := range autoscalerMarks {
				want[k] = true
			}
		}
		got := map[string]bool{}
		for _, v := range p.Spec.Variables {
			if v.Name != "foreign" {
				continue
			}
			_, list, _ := strings.Cut(v.Expression, "k in [")
			for i, s := range strings.Split(list, "'") {
				if i%2 == 1 {
					got[s] = true
				}
			}
		}
		assert.DeepEqual(t, got, want)
	}
	text := ""
	for _, v := range o.Policies[1].Spec.Variables {
		text += v.Expression
	}
	spec := reflect.TypeFor[corev1.NodeSpec]()
	for i := range spec.NumField() {
		name, _, _ := strings.Cut(spec.Field(i).Tag.Get("json"), ",")
		assert.Check(t, name == "unschedulable" || strings.Contains(text, "object.spec.?"+name+" == oldObject.spec.?"+name+" "), name)
	}
}

// wall is the manifest on a real API server where both accounts may do anything by RBAC, so that what is refused
// is refused by the policies.
type wall struct {
	cp    *controlplane.ControlPlane
	admin kubernetes.Interface
	users map[string]kubernetes.Interface
}

func newWall(t *testing.T, namespace string) *wall {
	t.Helper()
	cp := controlplane.ForTest(t, controlplane.Config{})
	apply := exec.Command(cp.Binaries().Kubectl, "--kubeconfig", cp.Kubeconfig(), "apply", "-f", "-")
	apply.Stdin = strings.NewReader(moved(t, namespace))
	out, err := apply.CombinedOutput()
	assert.NilError(t, err, "%s", out)
	w := &wall{cp: cp, users: map[string]kubernetes.Interface{}}
	w.admin, err = kubernetes.NewForConfig(cp.AdminConfig())
	assert.NilError(t, err)
	for _, component := range []string{Proxy, Controller} {
		user := "system:serviceaccount:" + namespace + ":update-operator-" + component
		_, err := w.admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "anything-" + component}, Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: user}},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}}, metav1.CreateOptions{})
		assert.NilError(t, err)
		config, err := cp.UserConfig(user, "system:serviceaccounts", "system:authenticated")
		assert.NilError(t, err)
		w.users[component], err = kubernetes.NewForConfig(config)
		assert.NilError(t, err)
	}
	_, err = w.admin.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: wallNode,
		Labels:      map[string]string{string(marker.KeyInterfaceVersion): "2.0.0", "example.com/theirs": "label"},
		Annotations: map[string]string{"example.com/theirs": "kept", string(marker.KeyIntentID): "i", string(marker.KeyBootID): "b", string(marker.KeyPaused): "why", string(marker.KeyRetry): "now"},
		Finalizers:  []string{"example.com/theirs"}},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "example.com/theirs", Effect: corev1.TaintEffectNoSchedule}}},
	}, metav1.CreateOptions{})
	assert.NilError(t, err)
	for component, client := range w.users {
		await(t, "the policy for "+component+" is in force", func() bool {
			_, err := client.CoreV1().Nodes().Patch(t.Context(), wallNode, types.MergePatchType, []byte(`{"metadata":{"labels":{"example.com/probe":"p"}}}`), metav1.PatchOptions{DryRun: []string{"All"}})
			return apierrors.IsForbidden(err)
		})
	}
	return w
}

// moved is the manifest in another namespace, as the namespace transformer of kustomize makes it.
func moved(t *testing.T, namespace string) string {
	t.Helper()
	text, err := os.ReadFile(must(Path()))
	assert.NilError(t, err)
	return strings.NewReplacer("namespace: "+Namespace+"\n", "namespace: "+namespace+"\n", "\n  name: "+Namespace+"\n", "\n  name: "+namespace+"\n").Replace(string(text))
}

// In another namespace everything moves along: the policies match the accounts there, nothing names the old
// namespace, and the programs know theirs by their pods. A policy that doesn't match is found out by whom it should
// hold.
func TestAnotherNamespace(t *testing.T) {
	text := moved(t, "ops")
	for i, line := range strings.Split(text, "\n") {
		code, _, _ := strings.Cut(line, "#")
		for _, known := range []string{"bottlerocket.aws/", "bottlerocket-update-"} {
			code = strings.ReplaceAll(code, known, "")
		}
		code = strings.ReplaceAll(code, "public.ecr.aws/bottlerocket/", "")
		assert.Check(t, !strings.Contains(code, Namespace), "line %d: %s", i+1, line)
	}
	o := load(t)
	for _, w := range o.Workloads() {
		assert.Check(t, slices.ContainsFunc(w.Container().Env, func(e corev1.EnvVar) bool {
			return e.Name == "POD_NAMESPACE" && e.ValueFrom != nil && e.ValueFrom.FieldRef.FieldPath == "metadata.namespace"
		}), w.Component())
	}

	wall := newWall(t, "ops")
	for component, client := range wall.users {
		walled, err := kube.Walled(t.Context(), client, wallNode)
		assert.NilError(t, err)
		assert.Check(t, walled, component)
		_, err = kube.Walled(t.Context(), client, "absent")
		assert.ErrorContains(t, err, "not found")
		bindings := wall.admin.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
		assert.NilError(t, bindings.Delete(t.Context(), "update-operator-"+component, metav1.DeleteOptions{}))
		await(t, component+" finds that its policy is not in force", func() bool {
			walled, err := kube.Walled(t.Context(), client, wallNode)
			assert.NilError(t, err)
			return !walled
		})
	}
	assert.Assert(t, wall.node(t).Annotations[marker.Prefix+"wall"] == "", "what is asked is never stored")
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	const bound = time.Minute
	for began := time.Now(); !ok(); {
		assert.Assert(t, time.Since(began) < bound, "waited for too long until %s", what)
		select {
		case <-t.Context().Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (w *wall) node(t *testing.T) *corev1.Node {
	t.Helper()
	n, err := w.admin.CoreV1().Nodes().Get(t.Context(), wallNode, metav1.GetOptions{})
	assert.NilError(t, err)
	return n
}

func bytesOf(t *testing.T, n *corev1.Node) string {
	t.Helper()
	out, err := json.Marshal(n)
	assert.NilError(t, err)
	return string(out)
}

func setAnnotation(key string, value any) string {
	v, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, key, v)
}

// S4, second wall: a stolen token of the proxy or the controller changes on Nodes what that account is for, and
// nothing else; whatever RBAC lets it do.
func TestWall(t *testing.T) {
	w := newWall(t, Namespace)
	type attack struct {
		kind types.PatchType
		body string
		sub  []string
		says string
	}
	merge := func(body, says string) attack { return attack{kind: types.MergePatchType, body: body, says: says} }
	both := map[string]attack{
		"a foreign annotation":         merge(setAnnotation("example.com/new", "v"), "example.com/new"),
		"a foreign annotation changed": merge(setAnnotation("example.com/theirs", "v"), "example.com/theirs"),
		"a foreign annotation removed": merge(setAnnotation("example.com/theirs", nil), "example.com/theirs"),
		"all annotations removed":      merge(`{"metadata":{"annotations":null}}`, "annotation "),
		"a user's key":                 merge(setAnnotation(string(marker.KeyPaused), "forged"), string(marker.KeyPaused)),
		"an unknown key of ours":       merge(setAnnotation(marker.Prefix+"new", "v"), marker.Prefix+"new"),
		"a label":                      merge(`{"metadata":{"labels":{"example.com/new":"v"}}}`, "label"),
		"a label changed":              merge(`{"metadata":{"labels":{"example.com/theirs":"v"}}}`, "label"),
		"our own label removed":        merge(`{"metadata":{"labels":{"bottlerocket.aws/updater-interface-version":null}}}`, "label"),
		"a finalizer removed":          merge(`{"metadata":{"finalizers":null}}`, "finalizers"),
		"an owner":                     merge(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n","uid":"u"}]}}`, "ownerReferences"),
		"a taint":                      merge(`{"spec":{"taints":[{"key":"a","effect":"NoExecute"}]}}`, "spec"),
		"no taints":                    merge(`{"spec":{"taints":null}}`, "spec"),
		"a JSON patch":                 {kind: types.JSONPatchType, body: `[{"op":"add","path":"/metadata/labels/a","value":"b"}]`, says: "label"},
		"a strategic merge patch":      {kind: types.StrategicMergePatchType, body: `{"metadata":{"annotations":{"a":"b"}}}`, says: "annotation a"},
		"an apply patch":               {kind: types.ApplyPatchType, body: `{"apiVersion":"v1","kind":"Node","metadata":{"name":"walled","labels":{"a":"b"}}}`, says: "label"},
		"status":                       {kind: types.MergePatchType, body: `{"status":{"conditions":null}}`, sub: []string{"status"}, says: "subresource"},
	}
	own := map[string]map[string]attack{
		Proxy: {
			"the cordon":               merge(`{"spec":{"unschedulable":true}}`, "spec"),
			"the load balancers' mark": merge(`{"metadata":{"labels":{"`+balancerLabel+`":"true"}}}`, "label"),
			"an autoscaler's mark":     merge(setAnnotation(autoscalerMarks[0], "true"), autoscalerMarks[0]),
			"the intent forged":        merge(setAnnotation(string(marker.KeyIntentID), "forged"), string(marker.KeyIntentID)),
			"the intent removed":       merge(setAnnotation(string(marker.KeyIntentID), nil), string(marker.KeyIntentID)),
			"a pause removed":          merge(setAnnotation(string(marker.KeyPaused), nil), string(marker.KeyPaused)),
		},
		Controller: {
			"a report forged":   merge(setAnnotation(string(marker.KeyBootID), "forged"), string(marker.KeyBootID)),
			"an answer forged":  merge(setAnnotation(string(marker.KeyActionState), "ready"), string(marker.KeyActionState)),
			"a retry forged":    merge(setAnnotation(string(marker.KeyRetry), "forged"), string(marker.KeyRetry)),
			"the provider's ID": merge(`{"spec":{"providerID":"forged"}}`, "providerID"),
			"a subnet":          merge(`{"spec":{"podCIDR":"10.1.0.0/24","podCIDRs":["10.1.0.0/24"]}}`, "podCIDR"),
		},
	}
	for component, client := range w.users {
		t.Run(component, func(t *testing.T) {
			before := bytesOf(t, w.node(t))
			refused := func(t *testing.T, err error, says string) {
				t.Helper()
				assert.Assert(t, apierrors.IsForbidden(err), "%v", err)
				assert.ErrorContains(t, err, "update-operator-"+component)
				assert.ErrorContains(t, err, says)
				assert.Equal(t, bytesOf(t, w.node(t)), before)
			}
			for _, attacks := range []map[string]attack{both, own[component]} {
				for name, a := range attacks {
					t.Run(name, func(t *testing.T) {
						o := metav1.PatchOptions{}
						if a.kind == types.ApplyPatchType {
							o.FieldManager = "attacker"
						}
						_, err := client.CoreV1().Nodes().Patch(t.Context(), wallNode, a.kind, []byte(a.body), o, a.sub...)
						refused(t, err, a.says)
					})
				}
			}
			t.Run("a node replaced", func(t *testing.T) {
				n := w.node(t)
				n.Labels["example.com/new"] = "v"
				_, err := client.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{})
				refused(t, err, "label")
			})
			t.Run("a node deleted", func(t *testing.T) {
				refused(t, client.CoreV1().Nodes().Delete(t.Context(), wallNode, metav1.DeleteOptions{}), "delete")
			})
			t.Run("a node created", func(t *testing.T) {
				_, err := client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "forged"}}, metav1.CreateOptions{})
				refused(t, err, "create")
			})
			t.Run("the kubelet behind it", func(t *testing.T) {
				answer, err := client.CoreV1().RESTClient().Get().Resource("nodes").Name(wallNode).SubResource("proxy").Do(t.Context()).Raw()
				assert.Assert(t, apierrors.IsForbidden(err), "%v", err)
				assert.Assert(t, strings.Contains(string(answer), "update-operator-"+component) && strings.Contains(string(answer), "connect"), "%s", answer)
			})
		})
	}
}

// What the two do every day passes, and nobody else meets the wall.
func TestWallLetsThrough(t *testing.T) {
	w := newWall(t, Namespace)
	patch := func(client kubernetes.Interface, body string) {
		t.Helper()
		_, err := client.CoreV1().Nodes().Patch(t.Context(), wallNode, types.MergePatchType, []byte(body), metav1.PatchOptions{})
		assert.Check(t, err, body)
	}
	everybody := append(marker.Keys(marker.WriterAgent), marker.Keys(marker.WriterController)...)
	for _, k := range everybody {
		component := Controller
		if marker.Owns(marker.WriterAgent, string(k)) {
			component = Proxy
		}
		for _, v := range []any{"one", "two", nil} {
			patch(w.users[component], setAnnotation(string(k), v))
		}
		// The controller cleans up after agents, and after users' retry.
		patch(w.admin, setAnnotation(string(k), "again"))
		patch(w.users[Controller], setAnnotation(string(k), nil))
	}
	patch(w.users[Controller], setAnnotation(string(marker.KeyRetry), nil))
	for _, k := range autoscalerMarks {
		patch(w.users[Controller], setAnnotation(k, "true"))
		patch(w.users[Controller], setAnnotation(k, nil))
	}
	for _, body := range []string{`{"metadata":{"labels":{"` + balancerLabel + `":"true"}},"spec":{"unschedulable":true}}`, `{"metadata":{"labels":{"` + balancerLabel + `":null}},"spec":{"unschedulable":null}}`} {
		patch(w.users[Controller], body)
	}
	patch(w.admin, `{"metadata":{"labels":{"a":"b"},"annotations":{"a":"b"}},"spec":{"taints":null}}`)

	// A Node with nothing on it, and one with as many annotations as an object may have.
	_, err := w.admin.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "bare"}}, metav1.CreateOptions{})
	assert.NilError(t, err)
	many := map[string]string{}
	for i := range 3000 {
		many[fmt.Sprintf("example.com/annotation-%04d", i)] = strings.Repeat("v", 40)
	}
	_, err = w.admin.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "full", Annotations: many}}, metav1.CreateOptions{})
	assert.NilError(t, err)
	for _, name := range []string{"bare", "full"} {
		for component, k := range map[string]marker.Key{Proxy: marker.KeyBootID, Controller: marker.KeyIntentID} {
			for _, v := range []any{"one", nil} {
				_, err := w.users[component].CoreV1().Nodes().Patch(t.Context(), name, types.MergePatchType, []byte(setAnnotation(string(k), v)), metav1.PatchOptions{})
				assert.Check(t, err, "%s on %s", component, name)
			}
		}
	}
}
