package check_test

import (
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner/check"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner/lifecycle"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// A node holds the groups behind it up until it has run the version for the soak, by what of it can be believed (S6).
func TestWave(t *testing.T) {
	now := time.Date(2026, 9, 20, 10, 0, 0, 0, time.UTC)
	const minute = time.Minute
	attempt := func(version string, o marker.Outcome, ago time.Duration) marker.Attempt {
		return marker.Attempt{Version: version, Outcome: o, Ended: now.Add(-ago)}
	}
	const v1, v2, v3, updated = "1.1.0", "1.2.0", "1.3.0", marker.OutcomeUpdated
	until := func(in time.Duration) string { return "a must run 1.2.0 until " + plan.Clock(now.Add(in)).String() }
	for _, tc := range []struct {
		name string
		// runs and says are what kubelet and agent report.
		runs, says string
		// known is for how long the version is known, and created how long ago the Node was made.
		known, created time.Duration
		history        []marker.Attempt
		want           string
	}{
		{"it has it not", v1, v1, 3 * time.Hour, 3 * time.Hour, nil, "a does not run 1.2.0 yet"},
		{"by its agent alone", v1, v2, 3 * time.Hour, 3 * time.Hour, nil, "of a only the agent, not the kubelet, reports 1.2.0"},
		{"by its agent a newer one", v2, v3, 3 * time.Hour, 3 * time.Hour, nil, ""},
		{"another by its agent, and neither is it", v1, "1.0.0", 3 * time.Hour, 3 * time.Hour, nil, "a does not run 1.2.0 yet"},
		{"its agent says nothing", v2, "", 3 * time.Hour, 3 * time.Hour, nil, ""},
		{"updated a while ago", v2, v2, 3 * time.Hour, 3 * time.Hour, []marker.Attempt{attempt(v2, updated, 20*minute)}, until(40 * minute)},
		{"to a newer one", v3, v3, 3 * time.Hour, 3 * time.Hour, []marker.Attempt{attempt(v3, updated, 20*minute)}, until(40 * minute)},
		{"long enough ago", v2, v2, 0, 0, []marker.Attempt{attempt(v2, updated, 60*minute)}, ""},
		{"what was given up since is no update", v2, v2, 0, 0, []marker.Attempt{attempt(v2, updated, 60*minute), attempt(v2, marker.OutcomeAbandoned, 10*minute)}, ""},
		{"nor is one to a lower version", v2, v2, 3 * time.Hour, 3 * time.Hour, []marker.Attempt{attempt(v1, updated, 10*minute)}, ""},
		{"nor one implausibly far in the future", v2, v2, 3 * time.Hour, 3 * time.Hour, []marker.Attempt{attempt(v2, updated, -25*time.Hour)}, ""},
		{"it joined with it", v2, v2, 3 * time.Hour, 20 * minute, nil, until(40 * minute)},
		{"when it was not known here", v2, v2, 20 * minute, 3 * time.Hour, nil, until(40 * minute)},
		{"it is not known here", v2, v2, 0, 3 * time.Hour, nil, until(60 * minute)},
		{"known by a clock that was ahead", v2, v2, -20 * minute, 3 * time.Hour, nil, until(60 * minute)},
		{"made by a clock that is ahead", v2, v2, 3 * time.Hour, -20 * minute, nil, ""},
	} {
		set := policy.DefaultSettings()
		n := &fleet.Node{Name: "a", OSVersion: tc.runs, Ready: true, Created: now.Add(-tc.created)}
		n.Marks.Report.Current, n.Marks.History = tc.says, tc.history
		w := check.Wave{Version: v2, Soak: time.Hour, Seen: tc.known != 0, Since: now.Add(-tc.known)}
		r := w.HeldUp(&lifecycle.View{Node: n, Now: now, Settings: &set, Rules: &set.Rules}, n.OSVersion, "canary")
		got := ""
		if r.Refuses() {
			got = r.Message.String()
		}
		if tc.want != "" {
			tc.want = "waits for group canary: " + tc.want
		}
		assert.Check(t, got == tc.want, "%s: %s", tc.name, got)
	}
	for what, change := range map[string]func(*fleet.Node){
		"does not run 1.2.0 yet":                func(n *fleet.Node) { n.Problems = []marker.Problem{{}} },
		"is not back in service with 1.2.0 yet": func(n *fleet.Node) { n.Ready = false },
		"is not back in service with 1.2.0 yet ": func(n *fleet.Node) {
			n.Marks.Intent = marker.Intent{ID: "i", Action: marker.ActionResetState}
		},
	} {
		set := policy.DefaultSettings()
		n := &fleet.Node{Name: "a", OSVersion: v2, Ready: true, Created: now.Add(-time.Hour)}
		change(n)
		r := (&check.Wave{Version: v2}).HeldUp(&lifecycle.View{Node: n, Now: now, Settings: &set, Rules: &set.Rules}, n.OSVersion, "canary")
		assert.Equal(t, r.Message.String(), "waits for group canary: a "+strings.TrimSpace(what))
	}
	assert.Equal(t, check.NoNode("canary", 0, false).Message.String(), "waits for group canary: it has no node")
	assert.Equal(t, check.NoNode("canary", 1, false).Message.String(), "waits for group canary: all of its nodes are leaving the cluster")
}
