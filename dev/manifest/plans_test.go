package manifest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/file"
)

// plans is what components/plans/plans.yaml holds.
func plans(t *testing.T) Objects {
	t.Helper()
	o, err := Decode(further(t, plansFile))
	assert.NilError(t, err)
	return o
}

func TestPlansObjects(t *testing.T) {
	o := plans(t)
	seen := map[string]bool{}
	for _, obj := range slices.Concat(load(t).All, o.All) {
		m, err := meta.Accessor(obj)
		assert.NilError(t, err)
		id := obj.GetObjectKind().GroupVersionKind().Kind + " " + m.GetNamespace() + "/" + m.GetName()
		assert.Assert(t, !seen[id], "%s stands there twice", id)
		seen[id] = true
		assert.Equal(t, m.GetLabels()[LabelName], Name, id)
	}
	assert.Equal(t, len(o.Namespaces), 1)
	assert.Equal(t, o.Namespaces[0].Name, plansNamespace)
	assert.Equal(t, o.Namespaces[0].Labels["pod-security.kubernetes.io/enforce"], "privileged")
	assert.Equal(t, o.All[0], any(o.Namespaces[0]), "the namespace comes first")
	assert.Equal(t, len(o.Secrets), 1)
	assert.Equal(t, o.Secrets[0].Type, corev1.SecretTypeOpaque)
	assert.Assert(t, o.Secrets[0].Data == nil && o.Secrets[0].StringData == nil, "applied again, it keeps the key")
	assert.Equal(t, len(o.ConfigMaps), 0)
	assert.Equal(t, len(o.ServiceAccounts), 1)
	assert.Assert(t, !*o.ServiceAccounts[0].AutomountServiceAccountToken)

	assert.Equal(t, len(o.Workloads()), 1)
	w := workload(t, o, Runner)
	tolerates(t, w, "node.kubernetes.io/unschedulable", marker.TaintFresh)
	assert.Equal(t, *o.Deployments[0].Spec.Replicas, int32(1))
	assert.Equal(t, o.Deployments[0].Spec.Strategy.Type, appsv1.RecreateDeploymentStrategyType)
	assert.Equal(t, w.Template.Spec.ServiceAccountName, o.ServiceAccounts[0].Name)
	assert.Assert(t, *w.Template.Spec.AutomountServiceAccountToken)
	assert.DeepEqual(t, w.Container().Args, []string{"-runner", "-log-format=json"})
	assert.DeepEqual(t, w.Container().Command, workload(t, load(t), Controller).Container().Command)
	assert.DeepEqual(t, w.Template.Annotations, workload(t, load(t), Controller).Template.Annotations)
	assert.DeepEqual(t, w.Container().Env, workload(t, load(t), Controller).Container().Env)
}

func TestPlansRights(t *testing.T) {
	o := plans(t)
	assert.Equal(t, len(o.Unbound()), 0)
	for account, want := range map[string][]string{
		"update-operator-runner": {
			"/nodes get list patch watch",
			Namespace + ":/configmaps create", Namespace + ":/configmaps[" + planTargets + "] get list update watch",
			Namespace + ":/configmaps[" + kube.PolicyConfigMap + "] get list watch", Namespace + ":/secrets[update-operator-runner] get update",
			plansNamespace + ":/configmaps get list watch", plansNamespace + ":/pods create delete get list patch watch", plansNamespace + ":/pods/log get",
			plansNamespace + ":/podtemplates get list watch", plansNamespace + ":/secrets get list watch",
		},
		"update-operator-controller": nil,
		"update-operator-proxy":      nil,
		"update-operator-agent":      nil,
	} {
		var got []string
		for _, g := range o.Grants(Namespace, account) {
			id := g.APIGroup + "/" + g.Resource
			if g.ResourceNames != "" {
				id += "[" + g.ResourceNames + "]"
			}
			if g.Namespace != "" {
				id = g.Namespace + ":" + id
			}
			got = append(got, id+" "+g.Verb)
		}
		slices.Sort(want)
		assert.DeepEqual(t, merged(got), want)
	}
}

// The policies are about the runner's account, know its keys, and hinder no other one where they have nothing to judge by.
func TestPlanWallKnowsAllKeys(t *testing.T) {
	o := plans(t)
	var all []string
	for i, p := range o.Policies {
		all = append(all, p.Name)
		b := o.PolicyBindings[i]
		assert.Equal(t, b.Name, p.Name)
		assert.Equal(t, b.Spec.PolicyName, p.Name)
		assert.Equal(t, fmt.Sprint(b.Spec.ValidationActions), "[Deny Audit]")
		assert.Equal(t, string(*p.Spec.FailurePolicy), "Fail")
		assert.Equal(t, p.Spec.MatchConditions[0].Expression,
			"request.userInfo.username.startsWith('system:serviceaccount:') && request.userInfo.username.endsWith(':update-operator-runner')")
		assert.Equal(t, p.Spec.ParamKind != nil, b.Spec.ParamRef != nil)
		kept := p.Labels["bottlerocket.aws/keep"] == "true"
		assert.Equal(t, p.Spec.ParamKind != nil, kept, p.Name)
		assert.Equal(t, b.Labels["bottlerocket.aws/keep"] == "true", kept, p.Name)
		if p.Spec.ParamKind != nil {
			assert.Equal(t, string(*b.Spec.ParamRef.ParameterNotFoundAction), "Deny")
			match := p.Spec.MatchConstraints
			assert.DeepEqual(t, match.NamespaceSelector.MatchLabels, map[string]string{corev1.LabelMetadataName: plansNamespace})
			assert.Equal(t, match.ObjectSelector.MatchExpressions[0].Key, "bottlerocket.aws/plan")
		}
	}
	assert.DeepEqual(t, all, []string{runnerPolicy, podPolicy, templatePolicy, intentPolicy, planPolicy, configMapPolicy})
	assert.Equal(t, len(o.PolicyBindings), len(all))

	known := slices.DeleteFunc(names(marker.WriterAgent), func(k string) bool {
		// A host's own are the agent's alone.
		return slices.Contains([]marker.Key{marker.KeyAvailableVersion, marker.KeyOfferedVersions, marker.KeyVersionLock, marker.KeyWaveSeed, marker.KeyUpdateAvailable},
			marker.Key(k))
	})
	slices.Sort(known)
	assert.DeepEqual(t, listed(o.Policies[0], "known"), known)
	var answer []string
	for _, k := range marker.AnswerKeys() {
		answer = append(answer, string(k))
	}
	slices.Sort(answer)
	assert.DeepEqual(t, listed(o.Policies[0], "answer"), answer)
	// What a policy of the operator's says of its ConfigMap.
	assert.Equal(t, o.PolicyBindings[4].Spec.ParamRef.Name, kube.PolicyConfigMap)
	assert.Assert(t, strings.Contains(o.Policies[4].Spec.Variables[2].Expression, "'"+kube.PolicyKey+"'"))
}

// A policy that is taken names its templates so that the admission policy about them finds each: else every node would be
// drained, and its pod refused.
func TestPolicyNamesTemplates(t *testing.T) {
	o := plans(t)
	at := slices.IndexFunc(o.Policies, func(p *admissionv1.ValidatingAdmissionPolicy) bool { return p.Name == planPolicy })
	parts := regexp.MustCompile(`l\.matches\('(.*)' \+ variables\.pattern \+ '(.*)'\)\)`).FindStringSubmatch(o.Policies[at].Spec.Validations[0].Expression)
	assert.Equal(t, len(parts), 3)
	unquoted := strings.NewReplacer(`\\`, `\`, `\'`, `'`)
	named := regexp.MustCompile(unquoted.Replace(parts[1]) + "kernel" + unquoted.Replace(parts[2]))
	for apply, want := range map[string]bool{
		"  apply: kernel": true, `  apply: "kernel" # x`: true, "  apply: 'kernel'\r": true, "  \"apply\"  :  kernel": true,
		"  apply:\n    kernel": false, "  apply: &t kernel": false, "  apply: !!str kernel": false, "  ? apply\n  : kernel": false, "  apply: >-\n    kernel": false,
		`  apply: "ker\u006eel"`: false, `  "ap\u0070ly": kernel`: false, "  apply: kernel\n  # apply: kernel": true,
	} {
		text := fmt.Sprintf("version: 1\nplans:\n- name: a\n  nodeSelector: {}\n%s\n  target: {content: true}\n  proof: content\n  effect: none\n", apply)
		_, err := file.Decode([]byte(text), policy.DefaultSettings(), time.LoadLocation)
		assert.Equal(t, err == nil, want, "%q: %v", apply, err)
		assert.Equal(t, slices.ContainsFunc(strings.Split(text, "\n"), named.MatchString), want, "%q", apply)
		if !want {
			assert.ErrorContains(t, err, "plans[0].apply is written so that the admission policies of plans don't find it: write apply: kernel on one line")
		}
	}
	for _, text := range []string{
		"version: 1\nplans: [{name: a, nodeSelector: {}, apply: kernel, target: {content: true}, proof: content, effect: none}]\n",
		`{"version":1,"plans":[{"name":"a","nodeSelector":{},"apply":"kernel","target":{"content":true},"proof":"content","effect":"none"}]}`,
	} {
		_, err := file.Decode([]byte(text), policy.DefaultSettings(), time.LoadLocation)
		assert.NilError(t, err)
		assert.Assert(t, slices.ContainsFunc(strings.Split(text, "\n"), named.MatchString))
	}
}
