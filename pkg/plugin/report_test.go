package plugin

import (
	"encoding/json"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	"gotest.tools/v3/golden"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// How a rollout went, as users read it: in a terminal, in a ticket, and by a program. What nodes say is no markup.
func TestReport(t *testing.T) {
	c := newCluster(t)
	c.fleet()
	m := at(marker.ActionStabilize, marker.StateReady, time.Hour, v1, v2)
	m.History = []marker.Attempt{{Version: v2, Outcome: marker.OutcomeFailed, Reason: "RolledBack|<b>@all", Started: ago(2 * time.Hour), Ended: ago(time.Hour), Out: 240, Pods: 7}}
	c.node(host{name: "rolled-back", marks: m, annotations: map[marker.Key]string{marker.KeyPaused: "look [here](https://evil.example) @all"}})

	got := c.run("report")
	assert.Equal(t, got.errs, "error: the leading controller is of an older version, which keeps no account of rollouts\n")
	leader := c.leader.(atNoon)
	leader.rollouts = []plan.Rollout{}
	c.leader = leader
	assert.Equal(t, c.run("report").errs, "error: no rollout is remembered: none has begun since the controller keeps account of them\n")
	leader.rollouts = []plan.Rollout{
		{Version: v2, Began: ago(27 * time.Hour), Most: 20, Unseen: 95, Waits: map[plan.Reason]int{plan.ReasonUnavailableLimit: 7300, plan.ReasonWindowClosed: 86400, plan.ReasonAfterGroup: 7300}},
		{Version: "1.60.0", Began: ago(3 * time.Hour), Ended: ago(2 * time.Hour), Most: 1},
	}
	c.leader = leader
	assert.Equal(t, c.run("report", "1.40.0").errs, "error: no rollout of 1.40.0 is remembered, but of 1.60.0, 1.51.0\n")
	assert.Equal(t, c.run("report", "-o", "wide").errs, `error: output format "wide" is not known: give one of json, yaml, markdown`+"\n")
	assert.Equal(t, c.run("report", v2, v1).errs, `error: "1.50.0" is one argument too many; see 'kubectl bottlerocket report --help'`+"\n")
	for name, args := range map[string][]string{"report": {"report", "v" + v2}, "report-markdown": {"report", v2, "-o", "markdown"}, "report-last": {"report"}} {
		got := c.run(args...)
		golden.Assert(t, c.anywhere(got.out+"--- stderr\n"+got.errs), name+".golden")
		assert.Equal(t, got.status, 0)
		assert.Equal(t, len(writes(got)), 0)
	}
	var out Report
	assert.NilError(t, json.Unmarshal([]byte(c.run("report", v2, "-o", "json").out), &out))
	assert.Equal(t, out.Kind+" "+out.Version+" "+out.Took.String(), "Report 1.51.0 27h")
	assert.Assert(t, len(out.Nodes) > 5 && out.Waits[plan.ReasonWindowClosed] == 86400)
}
