package controller

import (
	"context"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/notice"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

const (
	// recordSoon is the pause after the Book could not be written, doubled by each further time up to recordLate.
	recordSoon = time.Second
	recordLate = 5 * time.Minute
)

// told is how the last work on messages went.
type told struct {
	// next is when to begin another one, if there is something to do.
	next time.Time
	// stale: what is kept of messages is another thing than the pass knew.
	stale bool
}

// refresh has the next look at the controller's own object be a live one if what it keeps of messages was out of date.
// It is called before a pass: one that is under way plans and writes by the same list of slots.
func (t *Term) refresh() {
	t.mu.Lock()
	found := t.messages.found(wholeFleet, time.Time{})
	stale := found != nil && found.stale
	if stale {
		found.stale = false
	}
	t.mu.Unlock()
	if stale {
		t.c.Cluster.ForgetSlots()
	}
}

// reasonMessageFailing is of an Event alone: a message could not be sent.
const reasonMessageFailing = "MessageFailing"

// notify begins to tell what there is to tell, and returns when to look again. No pass waits for a receiver, nor for
// the writes that keep account of it.
func (t *Term) notify(ctx context.Context, s fleet.Snapshot, out plan.Plan, set *policy.Notify) time.Time {
	// Without a policy it isn't known where to send it, and what is kept waits.
	if t.c.Sender == nil || set.URLKey == "" && (s.Notices == "" || s.NoPolicy) {
		return time.Time{}
	}
	book, dropped := notice.Decode(s.Notices).Next(&s, &out, set)
	keys, wake := book.Due(s.Now)
	if len(keys) == 0 && book.Encode() == s.Notices {
		return wake
	}
	t.mu.Lock()
	last := t.messages.found(wholeFleet, time.Time{})
	t.mu.Unlock()
	if last != nil && s.Now.Before(last.next) {
		return plan.Earliest(s.Now, wake, last.next)
	}
	begin(t, t.messages, wholeFleet, time.Time{}, func() func(*work[told]) {
		err := t.tell(ctx, s.Notices, book, dropped, keys, set)
		return func(w *work[told]) {
			w.found = &told{stale: err != nil}
			if err == nil {
				w.pause = 0
				return
			}
			t.c.Log.WithError(err).Debug("What messages tell could not be recorded")
			w.backOff(recordSoon, recordLate)
			w.found.next = t.c.Now().Add(w.pause)
		}
	})
	return wake
}

// tell writes down what is to be told, that it is tried, and how the try ended. A try that is not known to have ended,
// by a crash between the last two for example, may have reached the receiver: it is made again an hour later.
func (t *Term) tell(ctx context.Context, before string, book notice.Book, dropped int, keys []string, set *policy.Notify) error {
	trying, notices := book.Try(keys, t.c.Now())
	text := trying.Encode()
	if err := t.c.Cluster.RecordNotices(ctx, before, text); err != nil {
		return err
	}
	t.c.Metrics.dropped(dropped)
	if len(keys) == 0 {
		return nil
	}
	result, err := t.c.Sender.Send(ctx, set.URLKey, notice.MessageOf(set.Cluster, notices))
	if ctx.Err() != nil {
		return nil
	}
	t.c.Metrics.told(result, len(keys))
	if err != nil && !t.messageFailing {
		t.c.Events.Notice(true, reasonMessageFailing, err.Error())
	}
	t.messageFailing = err != nil
	return t.c.Cluster.RecordNotices(ctx, text, trying.Tried(keys, result).Encode())
}
