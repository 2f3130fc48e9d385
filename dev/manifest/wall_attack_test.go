package manifest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gotest.tools/v3/assert"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// attack is what a thief of one account's token asks the API server for; as a dry run too, which is judged alike.
type attack struct {
	name, policy string
	do           func(ctx context.Context, client kubernetes.Interface, dry []string) error
	// says is what the refusal names.
	says string
}

// onNode is an attack on a Node by a patch.
func onNode(component, name, node string, kind types.PatchType, body, says string, sub ...string) attack {
	return attack{name, "update-operator-" + component, func(ctx context.Context, client kubernetes.Interface, dry []string) error {
		o := metav1.PatchOptions{DryRun: dry}
		if kind == types.ApplyPatchType {
			o.FieldManager = "attacker"
		}
		_, err := client.CoreV1().Nodes().Patch(ctx, node, kind, []byte(body), o, sub...)
		return err
	}, says}
}

// attacks are all of a component's, those of a policy together.
func attacks(w *wall, component string) []attack {
	merge := func(name, body, says string) attack {
		return onNode(component, name, wallNode, types.MergePatchType, body, says)
	}
	crowd := func(name, body, says string) attack {
		return onNode(component, name, crowdedNode, types.MergePatchType, body, says)
	}
	long, marks := strings.Repeat("v", 4097), marker.AutoscalerMarks()
	mine := map[string]marker.Key{Proxy: marker.KeyMessage, Runner: marker.KeyBootID, Controller: marker.KeyWaitingFor}[component]
	all := []attack{
		merge("a foreign annotation", setAnnotation("example.com/new", "v"), "example.com/new"),
		merge("a foreign annotation changed", setAnnotation("example.com/theirs", "v"), "example.com/theirs"),
		merge("a foreign annotation removed", setAnnotation("example.com/theirs", nil), "example.com/theirs"),
		merge("all annotations removed", `{"metadata":{"annotations":null}}`, "annotation "),
		merge("a user's key", setAnnotation(string(marker.KeyPaused), "forged"), string(marker.KeyPaused)),
		merge("a pause removed", setAnnotation(string(marker.KeyPaused), nil), string(marker.KeyPaused)),
		merge("an unknown key of ours", setAnnotation(marker.Prefix+"new", "v"), marker.Prefix+"new"),
		merge("an unknown key of ours removed", setAnnotation(marker.Prefix+"newer", nil), marker.Prefix+"newer"),
		merge("a value without end", setAnnotation(string(mine), long), string(mine)),
		crowd("a foreign annotation among many", setAnnotation("example.com/new", "v"), "annotation "),
		crowd("a foreign annotation removed from many", setAnnotation("example.com/theirs", nil), "annotation "),
		crowd("a user's key among many", setAnnotation(string(marker.KeyPaused), "forged"), "annotation "),
		crowd("a pause removed from many, for another", fmt.Sprintf(`{"metadata":{"annotations":{%q:null,"example.com/new":"v"}}}`, marker.KeyPaused), "annotation "),
		crowd("a request in the place of another annotation", fmt.Sprintf(`{"metadata":{"annotations":{%q:"forged","example.com/0":null}}}`, marker.KeyCycle), ""),
		crowd("a label among many", `{"metadata":{"labels":{"example.com/new":"v"}}}`, "label"),
		crowd("a label removed from many", `{"metadata":{"labels":{"example.com/theirs":null}}}`, "label"),
		merge("a label", `{"metadata":{"labels":{"example.com/new":"v"}}}`, "label"),
		merge("a label changed", `{"metadata":{"labels":{"example.com/theirs":"v"}}}`, "label"),
		merge("our own label removed", `{"metadata":{"labels":{"bottlerocket.aws/updater-interface-version":null}}}`, "label"),
		merge("a finalizer removed", `{"metadata":{"finalizers":null}}`, "finalizers"),
		merge("an owner", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n","uid":"u"}]}}`, "ownerReferences"),
		merge("a name to be generated", `{"metadata":{"generateName":"forged"}}`, "generateName"),
		merge("the managed fields removed", `{"metadata":{"managedFields":[{}]}}`, "managedFields"),
		merge("a taint", `{"spec":{"taints":[{"key":"a","effect":"NoExecute"}]}}`, "spec"),
		merge("no taints", `{"spec":{"taints":null}}`, "spec"),
		onNode(component, "a JSON patch", wallNode, types.JSONPatchType, `[{"op":"add","path":"/metadata/labels/a","value":"b"}]`, "label"),
		onNode(component, "a strategic merge patch", wallNode, types.StrategicMergePatchType, `{"metadata":{"annotations":{"a":"b"}}}`, "annotation a"),
		onNode(component, "an apply patch", wallNode, types.ApplyPatchType, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"walled","labels":{"a":"b"}}}`, "label"),
		onNode(component, "status", wallNode, types.MergePatchType, `{"status":{"conditions":null}}`, "subresource", "status"),
	}
	for name, odd := range map[string]string{"two lines": "a\nb", "an escape": "a\x1b[31mb", "a C1 control character": "a\u009bb", "text turned round": "a\u202eb",
		"a line separator": "a\u2028b", "a character of private use": "a\ue000b"} {
		all = append(all, merge("a value with "+name, setAnnotation(string(mine), odd), string(mine)))
	}
	all = append(all, wholeNode(component)...)
	if component != Controller {
		return append(all,
			merge("the cordon", `{"spec":{"unschedulable":true}}`, "spec"),
			merge("the load balancers' mark", `{"metadata":{"labels":{"`+balancerLabel+`":"true"}}}`, "label"),
			merge("an autoscaler's mark", setAnnotation(marks[0], "true"), marks[0]),
			merge("the intent forged", setAnnotation(string(marker.KeyIntentID), "forged"), string(marker.KeyIntentID)),
			merge("the intent removed", setAnnotation(string(marker.KeyIntentID), nil), string(marker.KeyIntentID)),
		)
	}
	all = append(all,
		merge("a report forged", setAnnotation(string(marker.KeyBootID), "forged"), string(marker.KeyBootID)),
		merge("an answer forged", setAnnotation(string(marker.KeyActionState), "ready"), string(marker.KeyActionState)),
		merge("a report removed by itself", setAnnotation(string(marker.KeyBootID), nil), string(marker.KeyBootID)),
		merge("a retry forged", setAnnotation(string(marker.KeyRetry), "forged"), string(marker.KeyRetry)),
		merge("a retry removed, and the failure left", setAnnotation(string(marker.KeyRetry), nil), string(marker.KeyRetry)),
		merge("a request forged", setAnnotation(string(marker.KeyCycle), "forged"), string(marker.KeyCycle)),
		merge("a mark that could not have stood there", setAnnotation(marks[1], strings.Repeat("v", 129)), marks[1]),
		merge("the provider's ID", `{"spec":{"providerID":"forged"}}`, "providerID"),
		merge("a subnet", `{"spec":{"podCIDR":"10.1.0.0/24","podCIDRs":["10.1.0.0/24"]}}`, "podCIDR"),
	)
	return slices.Concat(all, labelling(), locking(), untainting(), evictions(w), creations(w))
}

// wholeNode are attacks that are no patches.
func wholeNode(component string) []attack {
	policy := "update-operator-" + component
	return []attack{
		{"a node replaced", policy, func(ctx context.Context, client kubernetes.Interface, dry []string) error {
			n, err := client.CoreV1().Nodes().Get(ctx, wallNode, metav1.GetOptions{})
			if err != nil {
				return err
			}
			n.Labels["example.com/new"] = "v"
			_, err = client.CoreV1().Nodes().Update(ctx, n, metav1.UpdateOptions{DryRun: dry})
			return err
		}, "label"},
		{"a node deleted", policy, func(ctx context.Context, client kubernetes.Interface, dry []string) error {
			return client.CoreV1().Nodes().Delete(ctx, wallNode, metav1.DeleteOptions{DryRun: dry})
		}, "delete"},
		{"a node created", policy, func(ctx context.Context, client kubernetes.Interface, dry []string) error {
			_, err := client.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "forged"}}, metav1.CreateOptions{DryRun: dry})
			return err
		}, "create"},
	}
}

// evictions are attacks on a pod: with no time to shut down, or on whatever pod has the name by then.
func evictions(w *wall) []attack {
	pods := func(client kubernetes.Interface) interface {
		EvictV1(ctx context.Context, e *policyv1.Eviction) error
		Delete(ctx context.Context, name string, o metav1.DeleteOptions) error
		DeleteCollection(ctx context.Context, o metav1.DeleteOptions, l metav1.ListOptions) error
	} {
		return client.CoreV1().Pods(metav1.NamespaceDefault)
	}
	var all []attack
	for _, o := range []struct {
		name, says string
		options    metav1.DeleteOptions
		// deleted: a deletion that asks for it is refused by the policy. The others are not let through to it.
		deleted bool
	}{
		{"at once", "time to shut down", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0)), Preconditions: metav1.NewUIDPreconditions(string(w.pod))}, true},
		{"in less than no time", "time to shut down", metav1.DeleteOptions{GracePeriodSeconds: new(int64(-1)), Preconditions: metav1.NewUIDPreconditions(string(w.pod))}, false},
		{"in a second", "that it asks for", metav1.DeleteOptions{GracePeriodSeconds: new(int64(1)), Preconditions: metav1.NewUIDPreconditions(string(w.pod))}, true},
		{"by its name alone", "UID", metav1.DeleteOptions{}, true},
		{"by its resourceVersion alone", "UID", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: new("1")}}, false},
	} {
		options := func(dry []string) metav1.DeleteOptions {
			out := *o.options.DeepCopy()
			out.DryRun = dry
			return out
		}
		all = append(all, attack{"a pod evicted " + o.name, evictionPolicy, func(ctx context.Context, client kubernetes.Interface, dry []string) error {
			options := options(dry)
			return pods(client).EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: wallPod}, DeleteOptions: &options})
		}, o.says})
		if !o.deleted {
			continue
		}
		all = append(all, attack{"a pod deleted " + o.name, evictionPolicy, func(ctx context.Context, client kubernetes.Interface, dry []string) error {
			return pods(client).Delete(ctx, wallPod, options(dry))
		}, o.says})
	}
	return append(all,
		attack{"a pod evicted without a word more", evictionPolicy, func(ctx context.Context, client kubernetes.Interface, dry []string) error {
			return client.CoreV1().RESTClient().Post().Namespace(metav1.NamespaceDefault).Resource("pods").Name(wallPod).SubResource("eviction").
				VersionedParams(&metav1.CreateOptions{DryRun: dry}, metav1.ParameterCodec).
				Body(&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: wallPod}}).Do(ctx).Error()
		}, "UID"},
		attack{"all pods deleted", evictionPolicy, func(ctx context.Context, client kubernetes.Interface, dry []string) error {
			return pods(client).DeleteCollection(ctx, metav1.DeleteOptions{DryRun: dry}, metav1.ListOptions{})
		}, "UID"})
}

// creations are objects of other names, and Events from others.
func creations(w *wall) []attack {
	configMap := func(namespace string, o metav1.ObjectMeta) func(context.Context, kubernetes.Interface, []string) error {
		return func(ctx context.Context, client kubernetes.Interface, dry []string) error {
			_, err := client.CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: o}, metav1.CreateOptions{DryRun: dry})
			return err
		}
	}
	lease := func(namespace, name string) func(context.Context, kubernetes.Interface, []string) error {
		return func(ctx context.Context, client kubernetes.Interface, dry []string) error {
			_, err := client.CoordinationV1().Leases(namespace).Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{DryRun: dry})
			return err
		}
	}
	event := func(name string, e *corev1.Event) attack {
		return attack{name, creationPolicy, func(ctx context.Context, client kubernetes.Interface, dry []string) error {
			_, err := client.CoreV1().Events(cmp.Or(e.Namespace, metav1.NamespaceDefault)).Create(ctx, e, metav1.CreateOptions{DryRun: dry})
			return err
		}, "Events"}
	}
	half := wallEvent("half", "kubelet")
	half.Source.Component = wallComponent
	return append(oddEvents(w, event), []attack{
		{"a policy planted", creationPolicy, configMap(w.namespace, metav1.ObjectMeta{Name: kube.PolicyConfigMap}), "ConfigMap"},
		{"a ConfigMap of any name", creationPolicy, configMap(w.namespace, metav1.ObjectMeta{GenerateName: kube.StateConfigMap}), "ConfigMap"},
		{"a ConfigMap elsewhere", creationPolicy, configMap(metav1.NamespaceDefault, metav1.ObjectMeta{Name: kube.StateConfigMap}), "ConfigMap"},
		{"another Lease", creationPolicy, lease(w.namespace, "planted"), "Lease"},
		{"a Lease elsewhere", creationPolicy, lease(metav1.NamespaceDefault, kube.LeaseName), "Lease"},
		event("an Event of a kubelet", wallEvent("forged", "kubelet")),
		event("an Event of nothing", wallEvent("forged", "")),
		event("an Event that a kubelet reports", half),
		{"an Event by the newer API", creationPolicy, func(ctx context.Context, client kubernetes.Interface, dry []string) error {
			_, err := client.EventsV1().Events(metav1.NamespaceDefault).Create(ctx, &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Name: "newer"}, EventTime: metav1.NowMicro(), Type: "Normal",
				ReportingController: "kubelet", ReportingInstance: "i", Action: "a", Reason: "r", Regarding: corev1.ObjectReference{Kind: "Node", Name: wallNode}}, metav1.CreateOptions{DryRun: dry})
			return err
		}, "Events"},
		{"an Event of others taken over", creationPolicy, func(ctx context.Context, client kubernetes.Interface, dry []string) error {
			_, err := client.CoreV1().Events(metav1.NamespaceDefault).Patch(ctx, "theirs", types.MergePatchType,
				fmt.Appendf(nil, `{"message":"forged","source":{"component":%q},"reportingComponent":%[1]q}`, wallComponent), metav1.PatchOptions{DryRun: dry})
			return err
		}, "Events"},
		{"an Event of others changed", creationPolicy, func(ctx context.Context, client kubernetes.Interface, dry []string) error {
			_, err := client.CoreV1().Events(metav1.NamespaceDefault).Patch(ctx, "theirs", types.MergePatchType, []byte(`{"message":"forged"}`), metav1.PatchOptions{DryRun: dry})
			return err
		}, "Events"},
	}...)
}

// oddEvents are Events as the controller's that are large, or about what the controller has nothing to say of.
func oddEvents(w *wall, event func(name string, e *corev1.Event) attack) []attack {
	long := func(n int) string { return strings.Repeat("v", n) }
	about := func(e *corev1.Event) *corev1.ObjectReference { return &e.InvolvedObject }
	var all []attack
	for _, o := range []struct {
		name string
		do   func(e *corev1.Event)
	}{
		{"annotations", func(e *corev1.Event) { e.Annotations = map[string]string{"a": "b"} }},
		{"labels", func(e *corev1.Event) { e.Labels = map[string]string{"a": "b"} }},
		{"finalizers", func(e *corev1.Event) { e.Finalizers = []string{"example.com/f"} }},
		{"an owner", func(e *corev1.Event) {
			e.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n", UID: "u"}}
		}},
		{"a name to be generated", func(e *corev1.Event) { e.GenerateName = "forged" }},
		{"a name without end", func(e *corev1.Event) { e.Name = long(254) }},
		{"a message without end", func(e *corev1.Event) { e.Message = long(1025) }},
		{"a message of wide characters", func(e *corev1.Event) { e.Message = strings.Repeat("é", 513) }},
		{"another type", func(e *corev1.Event) { e.Type = "Other" }},
		{"a reason without end", func(e *corev1.Event) { e.Reason = long(129) }},
		{"an action", func(e *corev1.Event) { e.Action = "a" }},
		{"a host without end", func(e *corev1.Event) { e.Source.Host = long(254) }},
		{"an instance without end", func(e *corev1.Event) { e.ReportingInstance = long(254) }},
		{"something related", func(e *corev1.Event) { e.Related = &corev1.ObjectReference{Kind: "Node", Name: "n"} }},
		{"a pod", func(e *corev1.Event) { about(e).Kind, about(e).Namespace = "Pod", metav1.NamespaceDefault }},
		{"another ConfigMap", func(e *corev1.Event) {
			e.Namespace = w.namespace
			*about(e) = corev1.ObjectReference{Kind: "ConfigMap", Namespace: w.namespace, Name: "other"}
		}},
		{"a policy elsewhere", func(e *corev1.Event) {
			*about(e) = corev1.ObjectReference{Kind: "ConfigMap", Namespace: metav1.NamespaceDefault, Name: kube.PolicyConfigMap}
		}},
		{"another API", func(e *corev1.Event) { about(e).APIVersion = "v2" }},
		{"a node's name without end", func(e *corev1.Event) { about(e).Name = long(254) }},
		{"a UID without end", func(e *corev1.Event) { about(e).UID = types.UID(long(129)) }},
		{"a version", func(e *corev1.Event) { about(e).ResourceVersion = "1" }},
		{"a field", func(e *corev1.Event) { about(e).FieldPath = "spec" }},
	} {
		e := wallEvent("odd", wallComponent)
		o.do(e)
		all = append(all, event("an Event with "+o.name, e))
	}
	return all
}

// wallComponent is what the controller's Events are from.
const wallComponent = "bottlerocket-update-operator"

func wallEvent(name, component string) *corev1.Event {
	return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: name}, InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: wallNode},
		Reason: "r", Message: "m", Type: corev1.EventTypeNormal, Source: corev1.EventSource{Component: component}, ReportingController: component}
}

// probes are one attack for each of a component's policies.
func probes(w *wall, component string) []attack {
	var out []attack
	for _, a := range attacks(w, component) {
		if !slices.ContainsFunc(out, func(o attack) bool { return o.policy == a.policy }) {
			out = append(out, a)
		}
	}
	return out
}

// S4, second wall: with a stolen token of the proxy or the controller one can change what that account is for, and
// nothing else; whatever RBAC lets it do.
func TestWall(t *testing.T) {
	w := newWall(t, Namespace)
	for component, client := range w.users {
		t.Run(component, func(t *testing.T) {
			for _, a := range attacks(w, component) {
				t.Run(a.name, func(t *testing.T) {
					before := bytesOf(t, w.node(t))
					err := a.do(t.Context(), client, nil)
					assert.Assert(t, apierrors.IsForbidden(err), "%v", err)
					assert.ErrorContains(t, err, "'"+a.policy+"'")
					assert.ErrorContains(t, err, a.says)
					assert.Equal(t, bytesOf(t, w.node(t)), before)
				})
			}
			t.Run("the kubelet behind it", func(t *testing.T) {
				answer, err := client.CoreV1().RESTClient().Get().Resource("nodes").Name(wallNode).SubResource("proxy").Do(t.Context()).Raw()
				assert.Assert(t, apierrors.IsForbidden(err), "%v", err)
				assert.Assert(t, strings.Contains(string(answer), "update-operator-"+component) && strings.Contains(string(answer), "connect"), "%s", answer)
			})
		})
	}
	pod, err := w.admin.CoreV1().Pods(metav1.NamespaceDefault).Get(t.Context(), wallPod, metav1.GetOptions{})
	assert.NilError(t, err)
	assert.Assert(t, pod.UID == w.pod && pod.DeletionTimestamp == nil)
}
