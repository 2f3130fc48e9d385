package policy

import "time"

// Range is a set of versions.
type Range interface {
	Contains(version string) bool
	// String is the text that it was made of.
	String() string
}

// Versions are those that nodes may go to.
type Versions struct {
	// Allow are the only ones, if it is not nil; Deny are never any.
	Allow, Deny Range
	// Hold is the one version that nodes go to, and no further, if it is not empty.
	Hold string
	// Downgrade: a version lower than the running one may be a target too. Hosts offer one when the running one
	// was withdrawn.
	Downgrade bool
	// MinAge is how long a version must have been known in this cluster.
	MinAge time.Duration
}
