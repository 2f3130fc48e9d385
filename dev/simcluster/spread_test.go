package simcluster_test

import (
	"testing"

	"gotest.tools/v3/assert"
)

// The two proxies are on different nodes, so that one node's reboot leaves agents a door; also in a
// cluster without zones, as this one is.
func TestProxiesAreApart(t *testing.T) {
	w := inWorld(t)
	pods, err := w.Pods(t.Context(), proxy)
	assert.NilError(t, err)
	assert.Equal(t, len(pods), 2)
	assert.Assert(t, pods[0].Spec.NodeName != pods[1].Spec.NodeName, "both are on %s", pods[0].Spec.NodeName)
}
