package lifecycle

import (
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// A node has at most attemptsSoon attempts without success within Settings.Soon, and at most marker.HistoryLength within
// the longest wait of the policy, whatever they ended by: an offer that comes and goes, or one newer version after the
// other, is no way to have a node drained all day.
const attemptsSoon = 3

// unsuccessful returns the last but so many of the node's attempts without success, since the user last wished for
// another; nil if there were not so many.
func (v *View) unsuccessful(but int) *marker.Attempt {
	for i := len(v.Marks.History) - 1; i >= 0 && !v.Marks.History[i].Retried; i-- {
		a := &v.Marks.History[i]
		// A clock that ran ahead has written what ends in the future.
		if a.Outcome == marker.OutcomeUpdated || a.Ended.After(v.Now) {
			continue
		}
		if but == 0 {
			return a
		}
		but--
	}
	return nil
}

// tired is why the node has had enough attempts for now.
func (v *View) tired() plan.Refusal {
	type limit struct {
		count  int
		within time.Duration
	}
	var reached limit
	var until time.Time
	for _, l := range []limit{{attemptsSoon, v.Settings.Soon()}, {marker.HistoryLength, v.Settings.RetryMax}} {
		if a := v.unsuccessful(l.count - 1); a != nil {
			if end := a.Ended.Add(l.within); v.Now.Before(end) && end.After(until) {
				until, reached = end, l
			}
		}
	}
	if until.IsZero() {
		return plan.Refusal{}
	}
	return plan.Refusal{Reason: plan.ReasonBackingOff, Again: until, Message: plan.Messagef(
		"%d attempts without success within %s here, the last by %s; the next begins after %s, or at once with the annotation %s",
		reached.count, reached.within, v.unsuccessful(0).Reason, plan.Clock(until), marker.KeyRetry).Dated().Until(until)}
}

// Behind reports whether the node comes after the others: it failed, or had its turn a short while ago. So none is kept
// waiting by one that is taken out of service again and again, whatever that one's marks say. One that confirmed what it
// has staged, and was not taken out of service by then, had its turn too.
func (v *View) Behind() bool {
	if v.Marks.Intent.Action == marker.ActionConfirmUpdate && v.doubtful() {
		return true
	}
	soon := v.Settings.Soon()
	if v.Marks.Failure != nil && v.Marks.Failure.Count > 0 || v.Now.Before(v.TakenOut.Add(soon)) {
		return true
	}
	last := v.unsuccessful(0)
	return last != nil && v.Now.Before(last.Ended.Add(soon))
}
