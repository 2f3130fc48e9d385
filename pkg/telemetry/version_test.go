package telemetry

import (
	"runtime/debug"
	"testing"

	"gotest.tools/v3/assert"
)

// -version names what was built as far as that is known, and no more.
func TestBuild(t *testing.T) {
	version, commit, date := Version, Commit, Date
	t.Cleanup(func() { Version, Commit, Date = version, commit, date })
	for want, b := range map[string][3]string{
		"v2.0.0 (commit 0123456789ab, 2026-11-23T10:00:00Z)": {"v2.0.0", "0123456789ab", "2026-11-23T10:00:00Z"},
		"v2.0.0 (commit 0123456789ab)":                       {"v2.0.0", "0123456789ab", ""},
		"v2.0.0":                                             {"v2.0.0", "", "2026-11-23T10:00:00Z"},
	} {
		Version, Commit, Date = b[0], b[1], b[2]
		assert.Equal(t, Build(), want)
	}

	info := &debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.time", Value: "2026-11-23T10:00:00Z"}}}
	info.Main.Version = "(devel)"
	version, commit, date = fromBuildInfo(info)
	assert.DeepEqual(t, []string{version, commit, date}, []string{"unknown", "0123456789abcdef", "2026-11-23T10:00:00Z"})
	info = &debug.BuildInfo{}
	info.Main.Version = "v2.0.0"
	version, commit, date = fromBuildInfo(info)
	assert.DeepEqual(t, []string{version, commit, date}, []string{"v2.0.0", "", ""})
}
