package manifest

import (
	"os"
	"path/filepath"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
)

// What docs/force-drain.yaml gives the controller's account is the right to delete pods, which the manifest doesn't.
func TestForceDrain(t *testing.T) {
	root, err := controlplane.Root()
	assert.NilError(t, err)
	content, err := os.ReadFile(filepath.Join(root, "docs", "force-drain.yaml"))
	assert.NilError(t, err)
	extra, err := Decode(content)
	assert.NilError(t, err)
	assert.Equal(t, len(extra.All), 2)
	assert.Equal(t, len(extra.Unbound()), 0)
	right := Grant{Resource: "pods", Verb: "delete"}
	assert.DeepEqual(t, extra.Grants(Namespace, "update-operator-controller"), []Grant{right})
	for _, g := range load(t).Grants(Namespace, "update-operator-controller") {
		assert.Assert(t, g != right)
	}
}
