package hostsim

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/util/version"
)

// Release is one update in the manifest of a repository.
type Release struct {
	// Version is plain semver.
	Version string `json:"version"`
	// MaxVersion is the highest version that hosts may run; a release above it isn't offered, and a
	// host above it is taken down. Empty: the highest published version of the variant and arch.
	MaxVersion string `json:"max_version,omitempty"`
	// Variant and Arch name the image, like aws-k8s-1.31 and x86_64.
	Variant string `json:"variant"`
	Arch    string `json:"arch"`
	// Waves maps the first seed of each wave to its opening time. Empty: visible to every host.
	Waves map[uint32]time.Time `json:"waves,omitempty"`
}

// Repo is an update repository shared by hosts. It is safe for concurrent use; its zero value is an
// empty repository.
type Repo struct {
	mu       sync.Mutex
	releases []Release
}

// entry is a release as a host reads it, with its versions parsed and its max_version filled in.
type entry struct {
	name    string
	version *version.Version
	max     *version.Version
	waves   map[uint32]time.Time
}

func (rel Release) check() error {
	if _, err := parseVersion(rel.Version); err != nil {
		return errors.WithMessage(err, "publish release")
	}
	if rel.MaxVersion != "" {
		if _, err := parseVersion(rel.MaxVersion); err != nil {
			return errors.WithMessagef(err, "publish release %s: max version", rel.Version)
		}
	}
	if rel.Variant == "" || rel.Arch == "" {
		return errors.Errorf("publish release %s: variant and arch are needed", rel.Version)
	}
	return nil
}

// Load replaces everything with the releases of a JSON array, or nothing at all if one of them is bad.
func (r *Repo) Load(b []byte) error {
	var fresh []Release
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&fresh); err != nil {
		return errors.Wrap(err, "parse releases")
	}
	for _, rel := range fresh {
		if err := rel.check(); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.releases = fresh
	return nil
}

// Release publishes rel, in place of an earlier release of the same version, variant and arch.
func (r *Repo) Release(rel Release) error {
	if err := rel.check(); err != nil {
		return err
	}
	rel.Waves = maps.Clone(rel.Waves)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.withdraw(rel.Variant, rel.Arch, rel.Version)
	r.releases = append(r.releases, rel)
	return nil
}

// Withdraw removes a release; one that isn't there is fine. Hosts that already run it are taken down
// if no remaining release has a MaxVersion that lets them stay.
func (r *Repo) Withdraw(variant, arch, version string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.withdraw(variant, arch, version)
}

func (r *Repo) withdraw(variant, arch, version string) {
	r.releases = slices.DeleteFunc(r.releases, func(have Release) bool {
		return have.Variant == variant && have.Arch == arch && have.Version == version
	})
}

// SetMaxVersion sets the MaxVersion of every release of a variant and arch; empty makes it follow the
// highest published version again.
func (r *Repo) SetMaxVersion(variant, arch, max string) error {
	if max != "" {
		if _, err := parseVersion(max); err != nil {
			return errors.WithMessage(err, "set max version")
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.releases {
		if r.releases[i].Variant == variant && r.releases[i].Arch == arch {
			r.releases[i].MaxVersion = max
		}
	}
	return nil
}

// Releases returns a copy of what is published, in the order of publication.
func (r *Repo) Releases() []Release {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := slices.Clone(r.releases)
	for i := range out {
		out[i].Waves = maps.Clone(out[i].Waves)
	}
	return out
}

// entries returns the releases of a variant and arch, highest first.
func (r *Repo) entries(variant, arch string) []entry {
	var out []entry
	var newest *version.Version
	for _, rel := range r.Releases() {
		if rel.Variant != variant || rel.Arch != arch {
			continue
		}
		v, err := parseVersion(rel.Version)
		if err != nil {
			continue // Release lets none in
		}
		e := entry{name: rel.Version, version: v, waves: rel.Waves}
		if rel.MaxVersion != "" {
			if e.max, err = parseVersion(rel.MaxVersion); err != nil {
				continue // as above
			}
		}
		if newest == nil || newest.LessThan(v) {
			newest = v
		}
		out = append(out, e)
	}
	for i := range out {
		if out[i].max == nil {
			out[i].max = newest
		}
	}
	slices.SortStableFunc(out, func(a, b entry) int {
		switch {
		case b.version.LessThan(a.version):
			return -1
		case a.version.LessThan(b.version):
			return 1
		}
		return 0
	})
	return out
}
