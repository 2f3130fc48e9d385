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
		{"nobody may go", func(s *policy.Settings) { s.MaxUnavailable = 0 }, "limit of unavailable nodes"},
		{"more slots than there can be", func(s *policy.Settings) { s.MaxUnavailable = policy.SlotCapacity + 1 }, "limit of unavailable nodes"},
		{"fewer than none Lost", func(s *policy.Settings) { s.MaxLost = -1 }, "limit of lost nodes"},
		{"nobody may stage", func(s *policy.Settings) { s.MaxStaging = 0 }, "limit of staging nodes"},
		{"a soak back in time", func(s *policy.Settings) { s.Soak = -1 }, "soak"},
		{"no deadline", func(s *policy.Settings) { s.Deadlines.Return = 0 }, "deadline"},
		{"no wait after a failure", func(s *policy.Settings) { s.RetryBase = 0 }, "retry waits"},
		{"waits that shrink", func(s *policy.Settings) { s.RetryMax = s.RetryBase - 1 }, "retry waits"},
		{"hands off back in time", func(s *policy.Settings) { s.HandsOff = -1 }, "hands-off"},
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
