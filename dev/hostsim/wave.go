package hostsim

import (
	"time"

	"github.com/pkg/errors"
)

// MaxSeed bounds the seeds that a host makes for itself: 0 to MaxSeed-1.
const MaxSeed = 2048

// errSeedRange stands for updog's panic on a seed above MaxSeed while waves are there to look through.
var errSeedRange = errors.New("range start is greater than range end in BTreeMap")

// waveOpen tells whether a release with these waves is visible to a host with this seed at now.
func waveOpen(waves map[uint32]time.Time, seed uint32, now time.Time) (bool, error) {
	if len(waves) == 0 {
		return true, nil
	}
	if seed > MaxSeed {
		return false, errSeedRange
	}
	var before, after uint32
	var haveBefore, haveAfter bool
	for key := range waves {
		if key < seed && (!haveBefore || key > before) {
			before, haveBefore = key, true
		}
		// The host looks for keys below MaxSeed only.
		if key >= seed && key < MaxSeed && (!haveAfter || key < after) {
			after, haveAfter = key, true
		}
	}
	if !haveBefore {
		return true, nil
	}
	start := waves[before]
	if !haveAfter {
		return !now.Before(start), nil
	}
	end := waves[after]
	if !now.Before(end) {
		return true, nil
	}
	if now.Before(start) {
		return false, nil
	}
	// The host multiplies by its absolute seed and not by its distance from the wave's first seed, so
	// that late waves wait for their end.
	perSeed := end.Sub(start) / time.Duration(after-before)
	return !now.Before(start.Add(perSeed * time.Duration(seed))), nil
}

// defaultWaves are the hours after the start at which Bottlerocket's default schedule opens each wave,
// by the first seed of the wave.
var defaultWaves = map[uint32]int{0: 1, 20: 4, 102: 24, 307: 48, 819: 96, 1228: 120, 1843: 144}

// DefaultWaves returns Bottlerocket's default schedule for a release published at start: the last hosts
// see it after 144 hours.
func DefaultWaves(start time.Time) map[uint32]time.Time {
	out := make(map[uint32]time.Time, len(defaultWaves))
	for seed, hours := range defaultWaves {
		out[seed] = start.Add(time.Duration(hours) * time.Hour)
	}
	return out
}
