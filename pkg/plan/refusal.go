package plan

import "time"

// Refusal is why something does not start, or does not go on, now. One without a Reason is none.
type Refusal struct {
	Reason  Reason
	Message Message
	// Again is when the clock alone may change the answer, be it a refusal or none; zero if never.
	Again time.Time
	// Silent: it stands in the plan alone, and is not written to the node.
	Silent bool
	// Asks: the answer has to be asked for first. It is Silent too, and a node keeps the slot that it holds.
	Asks bool
}

// Refuses reports whether it is one.
func (r Refusal) Refuses() bool { return r.Reason != "" }

// Refuse returns a refusal with a reason and a message.
func Refuse(r Reason, m Message) Refusal { return Refusal{Reason: r, Message: m} }

// Check is one thing that may keep something from starting. It returns why, or no refusal.
type Check[T any] func(T) Refusal

// FirstRefusal asks checks in their order and returns the first refusal, the one that an administrator reads. Its Again
// counts all that were asked.
func FirstRefusal[T any](now time.Time, of T, checks ...Check[T]) Refusal {
	var again time.Time
	for _, check := range checks {
		r := check(of)
		again = Earliest(now, again, r.Again)
		if r.Refuses() {
			r.Again = again
			return r
		}
	}
	return Refusal{Again: again}
}

// After returns the refusal with a text before its message.
func (r Refusal) After(lead string) Refusal {
	r.Message = r.Message.After(lead)
	return r
}

// Look is what has to be seen live right before a step is carried out. A step whose look sees something else is left to
// the next plan.
type Look string

// The looks.
const (
	// LookNone: nothing needs to be seen.
	LookNone Look = ""
	// LookEmpty: nothing is left to evict from the node. Since the last eviction pass a pod may have been bound to it
	// (S2).
	LookEmpty Look = "for pods"
	// LookAlone: the node is the only one of its cluster.
	LookAlone Look = "for other nodes"
	// LookGone: the node, with its UID, is gone.
	LookGone Look = "for the node"
	// LookFenced: the node shows no disruption, and is in no phase that a cordon is computed from.
	LookFenced Look = "for a cordon"
)

// Earliest returns the first of the moments that are after now; zero if none is.
func Earliest(now time.Time, moments ...time.Time) time.Time {
	var first time.Time
	for _, t := range moments {
		if t.After(now) && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	return first
}
