package marker

import (
	"testing"

	"gotest.tools/v3/assert"
)

func TestValidVersion(t *testing.T) {
	for v, valid := range map[string]bool{
		"1.26.1":                      true,
		"0.0.0":                       true,
		"1.20.0-rc.1":                 true,
		"1.20.0+build":                true,
		"":                            false,
		"v1.26.1":                     false,
		" 1.26.1":                     false,
		"1.26.1 ":                     false,
		"1.26.1\n":                    false,
		"1.26":                        false,
		"1.26.1.2":                    false,
		"1.026.1":                     false,
		"0.0.0-020000000000000000000": false,
		"latest":                      false,
		// No host has it, but it is one, and it has its place in the order.
		"1.99999999999999999999.0": true,
	} {
		assert.Equal(t, ValidVersion(v), valid, "%q", v)
	}
}

func TestCompareVersions(t *testing.T) {
	for _, tc := range []struct {
		name, a, b string
		want       int
	}{
		{"numbers, not text", "1.10.0", "1.9.0", 1},
		{"the same", "1.2.3", "1.2.3", 0},
		{"a release is newer than its candidates", "1.2.3", "1.2.3-rc.1", 1},
		{"candidates by number", "1.2.3-rc.2", "1.2.3-rc.10", -1},
		{"a number is lower than a word", "1.2.3-2", "1.2.3-1a", -1},
		{"numbers of any length", "1.2.3-9", "1.2.3-99999999999999999999", -1},
		{"more of the same is newer", "1.2.3-rc", "1.2.3-rc.0", -1},
		{"builds of one version are alike", "1.2.3+a", "1.2.3+b", 0},
		{"nothing is lower than any version", "", "0.0.1", -1},
		{"what isn't a version is never newer", "v9.9.9", "0.0.1", -1},
		{"a version is newer than what isn't one", "0.0.1", "latest", 1},
		{"a short form is no version", "1.27", "1.26.0", -1},
		{"two that aren't versions are alike", "", "latest", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			assert.Equal(t, CompareVersions(tc.a, tc.b), tc.want)
			assert.Equal(t, CompareVersions(tc.b, tc.a), -tc.want)
		})
	}
}
