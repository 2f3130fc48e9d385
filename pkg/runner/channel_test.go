package runner

import (
	"testing"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/channel"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
)

// A channel that goes back, or can't be read, takes nothing back that it has shown, also not to a runner that was
// started anew; another channel of the plan begins afresh. (k3s 14282: a channel that changed between two releases.)
func TestChannelNeverGoesBack(t *testing.T) {
	const stable, latest = "https://example.com/stable", "https://example.com/latest"
	before := func(address, version string) fleet.PlanTarget {
		return fleet.PlanTarget{Channel: address, Version: version}
	}
	for _, tc := range []struct {
		name    string
		before  fleet.PlanTarget
		shows   channel.Result
		version string
		problem string
	}{
		{"the first look", fleet.PlanTarget{}, channel.Result{}, "", "the channel has not been read yet"},
		{"the first version", fleet.PlanTarget{}, channel.Result{Version: "v1.36.3+k3s1"}, "v1.36.3+k3s1", ""},
		{"a newer one", before(stable, "v1.36.3+k3s1"), channel.Result{Version: "v1.36.3+k3s2"}, "v1.36.3+k3s2", ""},
		{"an older one", before(stable, "v1.36.3+k3s2"), channel.Result{Version: "v1.36.3+k3s1"}, "v1.36.3+k3s2", ""},
		{"an older minor version, which it shows in turns", before(stable, "v1.36.2+k3s1"), channel.Result{Version: "v1.35.5+k3s1"}, "v1.36.2+k3s1", ""},
		{"none after a start", before(stable, "v1.36.3+k3s1"), channel.Result{}, "v1.36.3+k3s1", ""},
		{"none, by an outage", before(stable, "v1.36.3+k3s1"), channel.Result{Problem: "the channel does not answer"}, "v1.36.3+k3s1", "the channel does not answer"},
		{"another channel", before(latest, "v1.37.0+k3s1"), channel.Result{Version: "v1.36.3+k3s1"}, "v1.36.3+k3s1", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got fleet.PlanTarget
			ofChannel(&got, tc.before, stable, tc.shows)
			assert.DeepEqual(t, got, fleet.PlanTarget{Channel: stable, Version: tc.version, Problem: tc.problem})
		})
	}
}
