package policy_test

import (
	"testing"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// A limit is read as it is written, and as nothing else.
func TestParseLimit(t *testing.T) {
	for text, want := range map[string]policy.Limit{
		"0": policy.Count(0), "-0": policy.Count(0), "7": policy.Count(7), "0%": policy.Percent(0), "100%": policy.Percent(100), "unlimited": policy.Unlimited,
	} {
		l, err := policy.ParseLimit(text)
		assert.NilError(t, err)
		assert.Equal(t, l, want)
	}
	for text, problem := range map[string]string{
		"": "is no limit", "-1": "is no limit", "+1": "is no limit", "-1%": "is no limit", "1.5": "is no limit", "%": "is no limit", "none": "is no limit", "101%": "is more than all",
	} {
		_, err := policy.ParseLimit(text)
		assert.ErrorContains(t, err, problem)
	}
}

// A share rounds down and lets one through at least, unless it is none, and no limit is above the capacity.
func TestLimitOf(t *testing.T) {
	for _, tc := range []struct {
		limit     policy.Limit
		nodes, of int
		none      bool
		text      string
	}{
		{policy.Limit{}, 9, 0, true, "0"},
		{policy.Count(-1), 9, 0, true, "0"},
		{policy.Count(1), 9, 1, false, "1"},
		{policy.Count(1001), 9, 1000, false, "1001"},
		{policy.Percent(0), 9, 0, true, "0%"},
		{policy.Percent(-1), 9, 0, true, "0%"},
		{policy.Percent(1), 9, 1, false, "1%"},
		{policy.Percent(25), 11, 2, false, "25%"},
		{policy.Percent(25), 12, 3, false, "25%"},
		{policy.Percent(25), 0, 1, false, "25%"},
		{policy.Percent(101), 9, 9, false, "100%"},
		{policy.Percent(50), 4000, 1000, false, "50%"},
		{policy.Unlimited, 9, 1000, false, "unlimited"},
	} {
		assert.Equal(t, tc.limit.Of(tc.nodes), tc.of, "%s of %d", tc.limit, tc.nodes)
		assert.Equal(t, tc.limit.None(), tc.none, "%s", tc.limit)
		assert.Equal(t, tc.limit.String(), tc.text)
	}
}
