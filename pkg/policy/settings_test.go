package policy_test

import (
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

func TestSettings(t *testing.T) {
	assert.NilError(t, policy.DefaultSettings().Validate())
	assert.Equal(t, len(policy.DefaultSettings().Warnings()), 0)
	for _, tc := range []struct {
		name   string
		change func(*policy.Settings)
		want   string
	}{
		{"nobody may stage", func(s *policy.Settings) { s.MaxStaging = 0 }, "maxStaging"},
		{"no version may fail anywhere", func(s *policy.Settings) { s.MaxFailed = policy.Count(0) }, "maxFailed"},
		{"no time for a drain", func(s *policy.Settings) { s.Drain = 0 }, "drain.timeout is 0s"},
		{"a group without a name", func(s *policy.Settings) { s.Groups = []policy.Group{{Rules: s.Rules}} }, "groups[0].name is missing"},
		{"two groups of one name", func(s *policy.Settings) {
			s.Groups = []policy.Group{{Name: "a", Rules: s.Rules}, {Name: "a", Rules: s.Rules}}
		}, `groups[1].name is "a", as is groups[0].name`},
		{"a group after one that isn't there", func(s *policy.Settings) { s.Groups = []policy.Group{{Name: "a", Rules: s.Rules, After: []string{"b"}}} }, `groups[0].after[0] is "b", which is no group`},
		{"groups that wait for each other", func(s *policy.Settings) {
			s.Groups = []policy.Group{{Name: "a", Rules: s.Rules, After: []string{"b"}}, {Name: "b", Rules: s.Rules, After: []string{"a"}}}
		}, `groups[0].after leads from group "a" back to itself`},
		{"a soak back in time", func(s *policy.Settings) { s.Soak = -1 }, "soak"},
		{"no deadline", func(s *policy.Settings) { s.Deadlines.Return = 0 }, "deadlines.return is 0s"},
		{"no wait after a failure", func(s *policy.Settings) { s.RetryBase = 0 }, "retry.base is 0s"},
		{"waits that shrink", func(s *policy.Settings) { s.RetryMax = s.RetryBase - 1 }, "retry.max is 9m59.999999999s, less than retry.base"},
		{"hands off back in time", func(s *policy.Settings) { s.HandsOff = -1 }, "handsOff"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := policy.DefaultSettings()
			tc.change(&s)
			assert.ErrorContains(t, s.Validate(), tc.want)
		})
	}
	s := policy.DefaultSettings()
	s.Deadlines.Prepare, s.Deadlines.Reboot = time.Minute, time.Minute
	assert.Equal(t, len(s.Warnings()), 2)
	assert.Assert(t, strings.Contains(s.Warnings()[0], "prepare deadline"))
}

// All that is wrong is told, each mistake by its field, and groups that wait for each other once.
func TestMistakes(t *testing.T) {
	s := policy.DefaultSettings()
	s.MaxStaging, s.HandsOff, s.Deadlines.Reboot, s.Deadlines.Return = 0, -1, 0, 0
	wrong := s.Rules
	wrong.Soak, wrong.Topology = -1, []policy.Topology{{MaxDomains: -1}}
	wrong.Hooks.AfterDrain = []policy.Hook{{Name: "h", Annotation: "example.com/h", Timeout: 1}, {Name: "h", Annotation: "h"}}
	wrong.Verify.Pods, wrong.Eviction.Leave = []policy.PodSelector{{}}, []policy.PodSelector{{Namespace: "a"}, {}}
	s.Groups = []policy.Group{{Name: "a", After: []string{"b"}, Rules: s.Rules}, {Name: "b", After: []string{"c"}, Rules: s.Rules},
		{Name: "c", After: []string{"b", "a"}, Rules: s.Rules}, {Name: "d", After: []string{"d"}, Rules: wrong}}
	var got []string
	for _, m := range s.Mistakes() {
		got = append(got, m.Field)
	}
	assert.DeepEqual(t, got, []string{"maxStaging", "deadlines.reboot", "deadlines.return", "handsOff", "groups[0].after",
		"groups[3].soak", "groups[3].hooks.afterDrain[1].name", "groups[3].hooks.afterDrain[1].annotation", "groups[3].hooks.afterDrain[1].timeout",
		"groups[3].verify.pods[0]", "groups[3].topology[0].key", "groups[3].topology[0].maxDomains", "groups[3].drain.leave[1]", "groups[3].after"})
}

// A word with a typing error is told with the one that was probably meant, and a word of one's own with none.
func TestNearest(t *testing.T) {
	known := []string{"maxUnavailable", "maxLost", "maxFailed", "soak", "", "In", "NotIn"}
	for word, want := range map[string]string{
		"maxUnavailabel": "maxUnavailable", "maxunavailable": "maxUnavailable", "maxUnavail": "", "MaxLost": "maxLost", "max_lost": "maxLost",
		"maxFail": "maxFailed", "saok": "soak", "soaks": "soak", "so": "", "soak": "soak", "in": "In", "notin": "NotIn", "": "", "retry": "", "spec": "",
	} {
		assert.Equal(t, policy.Nearest(word, known), want, word)
	}
}
