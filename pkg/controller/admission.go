package controller

import (
	"context"
	"time"
)

// notRestricted is the message when an admission policy for the controller's account is missing.
const notRestricted = "no admission policy holds the controller's account to what is its own to write on Nodes, to create or to evict: " +
	"apply update-operator.yaml whole, and see that the policies update-operator-controller, update-operator-controller-creations and " +
	"update-operator-controller-evictions match this account"

const (
	// admissionTime bounds the test requests.
	admissionTime = 15 * time.Second
	// The next test comes after admissionAgain if the policies are in force, after admissionMissing if they are not, and
	// after admissionUnknown if the test failed. It comes after admissionDoubt when they are missing for the first time: an
	// API server enforces a policy some seconds after it was applied.
	admissionAgain   = time.Hour
	admissionDoubt   = 10 * time.Second
	admissionMissing = 5 * time.Minute
	admissionUnknown = time.Minute
)

// admission is what this process knows of the admission policies for its account.
type admission struct {
	running, doubted bool
	// missing is the message about a missing policy; empty if all are in force, or that isn't known.
	missing string
	// next is when it is asked for again.
	next time.Time
}

// askForAdmission tests whether the admission policies are in force, as the term begins and seldom from then on. It
// returns when that is worth a pass of its own; zero if never.
func (t *Term) askForAdmission(ctx context.Context, node string, now time.Time) time.Time {
	if t.c.Restricted == nil {
		return time.Time{}
	}
	t.mu.Lock()
	due := !t.admission.running && !now.Before(t.admission.next)
	t.admission.running = t.admission.running || due
	again := t.admission.next
	if t.admission.missing == "" && !t.admission.doubted {
		again = time.Time{}
	}
	t.mu.Unlock()
	if due {
		t.c.Spawn(func() { t.restricted(ctx, node) })
	}
	return again
}

func (t *Term) restricted(ctx context.Context, node string) {
	ctx, cancel := context.WithTimeout(ctx, admissionTime)
	defer cancel()
	stands, err := t.c.Restricted(ctx, node)
	t.mu.Lock()
	defer t.mu.Unlock()
	missing, next, doubted := "", admissionAgain, false
	switch {
	case err != nil:
		// The node may be gone, or the API server away.
		t.c.Log.WithError(err).Debug("Could not find out whether the admission policy stands")
		missing, next, doubted = t.admission.missing, admissionUnknown, t.admission.doubted
	case !stands && t.admission.missing == "" && !t.admission.doubted:
		next, doubted = admissionDoubt, true
	case !stands:
		missing, next = notRestricted, admissionMissing
	}
	if missing != t.admission.missing || doubted {
		t.Changed()
	}
	t.admission = admission{missing: missing, doubted: doubted, next: t.c.Now().Add(next)}
}
