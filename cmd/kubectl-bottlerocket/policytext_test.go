package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/file"
)

// A pause comes and goes, and the comments stay.
func TestPauseInText(t *testing.T) {
	const commented = `# Ours, ask Ann.
version: 1 # the only one

# One at a time.
maxUnavailable: 1

groups:
  # The brave.
  - name: canary
    nodeSelector: {}
  # The rest.
  - name: rest
    nodeSelector: {}
    pause:
      # Until the migration is over.
      reason: migration # OPS-1
      inFlight: return
# The end.
`
	moving := policy.Pause{Reason: "moving"}
	for _, tc := range []struct{ name, group, want string }{
		{"the fleet", "", strings.Replace(commented, "# The end.", "# The end.\n\npause:\n  reason: moving", 1)},
		{"a group without one", "canary", strings.Replace(commented, "    nodeSelector: {}\n  # The rest", "    nodeSelector: {}\n    pause:\n      reason: moving\n  # The rest", 1)},
		{"a group with one", "rest", strings.Replace(commented, "migration # OPS", "moving # OPS", 1)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := withPause(commented, tc.group, moving)
			assert.NilError(t, err)
			assert.Equal(t, got, tc.want)
			again, err := withPause(got, tc.group, moving)
			assert.NilError(t, err)
			assert.Equal(t, again, got)
			without, err := withoutPause(got, tc.group)
			assert.NilError(t, err)
			if tc.group != "rest" {
				assert.Equal(t, without, commented)
			} else {
				assert.Assert(t, !strings.Contains(without, "pause"), without)
			}
		})
	}
}

// The commented example says the same with a pause as without, and every comment is still there.
func TestPauseInTheExample(t *testing.T) {
	content, err := os.ReadFile("../../pkg/policy/file/default.yaml")
	assert.NilError(t, err)
	got, err := withPause(string(content), "", policy.Pause{Reason: "moving"})
	assert.NilError(t, err)
	for _, line := range strings.Split(string(content), "\n") {
		if at := strings.Index(line, "#"); at >= 0 {
			assert.Assert(t, strings.Contains(got, strings.TrimSpace(line[at:])), line)
		}
	}
	assert.Equal(t, strings.Count(got, "\n\n"), strings.Count(string(content), "\n\n"))
	without, err := withoutPause(got, "")
	assert.NilError(t, err)
	assert.Equal(t, without, strings.Replace(string(content), "pause: null\n", "", 1))
	set, err := file.Decode([]byte(got), policy.DefaultSettings(), time.LoadLocation)
	assert.NilError(t, err)
	assert.Equal(t, set.Pause.Reason, "moving")
}

// What can't be edited is not touched.
func TestPauseThatCantBeWritten(t *testing.T) {
	for _, tc := range []struct{ name, text, group, want string }{
		{"a mistake", "version: 1\nsoka: 1m\n", "", "the policy has a mistake and is not in force, so a change of it would do nothing; correct it first: line 2: there is no field soka"},
		{"nothing", "", "", "the policy is empty"},
		{"no such group", "version: 1\n", "a", `group "a" is not in the policy`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := withPause(tc.text, tc.group, policy.Pause{Reason: "x"})
			assert.ErrorContains(t, err, tc.want)
		})
	}
	// An alias is written out, and what it stood for elsewhere stays.
	got, err := withPause("version: 1\npause: &p {reason: a}\ngroups: [{name: b, nodeSelector: {}, pause: *p}]\n", "b", policy.Pause{Reason: "x"})
	assert.NilError(t, err)
	for group, want := range map[string]string{"": "a", "b": "x"} {
		p, err := pauseIn(got, group)
		assert.NilError(t, err)
		assert.Equal(t, p.Reason, want)
	}
}
