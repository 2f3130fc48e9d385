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

// admission is what this process knows of the admission policies for its account.
type admission struct {
	running bool
	access.Enforcement
}

// askForAdmission tests whether the admission policies are in force, as the term begins and seldom from then on. It
// returns when that is worth a pass of its own; zero if never.
func (t *Term) askForAdmission(ctx context.Context, node string, now time.Time) time.Time {
	if t.c.Restricted == nil {
		return time.Time{}
	}
	t.mu.Lock()
	due := !t.admission.running && !now.Before(t.admission.Next)
	t.admission.running = t.admission.running || due
	var again time.Time
	if t.admission.Unsettled() {
		again = t.admission.Next
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
	if err != nil {
		// The node may be gone, or the API server away.
		t.c.Log.WithError(err).Debug("Could not find out whether the admission policy stands")
	}
	before := t.admission.Enforcement
	t.admission = admission{Enforcement: before.Tested(t.c.Now(), stands, err)}
	if before.Unsettled() || t.admission.Unsettled() {
		t.Changed()
	}
}
