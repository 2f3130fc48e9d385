package policy_test

import (
	"testing"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// A selector chooses as Kubernetes' selectors do, and is shown as kubectl writes it.
func TestSelector(t *testing.T) {
	one := map[string]string{"role": "ingress"}
	for _, tc := range []struct {
		selector                policy.Selector
		text                    string
		ingress, batch, without bool
	}{
		{nil, "", true, true, true},
		{policy.Selector{{Key: "role", Operator: policy.In, Values: []string{"ingress"}}}, "role=ingress", true, false, false},
		{policy.Selector{{Key: "role", Operator: policy.In, Values: []string{"ingress", ""}}}, "role in (ingress,)", true, false, false},
		{policy.Selector{{Key: "role", Operator: policy.NotIn, Values: []string{"ingress", ""}}}, "role notin (ingress,)", false, true, true},
		{policy.Selector{{Key: "role", Operator: policy.Exists}}, "role", true, true, false},
		{policy.Selector{{Key: "role", Operator: policy.DoesNotExist}}, "!role", false, false, true},
		{policy.Selector{{Key: "role", Operator: "Like", Values: []string{"ingress"}}}, "", false, false, false},
		{policy.Selector{{Key: "role", Operator: policy.Exists}, {Key: "role", Operator: policy.NotIn, Values: []string{"batch"}}}, "role,role notin (batch)", true, false, false},
		{policy.Selector{{Key: "role", Operator: policy.In, Values: []string{"batch"}}, {Key: "role", Operator: policy.Exists}}, "role=batch,role", false, true, false},
	} {
		assert.Equal(t, tc.selector.String(), tc.text)
		assert.Equal(t, tc.selector.Matches(one), tc.ingress, tc.text)
		assert.Equal(t, tc.selector.Matches(map[string]string{"role": "batch"}), tc.batch, tc.text)
		assert.Equal(t, tc.selector.Matches(nil), tc.without, tc.text)
	}

	here := policy.PodSelector{Namespace: "a", Selector: policy.Selector{{Key: "role", Operator: policy.Exists}}}
	assert.Assert(t, here.Matches("a", one) && !here.Matches("b", one) && !here.Matches("a", nil))
	assert.Equal(t, here.String(), "role in a")
	anywhere := policy.PodSelector{Selector: here.Selector}
	assert.Assert(t, anywhere.Matches("b", one) && !anywhere.Matches("b", nil))
	assert.Equal(t, anywhere.String(), "role")
}

// A node is in the first group that chooses it.
func TestGroupOf(t *testing.T) {
	s := policy.Settings{Groups: []policy.Group{
		{Name: "ingress", Selector: policy.Selector{{Key: "role", Operator: policy.In, Values: []string{"ingress"}}}},
		{Name: "roles", Selector: policy.Selector{{Key: "role", Operator: policy.Exists}}},
	}}
	assert.Equal(t, s.GroupOf(map[string]string{"role": "ingress"}), "ingress")
	assert.Equal(t, s.GroupOf(map[string]string{"role": "batch"}), "roles")
	assert.Equal(t, s.GroupOf(nil), "")
}
