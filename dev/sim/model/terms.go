package model

import (
	"fmt"
	"strings"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent/next"
)

// The model has no clock: now is always the same moment, and what was written is either of now, of a
// time to come, or of a time that is past every deadline. A jump makes the first two the third.
var (
	now  = time.Date(2026, 9, 20, 10, 0, 0, 0, time.UTC)
	past = now.Add(-jump)
)

// jump is longer than every deadline, patience and back-off of the model's settings.
const jump = 3 * time.Hour

// moment puts a time into the model's terms.
func moment(t time.Time) time.Time {
	switch {
	case t.IsZero():
		return t
	case t.After(now):
		return t.UTC()
	case now.Sub(t) < time.Second:
		// Only the starts of processes differ by so little.
		return t
	}
	return past
}

// later is what a time has become after a jump.
func later(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return moment(t.Add(-jump))
}

// What is written for the first time has a name that begins so, until the column is put into terms.
const fresh = "new"

// names gives names in the order in which they are met, so that two columns which differ in nothing but
// names are one. A name that the code under test made up by itself stays as it is.
type names struct {
	prefix string
	to     map[string]string
}

func (n *names) name(s string) string {
	if s == "" || !strings.HasPrefix(s, fresh) && !strings.HasPrefix(s, n.prefix) {
		return s
	}
	if to, ok := n.to[s]; ok {
		return to
	}
	to := fmt.Sprintf("%s%c", n.prefix, 'a'+len(n.to))
	n.to[s] = to
	return to
}

// known is like name, but drops what nothing else names.
func (n *names) known(s string) string { return n.to[s] }

// terms are those of one column.
type terms struct {
	moment                    func(time.Time) time.Time
	ids, boots, readies, logs names
}

func newTerms(m func(time.Time) time.Time) *terms {
	t := &terms{moment: m}
	for prefix, n := range map[string]*names{"id-": &t.ids, "boot-": &t.boots, "ready-": &t.readies, "log-": &t.logs} {
		n.prefix, n.to = prefix, map[string]string{}
	}
	return t
}

func (t *terms) of() next.Terms {
	return next.Terms{Moment: t.moment, ID: t.ids.name, Boot: t.boots.name, Timestamp: t.logs.name}
}
