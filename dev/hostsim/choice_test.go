package hostsim

import (
	"fmt"
	"testing"
	"time"

	"gotest.tools/v3/assert"
)

func TestVersionChoice(t *testing.T) {
	for _, c := range []struct {
		name     string
		releases []Release
		running  string
		lock     string
		visible  []string
		chosen   string
	}{
		{name: "nothing published", running: v1261, visible: []string{}},
		{name: "newest", releases: rel(v1260, "1.9.0", v1270, v1261), running: v1261,
			visible: []string{v1270, v1261, v1260, "1.9.0"}, chosen: v1270},
		{name: "up to date", releases: rel(v1260, v1261), running: v1261, visible: []string{v1261, v1260}},
		{name: "ahead of the repository", releases: []Release{{Version: v1260, MaxVersion: v1270}}, running: v1261,
			visible: []string{v1260}},
		{name: "running version withdrawn", releases: rel(v1260), running: v1261, visible: []string{v1260}, chosen: v1260},
		{name: "capped", releases: []Release{{Version: v1270, MaxVersion: v1261}, {Version: v1260, MaxVersion: v1261}},
			running: v1260, visible: []string{v1260}},
		{name: "other variant", releases: []Release{{Version: v1270, Variant: "aws-k8s-1.32", Arch: arch}}, running: v1261, visible: []string{}},
		{name: "other arch", releases: []Release{{Version: v1270, Variant: variant, Arch: "aarch64"}}, running: v1261, visible: []string{}},
		{name: "locked to a newer", releases: rel(v1260, v1261, v1270), running: v1260, lock: v1261,
			visible: []string{v1270, v1261, v1260}, chosen: v1261},
		{name: "locked with a v", releases: rel(v1261, v1270), running: v1260, lock: "v1.26.1",
			visible: []string{v1270, v1261}, chosen: v1261},
		{name: "locked to an older", releases: rel(v1260, v1270), running: v1261, lock: v1260,
			visible: []string{v1270, v1260}, chosen: v1260},
		{name: "locked to the running", releases: rel(v1261, v1270), running: v1261, lock: v1261,
			visible: []string{v1270, v1261}},
		{name: "locked to what isn't there", releases: rel(v1270), running: v1261, lock: "1.30.0", visible: []string{v1270}},
		{name: "pre-release is older", releases: rel("1.27.0-rc.1"), running: v1270, lock: "latest",
			visible: []string{"1.27.0-rc.1"}, chosen: "1.27.0-rc.1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var repo Repo
			for _, r := range c.releases {
				if r.Variant == "" {
					r.Variant, r.Arch = variant, arch
				}
				assert.NilError(t, repo.Release(r))
			}
			running, err := parseVersion(c.running)
			assert.NilError(t, err)
			if c.lock == "" {
				c.lock = lockLatest
			}
			got, err := choose(repo.entries(variant, arch), Settings{VersionLock: c.lock}, running, time.Time{})
			assert.NilError(t, err)
			assert.DeepEqual(t, got.available, c.visible)
			assert.Equal(t, got.chosen, c.chosen)
		})
	}
}

func rel(versions ...string) []Release {
	var out []Release
	for _, v := range versions {
		out = append(out, Release{Version: v})
	}
	return out
}

// The schedule is the default one of docs/host-api.md#which-version-is-chosen.
func TestDefaultWaves(t *testing.T) {
	start := time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC)
	waves := DefaultWaves(start)
	for _, c := range []struct {
		seed  uint32
		hours float64
		slack float64
	}{
		{0, 0, 0}, {10, 2.5, 0}, {50, 16.2, 0.1}, {500, 94.9, 0.1}, {1228, 120, 0}, {1500, 144, 0}, {1843, 144, 0}, {2047, 144, 0}, {2048, 144, 0},
	} {
		t.Run(fmt.Sprint(c.seed), func(t *testing.T) {
			at := func(hours float64) bool {
				open, err := waveOpen(waves, c.seed, start.Add(time.Duration(hours*float64(time.Hour))))
				assert.NilError(t, err)
				return open
			}
			assert.Assert(t, at(c.hours+c.slack))
			if c.hours > 0 {
				assert.Assert(t, !at(c.hours-c.slack-0.001))
			}
		})
	}
	_, err := waveOpen(waves, 2049, start)
	assert.ErrorIs(t, err, errSeedRange)
	open, err := waveOpen(nil, 2049, start)
	assert.NilError(t, err)
	assert.Assert(t, open)
}

func TestWavesHideAndSettingsLiftThem(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.Settings.Seed = 500 })
	r := Release{Version: "1.28.0", Variant: variant, Arch: arch, Waves: DefaultWaves(f.clock.Now())}
	assert.NilError(t, f.repo.Release(r))
	f.accept(Refresh)
	assert.Equal(t, f.status().Chosen.Version, v1270)
	assert.NilError(t, f.SetSettings(Settings{Seed: 500, IgnoreWaves: true}))
	f.accept(Refresh)
	assert.Equal(t, f.status().Chosen.Version, "1.28.0")
	assert.NilError(t, f.SetSettings(Settings{Seed: 500}))
	f.clock.Step(95 * time.Hour)
	f.accept(Refresh)
	assert.Equal(t, f.status().Chosen.Version, "1.28.0")
}

func TestRepo(t *testing.T) {
	var r Repo
	for _, bad := range []Release{
		{Version: "v1.0.0", Variant: variant, Arch: arch},
		{Version: "1.0", Variant: variant, Arch: arch},
		{Version: "1.0.0", Arch: arch},
		{Version: "1.0.0", MaxVersion: "x", Variant: variant, Arch: arch},
	} {
		assert.Assert(t, r.Release(bad) != nil, "%v", bad)
	}
	assert.NilError(t, r.Load([]byte(`[{"version":"1.0.0","variant":"v","arch":"a","waves":{"20":"2026-09-20T10:00:00Z"}}]`)))
	assert.Equal(t, len(r.Releases()), 1)
	assert.ErrorContains(t, r.Load([]byte(`[{"version":"1.0.0","variant":"v","arch":"a","wave":{}}]`)), "unknown field")
	assert.ErrorContains(t, r.Load([]byte(`[{"version":"1.0.0"}]`)), "variant and arch")
	assert.Equal(t, len(r.Releases()), 1)
	assert.NilError(t, r.SetMaxVersion("v", "a", "0.9.0"))
	assert.Equal(t, r.Releases()[0].MaxVersion, "0.9.0")
	assert.Assert(t, r.SetMaxVersion("v", "a", "new") != nil)
	r.Withdraw("v", "a", "1.0.0")
	assert.Equal(t, len(r.Releases()), 0)
}
