package plugin

import (
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	"gotest.tools/v3/golden"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// What a pipeline goes by: the version alone on standard output, the status, and why there is none.
func TestProven(t *testing.T) {
	c := newCluster(t)
	canary, worker := map[string]string{"wave": "canary"}, map[string]string{"wave": "workers"}
	for name, h := range map[string]struct {
		runs   string
		ago    time.Duration
		labels map[string]string
	}{"canary-1": {v2, 26 * time.Hour, canary}, "canary-2": {v2, 25 * time.Hour, canary}, "worker-1": {v2, time.Hour, worker}, "worker-2": {v1, 50 * time.Hour, worker}} {
		m := at(marker.ActionStabilize, marker.StateReady, h.ago, h.runs, "")
		m.History = []marker.Attempt{{Version: h.runs, Outcome: marker.OutcomeUpdated, Started: ago(h.ago + time.Minute), Ended: ago(h.ago)}}
		c.node(host{name: name, labels: h.labels, marks: m})
	}
	c.configMap(kube.PolicyConfigMap, kube.PolicyKey, testPolicy)
	c.slots()

	got := c.run("proven", "-o", "name")
	assert.Equal(t, got.status, 2, "it can't be looked at")
	assert.Equal(t, got.out, "")
	assert.Assert(t, strings.HasPrefix(got.errs, "error: only the leading controller can show its plan: "), got.errs)
	c.leads("canary-1")
	c.leader = atNoon{c: c, node: "canary-1"}

	for _, tc := range []struct {
		name, args string
		status     int
	}{
		{"proven", "proven", 1}, {"proven-group", "proven --group canary --for 24h", 0}, {"proven-json", "proven --group canary -o json", 0}, {"proven-young", "proven --group canary --for 48h", 1},
	} {
		got := c.run(strings.Fields(tc.args)...)
		golden.Assert(t, c.anywhere(got.out+"--- stderr\n"+got.errs), tc.name+".golden")
		assert.Equal(t, got.status, tc.status, tc.name)
		assert.Equal(t, len(writes(got)), 0)
	}
	c.run("proven", "--group", "canary", "-o", "name").is(t, v2+"\n")
	for args, why := range map[string]string{
		"":                "group canary: 1.51.0 is proven\ngroup workers: SeveralVersions: 1.51.0 on worker-1; 1.50.0 on worker-2\n",
		"--group workers": "group workers: SeveralVersions: 1.51.0 on worker-1; 1.50.0 on worker-2\n",
	} {
		got := c.run(append([]string{"proven", "-o", "name"}, strings.Fields(args)...)...)
		assert.Equal(t, got.status, 1)
		assert.Equal(t, got.out, "")
		assert.Equal(t, got.errs, why)
	}
	for args, why := range map[string]string{
		"--group nobody": `group "nobody" is not in the policy in force: it has ["canary" "workers"]`,
		"-o wide":        `output format "wide" is not known: give one of json, yaml, name`,
	} {
		got := c.run(append([]string{"proven"}, strings.Fields(args)...)...)
		assert.Equal(t, got.status, 2)
		assert.Equal(t, got.errs, "error: "+why+"\n")
	}
}
