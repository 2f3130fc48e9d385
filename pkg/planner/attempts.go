package planner

import (
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// A node has at most attemptsSoon attempts without success within soon, and at most marker.HistoryLength within the
// longest wait of the policy, whatever they ended by: an offer that comes and goes, or one newer version after the other,
// is no way to have a node drained all day.
const attemptsSoon = 3

// unsuccessful returns the last but so many of a node's attempts without success, since the user last wished for another;
// nil if there were not so many.
func (p *planner) unsuccessful(n *fleet.Node, but int) *marker.Attempt {
	for i := len(n.Marks.History) - 1; i >= 0 && !n.Marks.History[i].Retried; i-- {
		a := &n.Marks.History[i]
		// A clock that ran ahead has written what ends in the future.
		if a.Outcome == marker.OutcomeUpdated || a.Ended.After(p.Now) {
			continue
		}
		if but == 0 {
			return a
		}
		but--
	}
	return nil
}

// tired says why a node has had enough attempts for now.
func (p *planner) tired(n *fleet.Node) verdict {
	until, count, within := time.Time{}, 0, time.Duration(0)
	for _, limit := range []struct {
		count  int
		within time.Duration
	}{{attemptsSoon, p.set.Soon()}, {marker.HistoryLength, p.set.RetryMax}} {
		a := p.unsuccessful(n, limit.count-1)
		if a == nil {
			continue
		}
		if end := a.Ended.Add(limit.within); p.Now.Before(end) && end.After(until) {
			until, count, within = end, limit.count, limit.within
		}
	}
	if until.IsZero() {
		return verdict{}
	}
	p.wakeAt(until)
	return verdict{plan.ReasonBackingOff, plan.Say("{n} attempts ended here without success within {d}, the last by {s}; the next begins after {t}, or at once with the annotation {s2}").
		Count(count).Lasting(within).With(p.unsuccessful(n, 0).Reason, string(marker.KeyRetry)).At(until).Over(until)}
}

// behind reports whether a node comes after the others: it failed, or had its turn a short while ago. So none is kept
// waiting by one that is taken out of service again and again, whatever that one's marks say. One that confirmed what it
// has staged, and was not taken out of service by then, had its turn too.
func (p *planner) behind(n *fleet.Node) bool {
	if n.Marks.Intent.Action == marker.ActionConfirmUpdate && p.doubtful(n) {
		return true
	}
	if n.Marks.Failure != nil && n.Marks.Failure.Count > 0 || !n.TakenOut.IsZero() && p.Now.Before(n.TakenOut.Add(p.set.Soon())) {
		return true
	}
	last := p.unsuccessful(n, 0)
	return last != nil && p.Now.Before(last.Ended.Add(p.set.Soon()))
}
