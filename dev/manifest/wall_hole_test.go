package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gotest.tools/v3/assert"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// hole is a check taken out of a policy, and the attack that then succeeds.
type hole struct{ policy, old, new, attack string }

func holes() []hole {
	var all []hole
	add := func(policy string, lines ...[3]string) {
		for _, l := range lines {
			all = append(all, hole{policy, l[0], l[1], l[2]})
		}
	}
	for _, p := range []string{"update-operator-proxy", "update-operator-controller"} {
		add(p, nodeHoles()...)
	}
	add("update-operator-proxy",
		[3]string{"'bottlerocket.aws/paused', 'bottlerocket.aws/cycle']", "'bottlerocket.aws/cycle']", "a pause removed from many, for another"},
		[3]string{"'bottlerocket.aws/paused', 'bottlerocket.aws/cycle']", "'bottlerocket.aws/paused']", "a request in the place of another annotation"},
		[3]string{unchanged("labels"), "[]", "a label"},
		[3]string{"object.spec == oldObject.spec", "true", "the cordon"},
	)
	add("update-operator-controller",
		[3]string{"size(variables.said) == 0", "true", "an answer forged"},
		[3]string{" && variables.had[?'bottlerocket.aws/paused'] == variables.has[?'bottlerocket.aws/paused']", "", "a pause removed from many, for another"},
		[3]string{"['bottlerocket.aws/retry', 'bottlerocket.aws/cycle']).filter", "['bottlerocket.aws/cycle']).filter", "a retry forged"},
		[3]string{"['bottlerocket.aws/retry', 'bottlerocket.aws/cycle']).filter", "['bottlerocket.aws/retry']).filter", "a request forged"},
		[3]string{"&& (variables.own + variables.agents).exists(o, o in variables.has)", "&& false", "a report removed by itself"},
		[3]string{"'bottlerocket.aws/failure' in variables.has)", "false)", "a retry removed, and the failure left"},
		[3]string{"size(bytes(variables.has[k])) > 128", "false", "a mark that could not have stood there"},
		[3]string{"size(variables.labels) == 0", "true", "a label changed"},
		[3]string{"? [] : ['(one beside more than 1000)']) : (variables.hasLabels.filter", "? [] : []) : (variables.hasLabels.filter", "a label among many"},
		[3]string{"variables.hadLabels.filter(k, !(k in variables.hasLabels))", "[]", "our own label removed"},
	)
	add("update-operator-controller", labelHoles()...)
	add("update-operator-controller", lockHoles()...)
	add("update-operator-controller", freshHoles()...)
	add(evictionPolicy,
		[3]string{"variables.options.?preconditions.?uid.hasValue()", "true", "a pod evicted by its name alone"},
		[3]string{"variables.options.?gracePeriodSeconds.orValue(1) > 0", "true", "a pod evicted at once"},
		[3]string{"variables.options.?gracePeriodSeconds.orValue(1) > 0", "variables.options.?gracePeriodSeconds.orValue(1) != 0", "a pod evicted in less than no time"},
		[3]string{"variables.left || variables.maySay", "true", "a pod evicted in a second"},
		[3]string{"[dyn(30), dyn(oldObject)", "[dyn(1), dyn(oldObject)", "a pod deleted in a second"},
		[3]string{`"operations":["DELETE"]`, `"operations":["UPDATE"]`, "a pod deleted at once"},
	)
	add(creationPolicy,
		[3]string{"variables.name == 'update-state'", "true", "a policy planted"},
		[3]string{"variables.home && variables.name == 'update-state'", "variables.name == 'update-state'", "a ConfigMap elsewhere"},
		[3]string{"variables.name == 'update-operator-controller'", "true", "another Lease"},
		[3]string{"variables.home && variables.name == 'update-operator-controller'", "variables.name == 'update-operator-controller'", "a Lease elsewhere"},
		[3]string{"e.?source.?component.orValue('') == 'bottlerocket-update-operator' && ", "", "an Event of nothing"},
		[3]string{" && e.?reportingComponent.orValue('') in ['', 'bottlerocket-update-operator']", "", "an Event that a kubelet reports"},
		[3]string{"[dyn(object), dyn(oldObject)]", "[dyn(object)]", "an Event of others taken over"},
		[3]string{`["CREATE","UPDATE"]`, `["CREATE"]`, "an Event of others changed"},
		[3]string{"size(bytes(variables.event.?message.orValue('')))", "size(variables.event.?message.orValue(''))", "an Event with a message of wide characters"},
		[3]string{"'ConfigMap' && variables.home && ", "'ConfigMap' && ", "an Event with a policy elsewhere"},
		[3]string{" && variables.about.?name.orValue('') == 'update-policy'", "", "an Event with another ConfigMap"},
	)
	for _, odd := range [][2]string{
		{"annotations", "annotations"}, {"labels", "labels"}, {"finalizers", "finalizers"}, {"ownerReferences", "an owner"},
		{"generateName", "a name to be generated"}, {"name", "a name without end"}, {"message", "a message without end"}, {"type", "another type"},
		{"reason", "a reason without end"}, {"action", "an action"}, {"source.host", "a host without end"}, {"reportingInstance", "an instance without end"},
		{"related", "something related"}, {"involvedObject", "a pod"}, {"involvedObject.apiVersion", "another API"},
		{"involvedObject.name", "a node's name without end"}, {"involvedObject.uid", "a UID without end"},
		{"involvedObject.resourceVersion", "a version"}, {"involvedObject.fieldPath", "a field"},
	} {
		add(creationPolicy, [3]string{"['" + odd[0] + "']", "[]", "an Event with " + odd[1]})
	}
	return all
}

// unchanged is how policies compare a field of metadata.
func unchanged(field string) string {
	return fmt.Sprintf("(object.metadata.?%s == oldObject.metadata.?%[1]s ? [] : ['metadata.%[1]s'])", field)
}

// nodeHoles are those that the policies about Nodes of all accounts can have.
func nodeHoles() [][3]string {
	return [][3]string{
		{"size(variables.foreign) == 0", "true", "a foreign annotation changed"},
		{"variables.had.filter(k, !(k in variables.has))", "[]", "a foreign annotation removed"},
		{"? [] : ['(one beside more than 1000)']) : (variables.has.filter", "? [] : []) : (variables.has.filter", "a foreign annotation among many"},
		{"size(variables.unfit) == 0", "true", "a value with two lines"},
		{"size(bytes(variables.has[k])) > 4096", "false", "a value without end"},
		{`\p{S} ]`, `\p{S}\p{Cc} ]`, "a value with an escape"},
		{`\p{S} ]`, `\p{S}\p{Cf} ]`, "a value with text turned round"},
		{`\p{S} ]`, `\p{S}\p{Z} ]`, "a value with a line separator"},
		{`\p{S} ]`, `\p{S}\p{C} ]`, "a value with a character of private use"},
		{unchanged("finalizers"), "[]", "a finalizer removed"},
		{unchanged("ownerReferences"), "[]", "an owner"},
		{unchanged("generateName"), "[]", "a name to be generated"},
		{"['metadata.managedFields']", "[]", "the managed fields removed"},
	}
}

// in is the policy with the hole, for the account of a namespace of its own.
func (h hole) in(t *testing.T, p *admissionv1.ValidatingAdmissionPolicy, namespace string) *admissionv1.ValidatingAdmissionPolicy {
	t.Helper()
	encode := func(v any) string {
		var out bytes.Buffer
		e := json.NewEncoder(&out)
		e.SetEscapeHTML(false)
		assert.NilError(t, e.Encode(v))
		return strings.TrimSpace(out.String())
	}
	quoted := func(s string) string {
		if strings.HasPrefix(s, `"`) || strings.HasPrefix(s, "[\"") {
			return s
		}
		s = encode(s)
		return s[1 : len(s)-1]
	}
	text := encode(p)
	assert.Equal(t, strings.Count(text, quoted(h.old)), 1, "%s: %s", h.policy, h.old)
	holed := &admissionv1.ValidatingAdmissionPolicy{}
	assert.NilError(t, json.Unmarshal([]byte(strings.Replace(text, quoted(h.old), quoted(h.new), 1)), holed))
	holed.Name = namespace
	holed.Spec.MatchConditions[0].Expression += fmt.Sprintf(" && request.userInfo.username.startsWith('system:serviceaccount:%s:')", namespace)
	return holed
}

// Each check of the walls is taken away in turn, and then an attack succeeds: that TestWall holds says something. All
// policies with holes stand at once, each for an account of its own.
func TestWallHoles(t *testing.T) {
	w := newPlane(t, Namespace)
	w.fill(t)
	// The walls of other tests would hold what the ones with holes don't.
	for _, p := range wallPolicies {
		err := w.admin.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(t.Context(), p.name, metav1.DeleteOptions{})
		assert.Assert(t, err == nil || apierrors.IsNotFound(err), "%v", err)
	}
	policies := load(t).Policies
	clients := map[string]kubernetes.Interface{}
	for i, h := range holes() {
		namespace := fmt.Sprint("hole-", i)
		// They would be asked for the writes of other tests too.
		defer func() {
			assert.Check(t, w.admin.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(t.Context(), namespace, metav1.DeleteOptions{}))
			assert.Check(t, w.admin.AdmissionregistrationV1().ValidatingAdmissionPolicies().Delete(t.Context(), namespace, metav1.DeleteOptions{}))
		}()
		at := slices.IndexFunc(policies, func(p *admissionv1.ValidatingAdmissionPolicy) bool { return p.Name == h.policy })
		admission := w.admin.AdmissionregistrationV1()
		_, err := admission.ValidatingAdmissionPolicies().Create(t.Context(), h.in(t, policies[at], namespace), metav1.CreateOptions{})
		created(t, err)
		_, err = admission.ValidatingAdmissionPolicyBindings().Create(t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: namespace},
			Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: namespace, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}}}, metav1.CreateOptions{})
		created(t, err)
		_, err = w.admin.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
		created(t, err)
		clients[namespace] = w.almighty(t, namespace, wallPolicies[at].component)
		if strings.Contains(h.old, ".orValue(1) > 0") {
			// Where nothing may be said of the time, nothing is said of no time either.
			w.apply(t, strings.ReplaceAll(strings.ReplaceAll(string(further(t, "grace-period")), "namespace: "+Namespace, "namespace: "+namespace),
				"name: update-operator-controller-grace-period", "name: grace-period-"+namespace))
		}
	}
	dry := []string{metav1.DryRunAll}
	for i, h := range holes() {
		t.Run(h.policy+" without what holds "+h.attack, func(t *testing.T) {
			in := &wall{namespace: fmt.Sprint("hole-", i), pod: w.pod}
			client := clients[in.namespace]
			var through *attack
			var others []attack
			for _, p := range wallPolicies {
				if p.name != h.policy {
					continue
				}
				for _, a := range attacks(in, p.component) {
					switch {
					case a.policy == h.policy && a.name == h.attack:
						through = &a
					case a.policy == h.policy:
						others = append(others, a)
					}
				}
			}
			assert.Assert(t, through != nil, "no attack %q", h.attack)
			await(t, "the rest of the policy is in force", func() bool {
				return slices.ContainsFunc(others, func(a attack) bool { return byPolicy(a.do(t.Context(), client, dry)) })
			})
			await(t, "the attack goes through", func() bool { return through.do(t.Context(), client, dry) == nil })
		})
	}
}
