package manifest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube/access"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

const (
	balancerLabel = "node.kubernetes.io/exclude-from-external-load-balancers"
	wallNode      = "walled"
	wallPod       = "walled"
	crowdedNode   = "crowded"
	autoLabelled  = string(marker.KeyAutoLabelled)
)

// wallPolicies are the names of the admission policies in the order of the manifest, and whose account each holds.
var wallPolicies = []struct{ name, component string }{
	{"update-operator-proxy", Proxy}, {"update-operator-controller", Controller},
	{evictionPolicy, Controller}, {creationPolicy, Controller},
}

const (
	evictionPolicy = "update-operator-controller-evictions"
	creationPolicy = "update-operator-controller-creations"
)

// The policies' lists are marker's table, and what they say of spec is all that spec has.
func TestWallKnowsAllKeys(t *testing.T) {
	o := load(t)
	assert.Equal(t, len(o.Policies), len(wallPolicies))
	assert.Equal(t, len(o.PolicyBindings), len(wallPolicies))
	for i, want := range wallPolicies {
		p, b := o.Policies[i], o.PolicyBindings[i]
		assert.Equal(t, p.Name, want.name)
		assert.Equal(t, b.Spec.PolicyName, p.Name)
		assert.Equal(t, string(*p.Spec.FailurePolicy), "Fail")
		assert.Equal(t, p.Spec.MatchConditions[0].Expression,
			fmt.Sprintf("request.userInfo.username.startsWith('system:serviceaccount:') && request.userInfo.username.endsWith(':update-operator-%s')", want.component))
	}
	for _, list := range []struct {
		policy   int
		variable string
		want     []string
	}{
		{0, "known", names(marker.WriterAgent)},
		{1, "own", slices.DeleteFunc(names(marker.WriterController), func(k string) bool { return k == autoLabelled })}, {1, "agents", names(marker.WriterAgent)}, {1, "marks", marker.AutoscalerMarks()},
	} {
		got := listed(o.Policies[list.policy], list.variable)
		slices.Sort(list.want)
		assert.DeepEqual(t, got, list.want)
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

// listed are the words in quotes in a variable of a policy, sorted.
func listed(p *admissionv1.ValidatingAdmissionPolicy, variable string) []string {
	var out []string
	for _, v := range p.Spec.Variables {
		if v.Name == variable {
			for i, s := range strings.Split(v.Expression, "'") {
				if i%2 == 1 {
					out = append(out, s)
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

func names(w marker.Writer) []string {
	var out []string
	for _, k := range marker.Keys(w) {
		out = append(out, string(k))
	}
	return out
}

// wall is the manifest on a real API server where both accounts may do anything by RBAC, so that what is refused
// is refused by the policies.
type wall struct {
	cp    *controlplane.ControlPlane
	admin kubernetes.Interface
	users map[string]kubernetes.Interface
	// namespace is the operator's; pod is the UID of the pod wallPod.
	namespace string
	pod       types.UID
	// label is the value of updater-interface-version on the Nodes that are attacked; empty: that of the Update API.
	label string
}

// plane is one API server for all walls. It has no controller manager, which would change Nodes.
var plane controlplane.Shared

func TestMain(m *testing.M) { os.Exit(plane.Main(m)) }

func newPlane(t *testing.T, namespace string) *wall {
	t.Helper()
	w := &wall{cp: plane.Get(t), users: map[string]kubernetes.Interface{}, namespace: namespace}
	var err error
	w.admin, err = kubernetes.NewForConfig(w.cp.AdminConfig())
	assert.NilError(t, err)
	return w
}

func newWall(t *testing.T, namespace string) *wall {
	t.Helper()
	w := newPlane(t, namespace)
	w.apply(t, moved(t, namespace))
	for _, component := range []string{Proxy, Controller} {
		w.users[component] = w.almighty(t, namespace, component)
	}
	w.fill(t)
	for component, client := range w.users {
		for _, a := range probes(w, component) {
			await(t, "the policy "+a.policy+" is in force", func() bool {
				return byPolicy(a.do(t.Context(), client, []string{metav1.DryRunAll}))
			})
		}
	}
	return w
}

func (w *wall) apply(t *testing.T, text string) { t.Helper(); w.kubectl(t, text, "apply") }

func (w *wall) kubectl(t *testing.T, text, verb string) {
	t.Helper()
	run := exec.Command(w.cp.Binaries().Kubectl, "--kubeconfig", w.cp.Kubeconfig(), verb, "-f", "-")
	run.Stdin = strings.NewReader(text)
	out, err := run.CombinedOutput()
	assert.NilError(t, err, "%s", out)
}

// byPolicy reports whether an admission policy refused, and not RBAC, which takes a moment to know an account too.
func byPolicy(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy")
}

// almighty is a client of a component's account in a namespace, which may do by RBAC all that the API server knows.
func (w *wall) almighty(t *testing.T, namespace, component string) kubernetes.Interface {
	t.Helper()
	user := "system:serviceaccount:" + namespace + ":update-operator-" + component
	_, err := w.admin.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "anything"},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"},
			Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}}}}, metav1.CreateOptions{})
	created(t, err)
	_, err = w.admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "anything-" + namespace + "-" + component}, Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: user}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "anything"}}, metav1.CreateOptions{})
	created(t, err)
	config, err := w.cp.UserConfig(user, "system:serviceaccounts", "system:authenticated")
	assert.NilError(t, err)
	client, err := kubernetes.NewForConfig(config)
	assert.NilError(t, err)
	return client
}

// created holds that an object is there, also since another test.
func created(t *testing.T, err error) {
	t.Helper()
	if !apierrors.IsAlreadyExists(err) {
		assert.NilError(t, err)
	}
}

// fill makes what is attacked, anew for each test: a Node with things of others on it and one with many, a pod and an
// Event.
func (w *wall) fill(t *testing.T) {
	t.Helper()
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
	_, err := w.admin.CoreV1().Nodes().Patch(t.Context(), wallNode, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	assert.Assert(t, err == nil || apierrors.IsNotFound(err), "%v", err)
	for _, err := range []error{
		w.admin.CoreV1().Nodes().DeleteCollection(t.Context(), now, metav1.ListOptions{}),
		w.admin.CoreV1().Pods(metav1.NamespaceDefault).DeleteCollection(t.Context(), now, metav1.ListOptions{}),
		w.admin.CoreV1().Events(metav1.NamespaceDefault).DeleteCollection(t.Context(), now, metav1.ListOptions{}),
		w.admin.CoreV1().Events(w.namespace).DeleteCollection(t.Context(), now, metav1.ListOptions{}),
	} {
		assert.NilError(t, err)
	}
	label := cmp.Or(w.label, string(fleet.InterfaceUpdateAPI))
	_, err = w.admin.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: wallNode,
		Labels: map[string]string{string(marker.KeyInterfaceVersion): label, "example.com/theirs": "label"},
		Annotations: map[string]string{"example.com/theirs": "kept", marker.Prefix + "newer": "kept", string(marker.KeyIntentID): "i", string(marker.KeyFailure): "{}",
			string(marker.KeyBootID): "b", string(marker.KeyPaused): "why", string(marker.KeyRetry): "now"},
		Finalizers: []string{"example.com/theirs"}},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "example.com/theirs", Effect: corev1.TaintEffectNoSchedule}}},
	}, metav1.CreateOptions{})
	assert.NilError(t, err)
	many := map[string]string{"example.com/theirs": "kept", string(marker.KeyPaused): "why"}
	for i := range 1000 {
		many[fmt.Sprint("example.com/", i)] = ""
	}
	labels := maps.Clone(many)
	labels[string(marker.KeyInterfaceVersion)] = label
	_, err = w.admin.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: crowdedNode, Labels: labels, Annotations: many}}, metav1.CreateOptions{})
	assert.NilError(t, err)
	w.fillNewcomers(t)
	pod, err := w.admin.CoreV1().Pods(metav1.NamespaceDefault).Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: wallPod},
		Spec: corev1.PodSpec{NodeName: wallNode, Containers: []corev1.Container{{Name: "app", Image: "app"}}}}, metav1.CreateOptions{})
	assert.NilError(t, err)
	pod.Status.Phase = corev1.PodRunning
	pod, err = w.admin.CoreV1().Pods(metav1.NamespaceDefault).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
	assert.NilError(t, err)
	w.pod = pod.UID
	// An Event that a kubelet wrote.
	_, err = w.admin.CoreV1().Events(metav1.NamespaceDefault).Create(t.Context(), wallEvent("theirs", "kubelet"), metav1.CreateOptions{})
	assert.NilError(t, err)
}

// moved is the manifest in another namespace, as the namespace transformer of kustomize makes it.
func moved(t *testing.T, namespace string) string {
	t.Helper()
	text, err := os.ReadFile(must(Path()))
	assert.NilError(t, err)
	return strings.NewReplacer("namespace: "+Namespace+"\n", "namespace: "+namespace+"\n", "\n  name: "+Namespace+"\n", "\n  name: "+namespace+"\n").Replace(string(text))
}

// In another namespace everything moves along: the policies match the accounts there, nothing names the old
// namespace, and the programs know theirs by their pods. A policy that doesn't match is found by the
// account that it should restrict.
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
	asks := map[string]func(node string) (bool, error){
		Proxy: func(node string) (bool, error) { return access.Restricted(t.Context(), wall.users[Proxy], node) },
		Controller: func(node string) (bool, error) {
			return access.ControllerRestricted(t.Context(), wall.users[Controller], "ops", node)
		},
	}
	for _, ask := range asks {
		walled, err := ask(wallNode)
		assert.NilError(t, err)
		assert.Check(t, walled)
		_, err = ask("absent")
		assert.ErrorContains(t, err, "not found")
	}
	for _, p := range slices.Backward(wallPolicies) {
		bindings := wall.admin.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
		b, err := bindings.Get(t.Context(), p.name, metav1.GetOptions{})
		assert.NilError(t, err)
		assert.NilError(t, bindings.Delete(t.Context(), p.name, metav1.DeleteOptions{}))
		finds := func(want bool) {
			await(t, fmt.Sprintf("the %s finds that %s is in force: %v", p.component, p.name, want), func() bool {
				walled, err := asks[p.component](wallNode)
				assert.NilError(t, err)
				return walled == want
			})
		}
		finds(false)
		b.ResourceVersion = ""
		_, err = bindings.Create(t.Context(), b, metav1.CreateOptions{})
		assert.NilError(t, err)
		finds(true)
	}
	maps, err := wall.admin.CoreV1().ConfigMaps("ops").List(t.Context(), metav1.ListOptions{})
	assert.NilError(t, err)
	assert.Assert(t, !slices.ContainsFunc(maps.Items, func(m corev1.ConfigMap) bool { return m.Name == "update-operator-admission" }))
	for k := range wall.node(t).Annotations {
		assert.Check(t, !strings.HasPrefix(k, marker.Prefix+"admission"), "what is asked is never stored: %s", k)
	}
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
