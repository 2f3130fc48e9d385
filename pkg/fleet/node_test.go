package fleet_test

import (
	"testing"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

func TestInterfaceOf(t *testing.T) {
	const label, first = string(marker.KeyInterfaceVersion), string(marker.KeyPlatformVersion)
	for _, tc := range []struct {
		name   string
		labels map[string]string
		want   fleet.Interface
	}{
		{"no label", nil, fleet.InterfaceNone},
		{"the Update API", map[string]string{label: "2.0.0"}, fleet.InterfaceUpdateAPI},
		{"as the first operator's users wrote it", map[string]string{label: "1.0.0"}, fleet.InterfaceUpdateAPI},
		{"and by the label's first name", map[string]string{first: "1.0.0"}, fleet.InterfaceUpdateAPI},
		{"which never had another value", map[string]string{first: "2.0.0"}, "bottlerocket.aws/platform-version=2.0.0"},
		{"a label without a value", map[string]string{label: ""}, fleet.InterfaceNone},
		{"the newer label counts", map[string]string{label: "2.0.0", first: "1.0.0"}, fleet.InterfaceUpdateAPI},
		{"an interface of the future is not taken for one we speak", map[string]string{label: "3.0.0"}, "3.0.0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := fleet.Node{Interface: fleet.InterfaceOf(tc.labels)}
			assert.Equal(t, n.Interface, tc.want)
			assert.Equal(t, n.Labelled(), tc.want != "")
		})
	}
}

func TestOSVersion(t *testing.T) {
	for image, want := range map[string]string{
		"Bottlerocket OS 1.26.1 (aws-k8s-1.31)": "1.26.1",
		"Bottlerocket OS 1.26.1":                "1.26.1",
		"Bottlerocket OS":                       "",
		"Bottlerocket OS latest (x)":            "",
		"Bottlerocket OS v1.2.3 (x)":            "",
		"Amazon Linux 2023":                     "",
		"":                                      "",
	} {
		assert.Equal(t, fleet.OSVersion(image), want, "%q", image)
	}
}

// A node is managed if it is labelled, shows a disruption, or holds a slot by its UID.
func TestManaged(t *testing.T) {
	s := fleet.Snapshot{Slots: map[string]string{"uid-1": "a"}}
	disrupted := fleet.Node{Marks: marker.Marks{Disruption: &marker.Disruption{}}}
	assert.Assert(t, !s.Managed(&fleet.Node{Name: "a", UID: "uid-2"}), "another node of that name")
	assert.Assert(t, s.Managed(&fleet.Node{Name: "a", UID: "uid-1"}))
	assert.Assert(t, s.Managed(&fleet.Node{Interface: "3.0.0"}))
	assert.Assert(t, s.Managed(&disrupted) && disrupted.Marked())
	assert.Assert(t, !(&fleet.Node{}).Marked())
	assert.Assert(t, (&fleet.Node{Marks: marker.Marks{Report: marker.Report{Protocol: 1}}}).Marked())
}

func TestPhase(t *testing.T) {
	n := fleet.Node{Marks: marker.Marks{Intent: marker.Intent{ID: "1", Action: marker.ActionStabilize}}}
	assert.Equal(t, n.Phase(), intent.PhaseWaiting)
	n.Problems = []marker.Problem{{Key: marker.KeyFailure, Why: "x"}}
	assert.Equal(t, n.Phase(), intent.PhaseUnreadable, "whatever could be read")
}

// A label is what the node carries, and the zone that the node was read with.
func TestLabel(t *testing.T) {
	n := fleet.Node{Zone: "a", Labels: map[string]string{fleet.ZoneLabel: "read before", "role": "ingress"}}
	assert.Equal(t, n.Label(fleet.ZoneLabel), "a")
	assert.Equal(t, n.Label("role"), "ingress")
}

// All is well only where all was seen.
func TestWell(t *testing.T) {
	assert.Assert(t, (&fleet.Checked{}).Passed())
	assert.Assert(t, !(&fleet.Checked{Problem: "x"}).Passed())
	assert.Assert(t, !(&fleet.Checked{Failed: "x"}).Passed())
}
