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
		{"no time for a drain", func(s *policy.Settings) { s.Drain = 0 }, "drain"},
		{"a group without a name", func(s *policy.Settings) { s.Groups = []policy.Group{{Rules: s.Rules}} }, "no name"},
		{"two groups of one name", func(s *policy.Settings) {
			s.Groups = []policy.Group{{Name: "a", Rules: s.Rules}, {Name: "a", Rules: s.Rules}}
		}, "twice"},
		{"a group after one that isn't there", func(s *policy.Settings) { s.Groups = []policy.Group{{Name: "a", Rules: s.Rules, After: []string{"b"}}} }, "is no group"},
		{"groups that wait for each other", func(s *policy.Settings) {
			s.Groups = []policy.Group{{Name: "a", Rules: s.Rules, After: []string{"b"}}, {Name: "b", Rules: s.Rules, After: []string{"a"}}}
		}, "comes after itself"},
		{"a soak back in time", func(s *policy.Settings) { s.Soak = -1 }, "soak"},
		{"no deadline", func(s *policy.Settings) { s.Deadlines.Return = 0 }, "deadline"},
		{"no wait after a failure", func(s *policy.Settings) { s.RetryBase = 0 }, "retry waits"},
		{"waits that shrink", func(s *policy.Settings) { s.RetryMax = s.RetryBase - 1 }, "retry waits"},
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
