package plugin

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
	moving := word{"moving", "ann", noon}
	const said = "moving (by ann at 2026-01-05 12:00 UTC)"
	for _, tc := range []struct{ name, group, want string }{
		{"the fleet", "", strings.Replace(commented, "# The end.", "# The end.\n\npause:\n  reason: "+said, 1)},
		{"a group without one", "canary", strings.Replace(commented, "    nodeSelector: {}\n  # The rest", "    nodeSelector: {}\n    pause:\n      reason: "+said+"\n  # The rest", 1)},
		{"a group with one", "rest", strings.Replace(commented, "migration # OPS", said+" # OPS", 1)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, mistake, err := withPause(commented, tc.group, moving, "")
			assert.NilError(t, err)
			assert.NilError(t, mistake)
			assert.Equal(t, got, tc.want)
			again, _, err := withPause(got, tc.group, word{"moving", "ann", noon.Add(time.Hour)}, "")
			assert.NilError(t, err)
			assert.Equal(t, again, got)
			without, _, err := withoutPause(got, tc.group)
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
	got, _, err := withPause(string(content), "", word{"moving", "", noon}, "")
	assert.NilError(t, err)
	for _, line := range strings.Split(string(content), "\n") {
		if at := strings.Index(line, "#"); at >= 0 {
			assert.Assert(t, strings.Contains(got, strings.TrimSpace(line[at:])), line)
		}
	}
	assert.Equal(t, strings.Count(got, "\n\n"), strings.Count(string(content), "\n\n"))
	without, _, err := withoutPause(got, "")
	assert.NilError(t, err)
	assert.Equal(t, without, strings.Replace(string(content), "pause: null\n", "", 1))
	set, err := file.Decode([]byte(got), policy.DefaultSettings(), time.LoadLocation)
	assert.NilError(t, err)
	assert.Equal(t, set.Pause.Reason, "moving (at 2026-01-05 12:00 UTC)")
}

// A mistake elsewhere doesn't keep the fleet's pause from being written, and taken back, and nothing else is touched.
func TestPauseBesideAMistake(t *testing.T) {
	for _, text := range []string{"# Ours.\nversion: 1\nsoka: 1m # a slip\n", "version: 2\n", "maxUnavailable: {}\nversion: 1\n"} {
		got, mistake, err := withPause(text, "", word{"moving", "ann", noon}, policy.Return)
		assert.NilError(t, err)
		assert.Assert(t, mistake != nil)
		assert.Equal(t, got, text+"pause:\n  reason: moving (by ann at 2026-01-05 12:00 UTC)\n  inFlight: return\n")
		without, _, err := withoutPause(got, "")
		assert.NilError(t, err)
		assert.Equal(t, without, text)
	}
	// One that is the mistake itself is put right.
	got, mistake, err := withPause("version: 1\npause: {}\n", "", word{"moving", "ann", noon}, "")
	assert.NilError(t, err)
	assert.NilError(t, mistake)
	assert.Equal(t, got, "version: 1\npause: {reason: 'moving (by ann at 2026-01-05 12:00 UTC)'}\n")
}

// What can't be edited is not touched.
func TestPauseThatCantBeWritten(t *testing.T) {
	for _, tc := range []struct{ name, text, group, want string }{
		{"a group beside a mistake", "version: 1\nsoka: 1m\n", "a", "the policy has a mistake, and only the pause of the fleet counts in it; correct it first, or pause the fleet: line 2: there is no field soka"},
		{"nothing", "", "", "what stands there is no policy, so no pause can stand in it: the policy is empty: begin with version: 1, or delete the ConfigMap for the defaults; correct it, or pause nodes by name. A controller that read a good one before goes on by that, any other starts nothing"},
		{"no YAML", "version: 1\n  soak: [\n", "", "what stands there is no policy, so no pause can stand in it: line 2: "},
		{"a list", "- version\n", "", "what stands there is no policy, so no pause can stand in it: line 1: the policy is a list: give a mapping; correct it, or"},
		{"no such group", "version: 1\n", "a", `group "a" is not in the policy`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, _, err := withPause(tc.text, tc.group, word{"x", "ann", noon}, "")
			assert.ErrorContains(t, err, tc.want)
			assert.Assert(t, !strings.Contains(err.Error(), "\n"))
		})
	}
	// An alias is written out, and what it stood for elsewhere stays.
	got, _, err := withPause("version: 1\npause: &p {reason: a}\ngroups: [{name: b, nodeSelector: {}, pause: *p}]\n", "b", word{"x", "", noon}, "")
	assert.NilError(t, err)
	for group, want := range map[string]string{"": "a", "b": "x (at 2026-01-05 12:00 UTC)"} {
		p, _, err := pauseIn(got, group)
		assert.NilError(t, err)
		assert.Equal(t, p.Reason, want)
	}
}
