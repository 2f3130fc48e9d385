package e2e_test

import (
	"strings"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/manifest"
)

// One node goes through a whole cycle with nothing offered, by the plugin: it is rebooted once into what it ran before,
// is back in service, and no other machine is touched (S3, S5, S7).
func TestTryOneNode(t *testing.T) {
	w := inWorld(t)
	boots, asked := w.machines()
	node := w.other(t).Name()
	w.plugin(t)
	out, err := w.Kubectl(t.Context(), "bottlerocket", "-n", manifest.Namespace, "e2e", "--node", node, "--yes-reboot-it", "--timeout", "15m")
	t.Log(out)
	assert.NilError(t, err)
	assert.Assert(t, strings.Contains(out, "PASSED: "+node+" went through a cycle on "+w.newest()))
	w.awaitRest(t)
	for _, n := range w.Nodes {
		want := 0
		if n.Name() == node {
			want = 1
		}
		assert.Check(t, n.Host.Snapshot().Counters.RebootsAsked == asked[n.Name()]+want, "%s was asked to reboot", n.Name())
		assert.Check(t, (n.Host.BootID() != boots[n.Name()]) == (want == 1), "%s is in boot %s", n.Name(), n.Host.BootID())
	}
}
