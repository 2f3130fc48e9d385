package notice

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plain"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/rollout"
)

// Book is what was told, and what is to be. It outlives every process.
type Book struct {
	// Since is when messages were switched on: of what failed before nothing is told.
	Since time.Time `json:"since,omitzero"`
	// Rollouts are those under way: when each version's began.
	Rollouts map[string]time.Time `json:"rollouts,omitempty"`
	// Entries are by thing.
	Entries map[string]Entry `json:"entries,omitempty"`
}

// Entry is how far the telling of one thing is.
type Entry struct {
	// Of tells one occurrence of the thing from another.
	Of string `json:"of,omitempty"`
	// Notice is what is to be told; nil once that is over.
	Notice *Notice `json:"notice,omitempty"`
	// Found is when the thing was found, Tries how often it was tried to tell it, and Tried when that was last.
	Found time.Time `json:"found"`
	Tries int       `json:"tries,omitempty"`
	Tried time.Time `json:"tried,omitzero"`
	// Refused: the last try certainly did not reach the receiver, or it said no.
	Refused bool `json:"refused,omitempty"`
}

const (
	// again is how long the same thing is not told again: neither if it happens again, nor if it isn't known whether the
	// receiver got it.
	again = time.Hour
	// refusedSoon is the pause after the first try that was refused, doubled by each further one up to refusedLate.
	refusedSoon = 30 * time.Second
	refusedLate = time.Hour
	// giveUp is how long it is tried to tell a thing.
	giveUp = 24 * time.Hour
	// skew is how far the clocks of two leaders may be apart. What is further ahead was written by a clock that was wrong.
	skew = time.Minute
	// maxEntries bounds the Book: the object that it is in has room for 1 MiB. So many things of nodes are remembered, of
	// which maxUntold are still to be told, and so many of the fleet: what nodes make up takes no room from it, nor the
	// other way round. What there is no room for is told once there is, if it still is so.
	maxEntries      = 1000
	maxUntold       = 200
	maxFleetEntries = 100
	// maxRollouts is how many versions nodes may be on their way to, at once, as far as is told.
	maxRollouts = 30
	// MaxTold is how many things one message tells.
	MaxTold = 50
)

// Decode reads a Book. What can't be read is a new one.
func Decode(text string) Book {
	var b Book
	if json.Unmarshal([]byte(text), &b) != nil {
		return Book{}
	}
	return b
}

// Encode writes a Book; an empty one is an empty text.
func (b Book) Encode() string {
	if b.Since.IsZero() {
		return ""
	}
	var text strings.Builder
	e := json.NewEncoder(&text)
	// Else a message of such characters would take six times its bytes.
	e.SetEscapeHTML(false)
	if e.Encode(b) != nil {
		// It can't be: there are strings, numbers and times alone.
		return ""
	}
	return strings.TrimSuffix(text.String(), "\n")
}

func (b Book) clone() Book {
	b.Rollouts, b.Entries = maps.Clone(b.Rollouts), maps.Clone(b.Entries)
	if b.Rollouts == nil {
		b.Rollouts = map[string]time.Time{}
	}
	if b.Entries == nil {
		b.Entries = map[string]Entry{}
	}
	return b
}

// Next returns the Book with what there is to tell now, and what need not be remembered any more left out. Dropped
// counts what it was tried to tell for too long. Where no messages are wanted, the Book is empty; where that isn't
// known, for want of a policy, it stays as it is.
func (b Book) Next(s *fleet.Snapshot, p *plan.Plan, set *policy.Notify) (next Book, dropped int) {
	switch {
	case set.URLKey == "" && s.NoPolicy:
		return b, 0
	case set.URLKey == "":
		return Book{}, 0
	}
	next = b.clone()
	next.correct(s.Now)
	if next.Since.IsZero() {
		next.Since = s.Now.UTC().Truncate(time.Second)
	}
	c := rollout.Count(s, p)
	things := append(ofNodes(s, p), stopped(p, s.Now)...)
	things = append(things, next.rollouts(&c, s.Now.UTC().Truncate(time.Second))...)
	stands, full := map[string]bool{}, map[bool]bool{}
	for _, t := range things {
		stands[t.key] = true
		ofNode := t.notice.Node != ""
		if set.Wants(t.notice.Occasion) && !full[ofNode] {
			full[ofNode] = !next.add(t, s.Now)
		}
		// An end is over once it is noted, so that none is lost for want of room.
		if t.notice.Occasion == policy.RolloutEnded && (!set.Wants(policy.RolloutEnded) || next.Entries[t.key].Of == t.of) {
			delete(next.Rollouts, t.notice.Version)
		}
	}
	for key, e := range next.Entries {
		switch {
		case e.Notice != nil && s.Now.Sub(e.Found) >= giveUp:
			e.Notice = nil
			next.Entries[key] = e
			dropped++
		case e.Notice == nil && !stands[key] && s.Now.Sub(e.Tried) >= again:
			delete(next.Entries, key)
		}
	}
	return next, dropped
}

// correct brings what a clock that ran ahead wrote back to now: a thing would not be told until the time written there.
// What was tried by then was tried before now, so it is not told too early either.
func (b *Book) correct(now time.Time) {
	correct := func(at time.Time) time.Time {
		if at.After(now.Add(skew)) {
			return now.UTC().Truncate(time.Second)
		}
		return at
	}
	b.Since = correct(b.Since)
	for v, at := range b.Rollouts {
		b.Rollouts[v] = correct(at)
	}
	for key, e := range b.Entries {
		e.Found, e.Tried = correct(e.Found), correct(e.Tried)
		b.Entries[key] = e
	}
}

// rollouts takes in which rollouts have begun, and returns of each that it began, or that it has ended.
func (b *Book) rollouts(c *rollout.Census, now time.Time) []thing {
	var things []thing
	for _, v := range slices.Sorted(maps.Keys(c.UnderWay)) {
		if _, known := b.Rollouts[v]; !known && len(b.Rollouts) < maxRollouts {
			b.Rollouts[v] = now
		}
	}
	for _, v := range slices.Sorted(maps.Keys(b.Rollouts)) {
		if c.UnderWay[v]+c.Awaits[v] == 0 {
			things = append(things, ended(c, v, b.Rollouts[v], now))
			continue
		}
		things = append(things, began(c, v, b.Rollouts[v]))
	}
	return things
}

// add notes a thing, unless it stands there, and reports whether there was room. What happens again is told an hour
// after it was told last.
func (b *Book) add(t thing, now time.Time) bool {
	e, known := b.Entries[t.key]
	switch {
	case known && (e.Of == t.of || e.Notice != nil):
		return true
	case t.notice.Occasion == policy.NodeFailed && t.notice.At.Before(b.Since):
		return true
	case !b.room(t.notice.Node != "", known):
		return false
	}
	t.notice.Message = plain.Line(t.notice.Message, maxMessage)
	t.notice.At = t.notice.At.UTC().Truncate(time.Second)
	b.Entries[t.key] = Entry{Of: t.of, Notice: &t.notice, Found: now.UTC().Truncate(time.Second), Tried: e.Tried}
	return true
}

// room reports whether there is room to tell another thing, of a node or of the fleet.
func (b *Book) room(ofNode, known bool) bool {
	all, untold := 0, 0
	for key, e := range b.Entries {
		if strings.HasPrefix(key, nodes) != ofNode {
			continue
		}
		all++
		if e.Notice != nil {
			untold++
		}
	}
	if ofNode {
		return untold < maxUntold && (known || all < maxEntries)
	}
	return known || all < maxFleetEntries
}

// due returns when to try to tell what the entry is of.
func (e Entry) due() time.Time {
	switch {
	case e.Tries == 0 && e.Tried.IsZero():
		return e.Found
	case e.Tries == 0:
		return e.Tried.Add(again)
	case !e.Refused:
		return e.Tried.Add(again)
	}
	pause := refusedSoon
	for i := 1; i < e.Tries && pause < refusedLate; i++ {
		pause *= 2
	}
	return e.Tried.Add(min(pause, refusedLate))
}

// Due returns the keys of what is to be told now, the oldest first, MaxTold at most, and when to look again; zero if
// nothing is left to tell.
func (b Book) Due(now time.Time) (keys []string, wake time.Time) {
	for key, e := range b.Entries {
		if e.Notice == nil {
			continue
		}
		if at := e.due(); at.After(now) {
			wake = plan.Earliest(now, wake, at)
			continue
		}
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(x, y string) int {
		return cmp.Or(b.Entries[x].Found.Compare(b.Entries[y].Found), cmp.Compare(x, y))
	})
	return keys[:min(len(keys), MaxTold)], wake
}

// Try returns the Book with a try to tell those things written down, and the things.
func (b Book) Try(keys []string, now time.Time) (Book, []Notice) {
	b = b.clone()
	var told []Notice
	for _, key := range keys {
		e := b.Entries[key]
		e.Tries, e.Tried, e.Refused = e.Tries+1, now.UTC().Truncate(time.Second), false
		b.Entries[key] = e
		told = append(told, *e.Notice)
	}
	return b, told
}

// Result is how a try ended.
type Result string

// The results, as a metric label.
const (
	// Sent: the receiver said yes.
	Sent Result = "sent"
	// Refused: the receiver said no, or certainly didn't get the message.
	Refused Result = "refused"
	// Unknown: there was no answer, or none of the receiver's own.
	Unknown Result = "unknown"
)

// Tried returns the Book with how the try ended.
func (b Book) Tried(keys []string, r Result) Book {
	b = b.clone()
	for _, key := range keys {
		e := b.Entries[key]
		switch r {
		case Sent:
			e.Notice = nil
		case Refused:
			e.Refused = true
		case Unknown:
		}
		b.Entries[key] = e
	}
	return b
}
