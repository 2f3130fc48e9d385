package policy

import (
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// A node has at most attemptsSoon attempts without success within soon, and at most marker.HistoryLength within the
// longest wait of the policy, whatever they ended by: an offer that comes and goes, or one newer version after the other,
// is no way to have a node drained all day.
const attemptsSoon = 3

// soon is in which time there may be attemptsSoon. By default it is an hour.
func (s Settings) soon() time.Duration { return 6 * s.RetryBase }

// attempts are the ends of a node's attempts without success, the latest first, since the user last wished for another.
func (p *planner) attempts(n *fleet.Node) []time.Time {
	var ends []time.Time
	for i := len(n.Marks.History) - 1; i >= 0 && !n.Marks.History[i].Retried; i-- {
		if a := &n.Marks.History[i]; a.Outcome != marker.OutcomeUpdated && !a.Ended.After(p.Now.Add(p.set.RetryMax)) {
			ends = append(ends, a.Ended)
		}
	}
	return ends
}

// tired says why a node has had enough attempts for now.
func (p *planner) tired(n *fleet.Node) verdict {
	if len(n.Marks.History) < attemptsSoon {
		return verdict{}
	}
	ends := p.attempts(n)
	until, count, within := time.Time{}, 0, time.Duration(0)
	for _, limit := range []struct {
		count  int
		within time.Duration
	}{{attemptsSoon, p.set.soon()}, {marker.HistoryLength, p.set.RetryMax}} {
		if len(ends) < limit.count {
			continue
		}
		if end := ends[limit.count-1].Add(limit.within); p.Now.Before(end) && end.After(until) {
			until, count, within = end, limit.count, limit.within
		}
	}
	if until.IsZero() {
		return verdict{}
	}
	p.wakeAt(until)
	return verdict{ReasonBackingOff, say("{n} attempts ended here without success within {d}, the last by {s}; the next begins after {t}, or at once with the annotation {s2}").
		count(count).lasting(within).with(n.Marks.History[len(n.Marks.History)-1].Reason, string(marker.KeyRetry)).at(until).over(until)}
}

// behind reports whether a node comes after the others: it failed, or had its turn a short while ago. So none is kept
// waiting by one that is taken out of service again and again, whatever that one's marks say.
func (p *planner) behind(n *fleet.Node) bool {
	if n.Marks.Failure != nil && n.Marks.Failure.Count > 0 || !n.TakenOut.IsZero() && p.Now.Before(n.TakenOut.Add(p.set.soon())) {
		return true
	}
	ends := p.attempts(n)
	return len(ends) > 0 && p.Now.Before(ends[0].Add(p.set.soon()))
}
