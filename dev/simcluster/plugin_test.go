package simcluster_test

import (
	"bytes"
	"strings"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/simcluster"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plugin"
)

// The kubectl plugin gets the leader's own plan by way of the API server's proxy, and one by a policy file.
func TestThePluginAsksTheLeader(t *testing.T) {
	w := inWorld(t)
	plan := func(policy string, args ...string) (out string, status int) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		args = append([]string{"kubectl-bottlerocket", "--kubeconfig", w.Plane.Kubeconfig(), "-n", simcluster.Namespace, "plan"}, args...)
		status = plugin.Run(t.Context(), args, strings.NewReader(policy), &stdout, &stderr)
		return stdout.String() + stderr.String(), status
	}
	var out string
	var status int
	// A controller that has just started doesn't lead yet.
	assert.NilError(t, simcluster.Await(t.Context(), "a leader answers", patience, func() (bool, error) {
		out, status = plan("")
		return status == 0, nil
	}))
	for _, m := range w.Fleet.Machines() {
		assert.Assert(t, strings.Contains(out, m.Name()+" "), out)
	}
	out, status = plan("version: 1\nmaxStaging: 7\n", "--policy", "-")
	assert.Equal(t, status, 0, out)
	assert.Assert(t, strings.Contains(out, "by standard input\n") && strings.Contains(out, "staging") && strings.Contains(out, " 7 "), out)
	out, status = plan("version: 1\nmaxStagin: 7\n", "--policy", "-")
	assert.Equal(t, out, "error: standard input: line 2: there is no field maxStagin: the nearest is maxStaging\n")
	assert.Equal(t, status, 1)
}
