package manifest

import (
	"fmt"
	"slices"
	"testing"

	"gotest.tools/v3/assert"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube/access"
)

// planHoles are the checks of components/plans/plans.yaml.
func planHoles() []hole {
	var all []hole
	add := func(policy string, lines ...[3]string) {
		for _, l := range lines {
			all = append(all, hole{policy, l[0], l[1], l[2]})
		}
	}
	add(runnerPolicy, nodeHoles()...)
	add(runnerPolicy,
		[3]string{unchanged("labels"), "[]", "a label"},
		[3]string{"object.spec == oldObject.spec", "true", "the cordon"},
		[3]string{"oldObject.metadata.?labels[?'bottlerocket.aws/updater-interface-version'].orValue('') == 'plan'", "true", "a fact on a node without plans"},
		[3]string{"'bottlerocket.aws/paused', ", "", "a pause removed from many, for another"},
		[3]string{", 'bottlerocket.aws/intent-id'].all", "].all", "an intent forged among many"},
		[3]string{"'bottlerocket.aws/cycle', ", "", "a request forged among many"},
		[3]string{"variables.answer.all(k, variables.has[?k] == variables.had[?k]) ||", "true ||", "an answer to another intent"},
		[3]string{"'bottlerocket.aws/action-state', 'bottlerocket.aws/reason', 'bottlerocket.aws/message']", "'bottlerocket.aws/reason', 'bottlerocket.aws/message']", "an earlier answer changed"},
		[3]string{", 'bottlerocket.aws/message']", "]", "a message to an earlier answer"},
		[3]string{"!variables.answered ||", "true ||", "busy after an answer"},
	)
	add(podPolicy,
		[3]string{`"expression":"variables.whole",`, `"expression":"true",`, "a pod evicted"},
		[3]string{"request.namespace == 'bottlerocket-plans'", "true", "a pod in another namespace"},
		[3]string{"(object.metadata.?generateName.orValue('') == '' ? [] : ['metadata.generateName'])", "[]", "a pod with a name to be generated"},
		[3]string{"(size(object.metadata.?ownerReferences.orValue([])) == 0 ? [] : ['metadata.ownerReferences'])", "[]", "a pod with an owner"},
		[3]string{"(object.metadata.?finalizers.orValue([]) == ['bottlerocket.aws/plan'] ? [] : ['metadata.finalizers'])", "[]", "a pod without a finalizer"},
		[3]string{"['metadata.name']", "[]", "a pod of any name"},
		[3]string{"[0-9a-f]{16}$", "[0-9a-f]{16}", "a pod with more to its name"},
		[3]string{"object.metadata.?name.orValue('').startsWith(variables.plan + '-') && object.metadata.name.substring(size(variables.plan))",
			"object.metadata.name.substring(size(object.metadata.name) - 17)", "a pod of another plan's name"},
		[3]string{unchanged("generateName"), "[]", "a name to be generated for a pod"},
		[3]string{unchanged("ownerReferences"), "[]", "an owner of a pod"},
		[3]string{unchanged("labels"), "[]", "the labels of a pod"},
		[3]string{unchanged("annotations"), "[]", "the annotations of a pod"},
		[3]string{"['metadata.managedFields']", "[]", "the managed fields of a pod"},
		[3]string{"object.spec == oldObject.spec", "true", "the image of a running pod"},
		[3]string{" && object.metadata.?finalizers.orValue([]).all(f, f in oldObject.metadata.?finalizers.orValue([]))", "", "our finalizer on a pod"},
		[3]string{"oldObject.metadata.?finalizers.orValue([]).filter(f, f != 'bottlerocket.aws/plan')", "object.metadata.?finalizers.orValue([]).filter(f, f != 'bottlerocket.aws/plan')",
			"a finalizer of others off a pod"},
	)
	for _, odd := range [][2]string{
		{"label bottlerocket.aws/plan", "of a plan that no policy has"}, {"annotation bottlerocket.aws/intent-id", "without an intent"}, {"annotation bottlerocket.aws/node-uid", "without a UID"},
		{"annotation bottlerocket.aws/target", "with a target of two lines"}, {"annotation bottlerocket.aws/tag", "with the tag of another target"}, {"spec.nodeName", "without a node"},
		{"spec.nodeSelector", "without a nodeSelector"}, {"spec.restartPolicy", "that starts again"},
		{"spec.activeDeadlineSeconds", "without a deadline"},
	} {
		add(podPolicy, [3]string{"['" + odd[0] + "']", "[]", "a pod " + odd[1]})
	}
	add(intentPolicy,
		[3]string{"['another UID']", "[]", "a pod for an earlier node of that name"},
		[3]string{"['another intent']", "[]", "a pod for an earlier intent"},
		[3]string{"['another template']", "[]", "a pod of another template"},
		[3]string{"['another plan or target']", "[]", "a pod with another target"},
		[3]string{"variables.version == variables.plan + '/content#' + variables.target", "true", "a pod with other content"},
		[3]string{"(variables.version.startsWith(variables.plan + '/content#') ?", "(false ?", "a pod with content that is not said"},
		[3]string{"['an action without a pod']", "[]", "a pod for an intent that makes none"},
		[3]string{"['not cordoned']", "[]", "a pod on a node that isn't cordoned"},
		[3]string{"['not busy with that']", "[]", "a pod for a node that is not busy"},
		[3]string{" && variables.node[?'bottlerocket.aws/active-id'] == variables.node[?'bottlerocket.aws/intent-id']", "", "a pod for a node that is busy with an earlier intent"},
		[3]string{"['after intent-until']", "[]", "a pod after its time"},
		[3]string{"['another deadline']", "[]", "a pod with more time"},
	)
	add(planPolicy,
		[3]string{"(apply|prepare)", "[a-z]+", "a pod of a template that no plan names"},
		[3]string{"variables.name.matches(r'^[a-z0-9][-.a-z0-9]*$') ? ", "true ? ", "a pod of a pattern of templates"},
	)
	add(configMapPolicy,
		[3]string{"object.metadata.?name.orValue('') == 'plan-targets'", "true", "a policy planted"},
		[3]string{"request.userInfo.username == 'system:serviceaccount:' + request.namespace + ':update-operator-runner'", "true", "what is known of plans, elsewhere"},
		[3]string{`["CREATE","UPDATE","DELETE"]`, `["CREATE"]`, "a policy changed"},
	)
	return append(all, templateHoles()...)
}

func templateHoles() []hole {
	var all []hole
	for _, l := range [][3]string{
		{"variables.labels[0].all(k, k in variables.ownLabels || variables.labels[1][?k] == variables.labels[0][?k])", "true", "with another label"},
		{"k in variables.ownLabels || k in variables.labels[0]", "true", "with a label"},
		{"variables.annotations[0].all(k, k in variables.ownMarks || variables.annotations[1][?k] == variables.annotations[0][?k])", "true", "with without an annotation"},
		{"k in variables.ownMarks || k in variables.annotations[0]", "true", "with an annotation"},
		{"variables.selectors[1][?k] == variables.selectors[0][?k]", "true", "with without its selector"},
		{"k in variables.selectors[0] || variables.runtime", "true", "with a selector"},
		{"['spec.tolerations']", "[]", "with a toleration"},
		{"variables.pod.?tolerations.orValue([]).exists(t, t == {'operator': 'Exists'})", "true", "with no toleration of all"},
		{"variables.pod.?automountServiceAccountToken == optional.of(variables.token)", "true", "without the token that its template wants"},
		{"['spec.serviceAccountName']", "[]", "with another account"},
		{"['spec.imagePullSecrets']", "[]", "with other pull secrets"},
		{" && !variables.pod.priorityClassName.startsWith('system-')", "", "with a priority"},
		{"!variables.want.?priorityClassName.hasValue() && !variables.pod.priorityClassName.startsWith('system-')", "true", "with no priority"},
		{"['spec.enableServiceLinks']", "[]", "with links to services"},
		{"variables.pod.filter(k, !(k in variables.special) && variables.pod[?k] != variables.want[?k]).map(k, 'spec.' + k)", "[]", "with the host's processes"},
		{"variables.want.filter(k, !(k in variables.special) && !(k in variables.pod)).map(k, 'spec.' + k)", "[]", "with no runtime of its own"},
		{"variables.volumes == variables.wantedVolumes", "true", "with another part of the host"},
		{"v.?projected == variables.projected[?'projected']", "true", "with the host in place of a token"},
		{"!variables.token ? variables.pod.?volumes.orValue([]) : ", "", "with a token's volume"},
		{"&& m == {'name': dyn(m.name), 'readOnly': dyn(true), 'mountPath': dyn('/var/run/secrets/kubernetes.io/serviceaccount')}", "", "with its token elsewhere"},
		{"variables.pod.containers.map(c, c.name) == variables.want.?containers.orValue([]).map(c, c.name)", "true", "with the containers the other way round"},
		{"variables.pod.?initContainers.orValue([]).map(c, c.name) == variables.want.?initContainers.orValue([]).map(c, c.name)", "true", "with no container at first"},
		{"w.name == c.name && c.image == (", "w.name == c.name || c.image == (", "with another image"},
		{"(c.?imagePullPolicy == w.?imagePullPolicy || c.?imagePullPolicy.orValue('') == 'Always')", "true", "with an image that is never pulled"},
		{"w.name == c.name && (c.?volumeMounts", "w.name == c.name || (c.?volumeMounts", "with a volume mounted elsewhere"},
		{"w.name == c.name && (c.?ports", "w.name == c.name || (c.?ports", "with another port"},
		{"size(c.?ports.orValue([])) == size(w.?ports.orValue([]))", "true", "with a port less"},
		{"variables.want.?hostNetwork.orValue(false) && ", "", "with a port of the host for its own"},
		{"'resources'] || c[?k] == w[?k]", "'resources'] || true", "with a privileged container"},
		{"r[1][?f][?k] == optional.of(r[0][f][k])", "true", "with another limit"},
		{"k in variables.measures || k in r[0][?f].orValue({}) || f == 'requests' && r[1].requests[?k] == r[0].?limits[?k]", "true", "with a device"},
	} {
		all = append(all, hole{templatePolicy, l[0], l[1], "a pod " + l[2]})
	}
	return all
}

// silence makes a policy match no request, and returns what puts it right. It stays: an API server that sees the last
// policy about PodTemplates go looks at none ever after.
func (w *planWall) silence(t *testing.T, name string) func() {
	t.Helper()
	all := w.admin.AdmissionregistrationV1().ValidatingAdmissionPolicies()
	change := func(conditions func(stand []admissionv1.MatchCondition) []admissionv1.MatchCondition) {
		p, err := all.Get(t.Context(), name, metav1.GetOptions{})
		assert.NilError(t, err)
		p.Spec.MatchConditions = conditions(p.Spec.MatchConditions)
		_, err = all.Update(t.Context(), p, metav1.UpdateOptions{})
		assert.NilError(t, err)
	}
	change(func(stand []admissionv1.MatchCondition) []admissionv1.MatchCondition {
		return append(slices.Clone(stand), admissionv1.MatchCondition{Name: "none", Expression: "false"})
	})
	return func() {
		change(func(stand []admissionv1.MatchCondition) []admissionv1.MatchCondition { return stand[:len(stand)-1] })
	}
}

// The runner finds that a policy is not in force; of those about pods, that all are not which look at any pod.
func (w *planWall) found(t *testing.T) {
	finds := func(want bool, silent []string) {
		await(t, fmt.Sprintf("the runner finds that %s is in force: %v", silent, want), func() bool {
			walled, err := access.RunnerRestricted(t.Context(), w.runner, Namespace, plansNamespace, idleNode)
			assert.NilError(t, err)
			return walled == want
		})
	}
	for _, silent := range [][]string{{runnerPolicy}, {configMapPolicy}, {podPolicy, planPolicy}} {
		var restore []func()
		for _, name := range silent {
			restore = append(restore, w.silence(t, name))
		}
		finds(false, silent)
		for _, f := range restore {
			f()
		}
		finds(true, silent)
	}
}

// Each check of the walls of plans is taken away in turn, and then an attack succeeds, as TestWallHoles has it.
func (w *planWall) holed(t *testing.T) {
	o := plans(t)
	admission := w.admin.AdmissionregistrationV1()
	for _, p := range o.Policies {
		restore := w.silence(t, p.Name)
		defer func() {
			restore()
			all, _ := planAttacks(t, w, lair)
			for _, a := range all {
				if a.policy == p.Name {
					await(t, "the policy of "+a.name+" is in force again", func() bool { return byPolicy(a.do(t.Context(), w.thief, []string{metav1.DryRunAll})) })
					break
				}
			}
		}()
	}
	clients := map[string]kubernetes.Interface{}
	for i, h := range planHoles() {
		name := fmt.Sprint("hole-", i)
		defer func() {
			assert.Check(t, admission.ValidatingAdmissionPolicyBindings().Delete(t.Context(), name, metav1.DeleteOptions{}))
			assert.Check(t, admission.ValidatingAdmissionPolicies().Delete(t.Context(), name, metav1.DeleteOptions{}))
		}()
		at := slices.IndexFunc(o.Policies, func(p *admissionv1.ValidatingAdmissionPolicy) bool { return p.Name == h.policy })
		_, err := admission.ValidatingAdmissionPolicies().Create(t.Context(), h.in(t, o.Policies[at], name), metav1.CreateOptions{})
		assert.NilError(t, err, "%s without what holds %s", h.policy, h.attack)
		b := o.PolicyBindings[at].DeepCopy()
		b.Name, b.Spec.PolicyName = name, name
		_, err = admission.ValidatingAdmissionPolicyBindings().Create(t.Context(), b, metav1.CreateOptions{})
		assert.NilError(t, err)
		_, err = w.admin.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		assert.NilError(t, err)
		clients[name] = w.almighty(t, name, Runner)
	}
	dry := []string{metav1.DryRunAll}
	for i, h := range planHoles() {
		t.Run(h.policy+" without what holds "+h.attack, func(t *testing.T) {
			name := fmt.Sprint("hole-", i)
			all, wet := planAttacks(t, w, name)
			find := func(a attack) bool { return a.policy == h.policy && a.name == h.attack }
			// Wet attacks are dry ones too, of another kind.
			options := dry
			at := slices.IndexFunc(all, find)
			if at < 0 {
				at, options = slices.IndexFunc(wet, find), nil
				assert.Assert(t, at >= 0, "no attack %q", h.attack)
				all = append(slices.Clone(wet), all...)
			}
			through := all[at]
			await(t, "the rest of the policy is in force", func() bool {
				return slices.ContainsFunc(all, func(a attack) bool {
					return a.policy == h.policy && a.name != h.attack && byPolicy(a.do(t.Context(), clients[name], dry))
				})
			})
			var err error
			await(t, "the attack goes through", func() bool {
				err = through.do(t.Context(), clients[name], options)
				return err == nil || !byPolicy(err)
			})
			assert.NilError(t, err)
		})
	}
}
