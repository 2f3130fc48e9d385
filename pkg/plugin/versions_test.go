package plugin

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	"gotest.tools/v3/golden"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// versionsFleet is a release, v3, that half of the waves are open for, one that was stopped, and hosts of each kind.
func (c *cluster) versionsFleet(leads bool) {
	c.t.Helper()
	const v3 = "1.52.0"
	for i, h := range []struct {
		runs, chooses, lists, seed, lock string
		failed                           bool
	}{
		{runs: v1, chooses: v3, lists: "1.52.0,1.51.0,1.50.0,1.49.0", seed: "10"},
		{runs: v1, chooses: v3, lists: "1.52.0,1.51.0,1.50.0,more", seed: "500", failed: true},
		{runs: v1, chooses: v2, lists: "1.51.0,1.50.0,1.49.0", seed: "1500", failed: true},
		{runs: v1, lists: "1.52.0,1.51.0,1.50.0", seed: "40", lock: v1, failed: true},
		{runs: v2, lists: "1.51.0,1.50.0,1.49.0", seed: "1900"},
		// Its agent is older.
		{runs: v1, chooses: v2},
	} {
		m := at(marker.ActionStabilize, marker.StateReady, time.Hour, h.runs, h.chooses)
		m.Report.Offered, m.Report.WaveSeed, m.Report.VersionLock = marker.Offers(h.lists), h.seed, h.lock
		if h.failed {
			m.Failure = &marker.Failure{Versions: []string{v2}, Broken: []string{v2}, Count: 1, Reason: "RolledBack", At: ago(time.Hour), RetryAfter: ago(time.Minute)}
		}
		c.node(host{name: fmt.Sprintf("node-%d", i), marks: m})
	}
	c.configMap(kube.PolicyConfigMap, kube.PolicyKey, "version: 1\nversions: {minAge: 120h}\n")
	if leads {
		c.leads("node-0")
		c.leader = atNoon{c: c, node: "node-0", seen: map[string]time.Time{v1: ago(900 * time.Hour), v2: ago(300 * time.Hour), v3: ago(96 * time.Hour)}}
	}
}

// What users read of versions: of a leader, and where none leads, what the Nodes say.
func TestVersions(t *testing.T) {
	for _, leads := range []bool{true, false} {
		name := "versions"
		if !leads {
			name = "versions-no-leader"
		}
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.versionsFleet(leads)
			got := c.run("versions", "--all")
			golden.Assert(t, c.anywhere(got.out+"--- stderr\n"+got.errs), name+".golden")
			assert.Equal(t, got.status, 0)
			assert.Equal(t, len(writes(got)), 0, "%q", got.requests)

			without := c.run("versions")
			assert.Equal(t, without.status, 0)
			assert.Assert(t, strings.Contains(got.out, "\n1.49.0 ") && !strings.Contains(without.out, "1.49.0"), without.out)

			var list struct {
				APIVersion, Kind string
				Items            []struct {
					Version string
					Failed  *int
					Target  *struct{ Reason string }
				}
			}
			assert.NilError(t, json.Unmarshal([]byte(c.run("versions", "-o", "json").out), &list))
			assert.Equal(t, list.APIVersion+" "+list.Kind, version+" VersionList")
			assert.Equal(t, len(list.Items), 3)
			assert.Equal(t, list.Items[1].Version, v2)
			assert.Equal(t, list.Items[1].Target != nil && list.Items[1].Target.Reason == "VersionStopped", leads)
			assert.Equal(t, list.Items[1].Failed != nil && *list.Items[1].Failed == 3, leads)
		})
	}
}

// A cluster without a node of Bottlerocket is told so.
func TestVersionsOfNone(t *testing.T) {
	c := newCluster(t)
	got := c.run("versions")
	assert.Equal(t, got.status, 0)
	assert.Equal(t, got.out, "")
	assert.Assert(t, strings.HasSuffix(got.errs, "No version of Bottlerocket is known: no node in the operator's care runs any, or is offered one\n"), got.errs)
}
