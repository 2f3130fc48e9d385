package wave

import "time"

// opening is the first seed of a wave, and how long after the release's start its time is.
type opening struct {
	seed  uint32
	after time.Duration
}

// defaults are Bottlerocket's default waves, sources/updater/waves/default-waves.toml: 1, 5, 15, 40, 60, 90 and 100
// of 100 hosts.
var defaults = []opening{
	{0, 1 * time.Hour}, {20, 4 * time.Hour}, {102, 24 * time.Hour}, {307, 48 * time.Hour},
	{819, 96 * time.Hour}, {1228, 120 * time.Hour}, {1843, 144 * time.Hour},
}

// Opens returns how long after the start of a release with the default waves a host with this seed sees it. Hosts draw
// their seeds from 0 to 2047. Within a wave the host's updater multiplies by the seed, and not by its place in the wave
// (docs/host-api.md), so that most hosts of the later waves wait for the wave's end.
func Opens(seed uint32) time.Duration {
	for i, b := range defaults {
		if seed > b.seed {
			continue
		}
		if i == 0 {
			return 0
		}
		a := defaults[i-1]
		each := (b.after - a.after) / time.Duration(b.seed-a.seed)
		return min(a.after+each*time.Duration(seed), b.after)
	}
	return defaults[len(defaults)-1].after
}
