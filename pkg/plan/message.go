package plan

import (
	"fmt"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// Message is what an administrator reads of a node. It is put together when it is read: a plan of thousands of nodes
// holds as many messages, and few of them are read.
type Message struct {
	lead, format string
	args         []any
	lasts        lasts
	until        time.Time
}

// lasts is for how long a message says what is so, while its reason stays.
type lasts uint8

const (
	// Nothing in it changes before the reason does.
	_ lasts = iota
	// dated: what it counts, or names beside others, may change. On a Node it carries its moment and isn't written again.
	dated
	// exact: it is written again whenever it says something else. Nothing in it may be counted or measured.
	exact
)

// Messagef returns a message that holds for as long as its reason does. Arguments are formatted when it is read.
func Messagef(format string, args ...any) Message { return Message{format: format, args: args} }

// Text returns a message of text that was made elsewhere, such as by an agent. It is dated: what it says may be over.
func Text(text string) Message { return Message{format: "%s", args: []any{text}, lasts: dated} }

// Dated returns the message as one in which something may change while the reason stays.
func (m Message) Dated() Message {
	m.lasts = dated
	return m
}

// Exact returns the message as one that is written again whenever it says something else.
func (m Message) Exact() Message {
	m.lasts = exact
	return m
}

// After returns the message with a text before it.
func (m Message) After(lead string) Message {
	m.lead = lead
	return m
}

// Until returns the message with the moment at which, by the clock alone, what it says may be over.
func (m Message) Until(t time.Time) Message {
	m.until = t
	return m
}

// Ends is when what it says may be over by the clock alone; zero if the clock alone ends nothing.
func (m Message) Ends() time.Time { return m.until }

// Stands reports whether an administrator reads the message, for that reason, on a node already.
func (m Message) Stands(w *marker.Waiting, r Reason) bool {
	return w != nil && w.Reason == string(r) && (m.lasts != exact || w.Message == marker.Clip(m.String(), marker.MaxMessage))
}

// Waiting is the message as it is written to a Node, where it stands for as long as the reason does. A dated one says
// of which moment it is: it is never false, and the plan says what is so now.
func (m Message) Waiting(r Reason, now time.Time) *marker.Waiting {
	when := ""
	if m.lasts == dated {
		when = fmt.Sprintf(" (at %s)", Clock(now))
	}
	return &marker.Waiting{Reason: string(r), Message: marker.Clip(m.String(), marker.MaxMessage-len(when)) + when}
}

// String implements fmt.Stringer.
func (m Message) String() string { return m.lead + fmt.Sprintf(m.format, m.args...) }

// MarshalText implements encoding.TextMarshaler.
func (m Message) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (m *Message) UnmarshalText(text []byte) error {
	*m = Text(string(text))
	return nil
}

// Clock is a moment as an administrator reads it.
type Clock time.Time

// String implements fmt.Stringer.
func (c Clock) String() string { return time.Time(c).UTC().Format("2006-01-02 15:04:05 MST") }

// Staged is before what is said of a node that could be taken out of service, and isn't.
const Staged = "staged; "
