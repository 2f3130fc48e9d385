package manifest

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/preflight"
)

const checksPage = "docs/reference/checks.md"

// Every check of `kubectl bottlerocket check` is explained, in its order, and no other one.
func TestDocsChecks(t *testing.T) {
	var want []string
	for _, c := range preflight.Checks() {
		want = append(want, string(c))
	}
	assert.DeepEqual(t, firsts(t, checksPage, "checks"), want)
}

// The check asks for exactly the rights that the manifest and components/plans/plans.yaml give each account, and knows exactly their
// admission policies, each with a binding of its name.
func TestPreflightKnowsTheManifest(t *testing.T) {
	own, plans := load(t), plans(t)
	s := &preflight.Snapshot{Namespace: Namespace, PlansNamespace: kube.PlansNamespace}
	asked := map[string][]string{}
	for _, a := range s.AccountAsks(true) {
		asked[a.Component] = append(asked[a.Component], strings.Join([]string{a.Namespace, a.Group, a.Resource, a.Verb, a.Name}, " "))
	}
	for component, o := range map[string]Objects{Controller: own, Proxy: own, Runner: plans} {
		var given []string
		for _, g := range o.Grants(Namespace, preflight.Account(component)) {
			for _, name := range strings.Split(g.ResourceNames, ",") {
				given = append(given, strings.Join([]string{g.Namespace, g.APIGroup, g.Resource, g.Verb, name}, " "))
			}
		}
		slices.Sort(given)
		slices.Sort(asked[component])
		assert.DeepEqual(t, asked[component], given)
		w, err := o.Workload(component)
		assert.NilError(t, err)
		assert.Equal(t, w.Name, preflight.Account(component))
	}
	for _, c := range []struct {
		objects Objects
		names   []string
	}{{own, preflight.Walls(false)}, {plans, preflight.Walls(true)[len(preflight.Walls(false)):]}} {
		var policies, bindings []string
		for _, p := range c.objects.Policies {
			policies = append(policies, p.Name)
		}
		for _, b := range c.objects.PolicyBindings {
			assert.Equal(t, b.Name, b.Spec.PolicyName)
			bindings = append(bindings, b.Name)
		}
		for _, names := range [][]string{policies, bindings, c.names} {
			slices.Sort(names)
		}
		assert.DeepEqual(t, policies, c.names)
		assert.DeepEqual(t, bindings, c.names)
	}
	// All that is applied must be asked for: an installation fails at the first object that is refused.
	may := map[string]bool{}
	for _, a := range s.CallerAsks() {
		if a.For == preflight.Install && a.Verb == "create" {
			may[a.Group+"/"+a.Resource+"/"+a.Namespace] = true
		}
	}
	for _, obj := range own.All {
		kind := obj.GetObjectKind().GroupVersionKind()
		resource := strings.ToLower(kind.Kind) + "s"
		if strings.HasSuffix(kind.Kind, "Policy") {
			resource = strings.ToLower(strings.TrimSuffix(kind.Kind, "y")) + "ies"
		}
		namespace := obj.(interface{ GetNamespace() string }).GetNamespace()
		assert.Assert(t, may[kind.Group+"/"+resource+"/"+namespace], "%s %s in %s", kind.Group, resource, cmp.Or(namespace, "the cluster"))
	}
}
