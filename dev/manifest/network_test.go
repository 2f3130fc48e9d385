package manifest

import (
	"bytes"
	"slices"
	"testing"

	"gotest.tools/v3/assert"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
)

func networkPolicies(t *testing.T) map[string]*networkingv1.NetworkPolicy {
	t.Helper()
	content, err := Component("network-policy")
	assert.NilError(t, err)
	docs, err := split(content)
	assert.NilError(t, err)
	out := map[string]*networkingv1.NetworkPolicy{}
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	for _, doc := range docs {
		if len(bytes.TrimSpace(doc)) == 0 {
			continue
		}
		obj, _, err := decoder.Decode(doc, nil, nil)
		assert.NilError(t, err)
		p, ok := obj.(*networkingv1.NetworkPolicy)
		assert.Assert(t, ok, "%T", obj)
		out[p.Labels[LabelComponent]] = p
	}
	return out
}

// chosen are the components whose pods a selector chooses.
func chosen(t *testing.T, o Objects, selector *metav1.LabelSelector) []string {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(selector)
	assert.NilError(t, err)
	var out []string
	for _, w := range o.Workloads() {
		if s.Matches(labels.Set(w.Template.Labels)) {
			out = append(out, w.Component())
		}
	}
	slices.Sort(out)
	return out
}

// ports of a rule, each of which must be one that the components listen on.
func ports(t *testing.T, list []networkingv1.NetworkPolicyPort) []int32 {
	t.Helper()
	var out []int32
	for _, p := range list {
		assert.Assert(t, p.Port != nil && p.EndPort == nil)
		out = append(out, p.Port.IntVal)
	}
	return out
}

// The optional NetworkPolicies choose the pods of update-operator.yaml and components/plans/plans.yaml, and open the ports that these listen on.
func TestNetworkPolicies(t *testing.T) {
	o := load(t)
	o.Deployments = append(o.Deployments, plans(t).Deployments...)
	policies := networkPolicies(t)
	assert.Equal(t, len(policies), 4)
	for component, p := range policies {
		assert.Equal(t, p.Namespace, Namespace)
		assert.DeepEqual(t, chosen(t, o, &p.Spec.PodSelector), []string{component})
		assert.DeepEqual(t, p.Spec.PolicyTypes, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress})
		c := *workload(t, o, component).Container()
		metrics := p.Spec.Ingress[len(p.Spec.Ingress)-1]
		assert.DeepEqual(t, ports(t, metrics.Ports), []int32{port(t, c, "http")})
		assert.Assert(t, len(metrics.From) == 1 && metrics.From[0].NamespaceSelector != nil)
		for _, rule := range p.Spec.Ingress {
			assert.Assert(t, len(rule.From) > 0 && len(rule.Ports) > 0, "ingress of %s is open", component)
		}
		for _, rule := range p.Spec.Egress {
			assert.Assert(t, len(rule.Ports) > 0, "egress of %s is open", component)
		}
	}
	assert.Equal(t, len(policies[Controller].Spec.Ingress), 1)
	assert.Equal(t, len(policies[Agent].Spec.Ingress), 1)
	assert.Equal(t, len(policies[Runner].Spec.Ingress), 1)
	assert.Equal(t, len(policies[Proxy].Spec.Ingress), 2)
	https := port(t, *workload(t, o, Proxy).Container(), "https")
	agents := policies[Proxy].Spec.Ingress[0]
	assert.DeepEqual(t, chosen(t, o, agents.From[0].PodSelector), []string{Agent})
	assert.Assert(t, agents.From[0].NamespaceSelector == nil)
	assert.DeepEqual(t, ports(t, agents.Ports), []int32{https})
	// The proxies, and DNS.
	assert.Equal(t, len(policies[Agent].Spec.Egress), 2)
	proxies := policies[Agent].Spec.Egress[0]
	assert.DeepEqual(t, chosen(t, o, proxies.To[0].PodSelector), []string{Proxy})
	assert.DeepEqual(t, ports(t, proxies.Ports), []int32{https})
}
