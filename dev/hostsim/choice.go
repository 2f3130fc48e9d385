package hostsim

import (
	"time"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/util/version"
)

// choice is what updog finds when it looks at the repository.
type choice struct {
	// available are the visible versions, highest first.
	available []string
	// chosen is the version to go to; empty when the host is where it should be.
	chosen string
}

// choose looks at the manifest entries (highest first) as a host with these settings that runs running
// would at now. Its error stands for updog's panic over a bad seed.
func choose(entries []entry, set Settings, running *version.Version, now time.Time) (choice, error) {
	out := choice{available: []string{}}
	var visible []entry
	for _, e := range entries {
		if e.max.LessThan(e.version) {
			continue
		}
		if !set.IgnoreWaves {
			open, err := waveOpen(e.waves, set.Seed, now)
			if err != nil {
				return choice{}, err
			}
			if !open {
				continue
			}
		}
		visible = append(visible, e)
		out.available = append(out.available, e.name)
	}
	if set.VersionLock == lockLatest {
		for _, e := range visible {
			if running.LessThan(e.version) || e.max.LessThan(running) {
				out.chosen = e.name
				break
			}
		}
		return out, nil
	}
	lock, err := parseLock(set.VersionLock)
	if err != nil {
		return choice{}, errors.WithMessage(err, "version-lock")
	}
	for _, e := range visible {
		if sameVersion(e.version, lock) && !sameVersion(e.version, running) {
			out.chosen = e.name
			break
		}
	}
	return out, nil
}
