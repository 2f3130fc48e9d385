package planner_test

import (
	"testing"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner/lifecycle"
)

// Only a new boot, or the agent's own late error from the boot that it was to leave, ends a reboot that has begun.
func TestRebootBegun(t *testing.T) {
	for _, tc := range []struct {
		name    string
		changes []change
		want    bool
	}{
		{"idle", nil, false},
		{"draining", []change{draining}, false},
		{"asked to reboot", []change{rebooting}, false},
		{"busy", []change{busy}, true},
		{"Lost", []change{lost}, true},
		{"busy, and the kubelet names a new boot", []change{busy, with(func(n *fleet.Node) { n.BootID = "b2" })}, false},
		{"failed, and still in its boot", []change{rebooting, answers(marker.StateError, "x")}, false},
		{"failed by the word of another boot", []change{rebooting, answers(marker.StateError, "x"), with(func(n *fleet.Node) { n.Marks.Report.BootID = "b2" })}, true},
		{"back", []change{back(v2)}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := node("a", tc.changes...)
			assert.Equal(t, lifecycle.RebootBegun(&n), tc.want)
		})
	}
}

// Everything is taken back but a cordon of which the record can't be read.
func TestTakeBack(t *testing.T) {
	unreadable := func(k marker.Key) change {
		return func(n *fleet.Node) { n.Problems = []marker.Problem{{Key: k, Why: "x"}} }
	}
	for _, tc := range []struct {
		name    string
		changes []change
		want    *bool
	}{
		{"our cordon goes", []change{draining}, new(false)},
		{"a user's stays", []change{draining, wasCordoned}, nil},
		{"so does one that may be", []change{draining, unreadable(marker.KeyDisruption)}, nil},
		{"what else can't be read is no matter", []change{draining, unreadable(marker.KeyFailure)}, new(false)},
		{"a cordon of which there is no record", []change{cordoned}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := node("a", tc.changes...)
			c := lifecycle.Clean(&n)
			assert.DeepEqual(t, c.Unschedulable, tc.want)
			assert.Assert(t, c.RemoveAll && c.ResourceVersion == n.ResourceVersion)
			diff := c.Diff(map[string]string{string(marker.KeyIntentID): "i1", string(marker.KeyBootID): "b1", string(marker.KeyPaused): "x", "example.com/x": "y",
				string(marker.KeyAutoLabelled): "x"})
			assert.DeepEqual(t, diff, map[marker.Key]*string{marker.KeyIntentID: nil, marker.KeyBootID: nil, marker.KeyAutoLabelled: nil})
		})
	}
}
