package marker

import (
	"slices"
	"strings"
	"time"
)

// maxAsked is how many values a Lock remembers to have asked for.
const maxAsked = 5

// Lock is the wish that a host's setting version-lock has a value. It stands on the Node before the host is touched
// first, and until what stood there before is put back, so that it can be whatever crashes.
type Lock struct {
	// Want is what the setting is to be: LockLatest or a version.
	Want string `json:"want"`
	// Before is what stood there before the first wish, byte for byte.
	Before string `json:"before"`
	// Asked are values that were wanted before, the newest last, at most 5: a late commit may still set one.
	Asked []string `json:"asked,omitempty"`
	// GiveBack: Want is Before, and with it the lock ends.
	GiveBack bool `json:"giveBack,omitempty"`
	// PausedSince is since when the node itself has been paused, by the controller's clock.
	PausedSince *time.Time `json:"pausedSince,omitempty"`
	// Failures counts how often the host could not be locked as wanted, since it last could or since the wish changed.
	// RetryAfter is when it is tried again.
	Failures   int        `json:"failures,omitempty"`
	RetryAfter *time.Time `json:"retryAfter,omitempty"`

	extra extra
}

// Ours reports whether a value of the setting is one that was asked for by this wish, or by one before it: byte for
// byte, since the same version in other words was set by others.
func (l *Lock) Ours(value string) bool {
	return value == l.Want && !l.GiveBack || slices.Contains(l.Asked, value)
}

// Again returns the same wish once more. What it asked for before may stand, or may yet come.
func (l *Lock) Again() *Lock {
	next := l.Changed(l.Want, l.GiveBack)
	next.Failures = l.Failures + 1
	return next
}

// Stood reports whether a host that had the lock before it was touched has it by others: no earlier wish asked for it.
func (l *Lock) Stood() bool {
	return !l.GiveBack && !slices.Contains(l.Asked, l.Want)
}

// Standing is the last value that is not Before and that was asked for; it may stand on the host.
func (l *Lock) Standing() string {
	if !l.GiveBack {
		return l.Want
	}
	if len(l.Asked) == 0 {
		return l.Before
	}
	return l.Asked[len(l.Asked)-1]
}

// Changed returns a new wish in the place of this one. What is wanted now joins what was asked for.
func (l *Lock) Changed(want string, giveBack bool) *Lock {
	next := *l
	next.Asked = slices.Clone(l.Asked)
	if !l.GiveBack {
		next.Asked = append(slices.DeleteFunc(next.Asked, func(asked string) bool { return asked == l.Want }), l.Want)
	}
	next.Asked = next.Asked[max(0, len(next.Asked)-maxAsked):]
	next.Want, next.GiveBack, next.Failures, next.RetryAfter = want, giveBack, 0, nil
	return &next
}

// SameLock reports whether two values of the setting say the same: a host takes a version with and without a leading v.
func SameLock(a, b string) bool { return strings.TrimPrefix(a, "v") == strings.TrimPrefix(b, "v") }
