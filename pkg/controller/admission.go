package controller

import (
	"context"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube/access"
)

// notRestricted is the message when an admission policy for the controller's account is missing.
const notRestricted = "no admission policy holds the controller's account to what is its own to write on Nodes, to create or to evict: " +
	"apply update-operator.yaml whole, and see that the policies update-operator-controller, update-operator-controller-creations and " +
	"update-operator-controller-evictions match this account"

// admissionTime bounds the test requests.
const admissionTime = 15 * time.Second

// askForAdmission tests whether the admission policies are in force, as the term begins and seldom from then on. It
// returns when that is worth a pass of its own; zero if never.
func (t *Term) askForAdmission(ctx context.Context, node string, now time.Time) time.Time {
	if t.c.Restricted == nil {
		return time.Time{}
	}
	t.mu.Lock()
	var known access.Enforcement
	if found := t.admission.found(wholeFleet, time.Time{}); found != nil {
		known = *found
	}
	t.mu.Unlock()
	if now.Before(known.Next) {
		if known.Unsettled() {
			return known.Next
		}
		return time.Time{}
	}
	// Its end asks for a pass.
	begin(t, t.admission, wholeFleet, time.Time{}, func() func(*work[access.Enforcement]) {
		ctx, cancel := context.WithTimeout(ctx, admissionTime)
		defer cancel()
		inForce, err := t.c.Restricted(ctx, node)
		if err != nil {
			// The node may be gone, or the API server away.
			t.c.Log.WithError(err).Debug("Could not find out whether the admission policy stands")
		}
		tested := known.Tested(t.c.Now(), inForce, err)
		return func(w *work[access.Enforcement]) { w.found = &tested }
	})
	return time.Time{}
}
