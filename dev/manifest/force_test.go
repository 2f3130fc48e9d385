package manifest

import (
	"testing"

	"gotest.tools/v3/assert"
)

// What each further file gives the controller's account is one right that the manifest doesn't give.
func TestFurtherRights(t *testing.T) {
	for name, right := range map[string]Grant{
		"force-drain":  {Resource: "pods", Verb: "delete"},
		"grace-period": {Resource: "pods/eviction", Verb: "set-grace-period"},
	} {
		t.Run(name, func(t *testing.T) {
			extra, err := Decode(further(t, name))
			assert.NilError(t, err)
			assert.Equal(t, len(extra.All), 2)
			assert.Equal(t, len(extra.Unbound()), 0)
			assert.DeepEqual(t, extra.Grants(Namespace, "update-operator-controller"), []Grant{right})
			for _, g := range load(t).Grants(Namespace, "update-operator-controller") {
				assert.Assert(t, g != right)
			}
		})
	}
}

// further is a file of docs that is applied beside the manifest.
func further(t *testing.T, name string) []byte {
	t.Helper()
	content, err := Component(name)
	assert.NilError(t, err)
	return content
}
