package policy

import (
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// Range is a set of versions.
type Range interface {
	Contains(version string) bool
	// String is the text that it was made of.
	String() string
}

// Versions are those that nodes may go to.
type Versions struct {
	// Allow are the only ones, if it is not nil.
	Allow Range `yaml:"allow"`
	// Deny are never any, if it is not nil.
	Deny Range `yaml:"deny"`
	// Hold is the one version that nodes go to, and no further, if it is not empty.
	Hold string `yaml:"hold"`
	// Downgrade: a version lower than the running one may be a target too. Hosts offer one when the running one
	// was withdrawn.
	Downgrade bool `yaml:"downgrade"`
	// MinAge is how long a version must have been known in this cluster.
	MinAge time.Duration `yaml:"minAge"`
}

func (v Versions) validate(m *mistakes) {
	switch {
	case v.Hold == "":
	case !marker.ValidVersion(v.Hold):
		m.add("versions.hold", "is %q: give a version such as 1.27.0", v.Hold)
	case v.Deny != nil && v.Deny.Contains(v.Hold):
		m.add("versions.hold", "is %s, which versions.deny denies: nothing would ever start", v.Hold)
		m.beside("versions.deny")
	case v.Allow != nil && !v.Allow.Contains(v.Hold):
		m.add("versions.hold", "is %s, which versions.allow does not allow: nothing would ever start", v.Hold)
		m.beside("versions.allow")
	}
	if v.MinAge < 0 {
		m.add("versions.minAge", "is %s: give 0 or more", v.MinAge)
	}
}
