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
	// Downgrade: a version lower than the running one may be a target too. Hosts offer one when the running one
	// was withdrawn, or when they are locked to it.
	Downgrade bool `yaml:"downgrade"`
	// MinAge is how long a version must have been known in this cluster.
	MinAge time.Duration `yaml:"minAge"`
}

// HostVersions are those that hosts of Bottlerocket may go to. Such a host chooses for itself among what it is offered.
type HostVersions struct {
	Versions `yaml:",inline"`
	// Hold is the one version that nodes go to, and no further, if it is not empty: once their hosts choose it.
	Hold string `yaml:"hold"`
	// Pin is the one version that hosts are locked to by their own setting, so that they choose no other, if it is not
	// empty.
	Pin string `yaml:"pin"`
	// OverrideLocks: a lock that was set by others gives way to the pin. Default false.
	OverrideLocks bool `yaml:"overrideLocks"`
}

// Only is the version that nodes go to, and no other; empty if there are several.
func (v *HostVersions) Only() string {
	if v.Pin != "" {
		return v.Pin
	}
	return v.Hold
}

func (v *HostVersions) validate(m *mistakes) {
	only := func(field, version string) {
		switch {
		case version == "":
		case !marker.ValidVersion(version):
			m.add(field, "is %q: give a version such as 1.27.0", version)
		case v.Deny != nil && v.Deny.Contains(version):
			m.add(field, "is %s, which versions.deny denies: nothing would ever start", version)
			m.beside("versions.deny")
		case v.Allow != nil && !v.Allow.Contains(version):
			m.add(field, "is %s, which versions.allow does not allow: nothing would ever start", version)
			m.beside("versions.allow")
		}
	}
	only("versions.hold", v.Hold)
	only("versions.pin", v.Pin)
	if v.Hold != "" && v.Pin != "" {
		m.add("versions.pin", "is %s beside versions.hold, which is %s: give one of them", v.Pin, v.Hold)
		m.beside("versions.hold")
	}
	v.Versions.validate(m)
}

func (v *Versions) validate(m *mistakes) {
	if v.MinAge < 0 {
		m.add("versions.minAge", "is %s: give 0 or more", v.MinAge)
	}
}
