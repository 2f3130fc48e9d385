package access

import "time"

// Enforcement is what an account knows of the admission policies that restrict it, from tests by Restricted. The zero
// value is before the first test.
type Enforcement struct {
	// Missing: a policy was not in force in two tests in a row.
	Missing bool
	// Next is when to test again.
	Next    time.Time
	doubted bool
}

// Tested returns what is known after a test. A policy counts as missing the second time alone: an API server enforces
// one some seconds after it was applied.
func (e Enforcement) Tested(now time.Time, inForce bool, err error) Enforcement {
	switch {
	case err != nil:
		e.Next = now.Add(time.Minute)
		return e
	case inForce:
		return Enforcement{Next: now.Add(time.Hour)}
	case !e.Missing && !e.doubted:
		return Enforcement{doubted: true, Next: now.Add(10 * time.Second)}
	}
	return Enforcement{Missing: true, Next: now.Add(5 * time.Minute)}
}

// Unsettled reports whether a policy was not in force in the last test.
func (e Enforcement) Unsettled() bool { return e.Missing || e.doubted }
