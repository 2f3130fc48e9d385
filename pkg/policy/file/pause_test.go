package file

import (
	"testing"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// The fleet's pause is read whatever else is wrong with the file.
func TestPauseBesideMistakes(t *testing.T) {
	moving := &policy.Pause{Reason: "moving", InFlight: policy.Finish}
	for _, tc := range []struct {
		name, text string
		want       *policy.Pause
	}{
		{"no mistake", "version: 1\npause: {reason: moving, inFlight: return}\n", &policy.Pause{Reason: "moving", InFlight: policy.Return}},
		{"an unknown field", "version: 1\nsoka: 1m\npause: {reason: moving}\n", moving},
		{"no version", "pause: {reason: moving}\n", moving},
		{"a key twice", "version: 1\nsoak: 1m\nsoak: 2m\npause: {reason: moving}\n", moving},
		{"a pause twice", "version: 1\npause: null\npause: {reason: moving}\n", moving},
		{"a wrong type", "version: [1]\npause: {reason: moving}\n", moving},
		{"two documents", "version: 1\npause: {reason: moving}\n---\nversion: 1\n", moving},
		{"an alias", "x: &p {reason: moving}\npause: *p\n", moving},
		{"a wrong ending", "pause: {reason: moving, inFlight: stop}\n", moving},
		{"a pause without its field", "pause: moving\n", &policy.Pause{InFlight: policy.Finish}},
		{"null", "version: 2\npause: null\n", nil},
		{"none", "version: 2\n", nil},
		{"a group's", "version: 2\ngroups: [{name: a, pause: {reason: x}}]\n", nil},
		{"nothing", "", nil},
		{"a list", "- pause\n", nil},
		{"no YAML", "version: 1\n  pause: {reason: moving}\n\t}\n", nil},
	} {
		t.Run(tc.name, func(t *testing.T) { assert.DeepEqual(t, Pause([]byte(tc.text)), tc.want) })
	}
}
