package rollout

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

const (
	// maxRollouts is how many rollouts are remembered, the latest ones.
	maxRollouts = 20
	// goesOn is for how long after its end a rollout goes on if another node begins: a node that joined, for example.
	goesOn = 24 * time.Hour
	// writeEvery is how often what nodes wait for is written down while nothing begins or ends.
	writeEvery = 10 * time.Minute
)

// Log is what is remembered of rollouts. It outlives every process.
type Log struct {
	// At is until when waits are counted.
	At time.Time `json:"at,omitzero"`
	// Rollouts are sorted by when they began.
	Rollouts []plan.Rollout `json:"rollouts,omitempty"`

	// waits are those since At, as this process saw them; nil if it has not looked yet.
	waits map[string]map[plan.Reason]int
	// written is what At was when the log was last written down. changed: a rollout has begun or ended since.
	written time.Time
	changed bool
}

// Decode reads a Log. What can't be read is an empty one.
func Decode(text string) Log {
	var l Log
	if json.Unmarshal([]byte(text), &l) != nil {
		return Log{}
	}
	l.Rollouts = l.Rollouts[max(0, len(l.Rollouts)-maxRollouts):]
	l.written = l.At
	return l
}

// Encode writes a Log.
func (l Log) Encode() string {
	// Strings, numbers and times are always encoded.
	text, _ := json.Marshal(l)
	return string(text)
}

// Next returns the Log as of now. The receiver stays as it is.
func (l Log) Next(c *Census, now time.Time) Log {
	now = now.UTC().Truncate(time.Second)
	next := Log{At: now, waits: c.Waits, written: l.written, changed: l.changed, Rollouts: slices.Clone(l.Rollouts)}
	// A clock that was put back makes no time.
	since := max(0, now.Sub(l.At))
	active := map[string]bool{}
	for i := range next.Rollouts {
		r := &next.Rollouts[i]
		if !r.UnderWay() {
			continue
		}
		waited(r, l.waits, since)
		r.Most = max(r.Most, c.UnderWay[r.Version]+c.Awaits[r.Version])
		if c.UnderWay[r.Version]+c.Awaits[r.Version] == 0 {
			r.Ended, next.changed = now, true
			continue
		}
		active[r.Version] = true
	}
	for _, version := range slices.Sorted(maps.Keys(c.UnderWay)) {
		if !active[version] {
			next.begin(version, c.UnderWay[version]+c.Awaits[version], now)
			next.changed = true
		}
	}
	return next
}

// Due reports whether the Log is to be written down: when a rollout has begun or ended, and every ten minutes in
// between.
func (l *Log) Due() bool {
	return l.changed || !l.Idle() && l.At.Sub(l.written) >= writeEvery
}

// Written returns the Log after it was written down.
func (l Log) Written() Log {
	l.written, l.changed = l.At, false
	return l
}

// Idle reports whether no rollout is under way.
func (l *Log) Idle() bool {
	return !slices.ContainsFunc(l.Rollouts, func(r plan.Rollout) bool { return r.UnderWay() })
}

// begin takes in that a rollout begins, or goes on.
func (l *Log) begin(version string, nodes int, now time.Time) {
	for i := len(l.Rollouts) - 1; i >= 0; i-- {
		if r := &l.Rollouts[i]; r.Version == version && now.Sub(r.Ended) < goesOn {
			r.Ended, r.Most = time.Time{}, max(r.Most, nodes)
			return
		}
	}
	l.Rollouts = append(l.Rollouts, plan.Rollout{Version: version, Began: now, Most: nodes})
	if len(l.Rollouts) > maxRollouts {
		l.forget()
	}
}

// forget drops one that has ended: the oldest of the version that has the most, so that nodes that join one by one
// don't push out the rollouts of other versions.
func (l *Log) forget() {
	count, most := map[string]int{}, 0
	for _, r := range l.Rollouts {
		count[r.Version]++
		most = max(most, count[r.Version])
	}
	at := slices.IndexFunc(l.Rollouts, func(r plan.Rollout) bool { return !r.UnderWay() && count[r.Version] == most })
	if at < 0 {
		at = 0
	}
	l.Rollouts = slices.Delete(l.Rollouts, at, at+1)
}

// waited adds a time to what nodes have waited for.
func waited(r *plan.Rollout, waits map[string]map[plan.Reason]int, since time.Duration) {
	seconds := int(since / time.Second)
	if waits == nil {
		r.Unseen += seconds
		return
	}
	if len(waits[r.Version]) == 0 {
		return
	}
	r.Waits = maps.Clone(r.Waits)
	if r.Waits == nil {
		r.Waits = map[plan.Reason]int{}
	}
	for reason, nodes := range waits[r.Version] {
		r.Waits[reason] += nodes * seconds
	}
}
