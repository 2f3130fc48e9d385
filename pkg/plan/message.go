package plan

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// Sentence is what people read of a node, made when somebody reads it: a plan of thousands of nodes holds as
// many sentences, and few are ever read.
type Message struct {
	// form is the text with names in braces for what is filled in.
	form string
	// lead goes before it, and v into that.
	lead, v string
	s       [3]string
	n       [2]int
	t       time.Time
	d       time.Duration
	holders fmt.Stringer
	// until is when what it says may be over, by the clock alone; zero if the clock alone ends nothing.
	until time.Time
	// names: it differs from one moment to the next only if it names something else.
	names bool
	// aged: it names what another moment would not.
	aged bool
}

// say is a sentence; {s}, {s2}, {s3}, {n}, {n2}, {t}, {d} and {holders} stand for what the methods fill in.
func Say(form string) Message { return Message{form: form} }

// verbatim is a sentence that was made already.
func Verbatim(text string) Message { return Message{form: "{s}", s: [3]string{text}} }

func (s Message) With(words ...string) Message {
	copy(s.s[:], words)
	return s
}

func (s Message) Count(n ...int) Message {
	copy(s.n[:], n)
	return s
}

func (s Message) At(t time.Time) Message {
	s.t = t
	return s
}

func (s Message) Lasting(d time.Duration) Message {
	s.d = d
	return s
}

// over is when what a sentence says may be over, by the clock alone.
func (s Message) Over(t time.Time) Message {
	s.until = t
	return s
}

// naming is a sentence that differs only if it names something else: nothing in it is counted or measured.
func (s Message) Naming() Message {
	s.names = true
	return s
}

// ages reports whether something else may be true while the same is waited for: what is counted, who is named beside
// others, and what was seen.
func (s Message) ages() bool {
	return !s.names && (s.aged || s.form == "{s}" || strings.Contains(s.form, "{n}") || strings.Contains(s.form, "{holders}"))
}

// mark is the sentence on a Node, where it stands for as long as the reason does. One that ages says of which moment
// it is, since it isn't written again: it is never false, and the plan says what is true now.
func (s Message) Mark(r Reason, now time.Time) *marker.Waiting {
	if !s.ages() {
		return &marker.Waiting{Reason: string(r), Message: marker.Clip(s.String(), marker.MaxMessage)}
	}
	when := " (at " + Clock(now) + ")"
	return &marker.Waiting{Reason: string(r), Message: marker.Clip(s.String(), marker.MaxMessage-len(when)) + when}
}

// aging is a sentence that names what may be over while the same is waited for.
func (s Message) Aging() Message {
	s.aged = true
	return s
}

// after puts words before a sentence, in which {v} stands for v.
func (s Message) After(words, v string) Message {
	s.lead, s.v = words, v
	return s
}

func (s Message) String() string {
	var b strings.Builder
	s.write(&b, s.lead)
	s.write(&b, s.form)
	return b.String()
}

func (s Message) write(b *strings.Builder, form string) {
	for {
		before, rest, found := strings.Cut(form, "{")
		b.WriteString(before)
		if !found {
			return
		}
		name, after, _ := strings.Cut(rest, "}")
		b.WriteString(s.fill(name))
		form = after
	}
}

func (s Message) fill(name string) string {
	switch name {
	case "v":
		return s.v
	case "s":
		return s.s[0]
	case "s2":
		return s.s[1]
	case "s3":
		return s.s[2]
	case "n":
		return strconv.Itoa(s.n[0])
	case "n2":
		return strconv.Itoa(s.n[1])
	case "t":
		return Clock(s.t)
	case "d":
		return s.d.String()
	case "holders":
		return s.holders.String()
	}
	return "{" + name + "}"
}

// MarshalText is the sentence, for JSON.
func (s Message) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText takes a sentence that was made already, for who reads a plan in JSON.
func (s *Message) UnmarshalText(text []byte) error {
	*s = Verbatim(string(text))
	return nil
}

// Clock is a moment for people.
func Clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 MST") }

// Exact reports whether it differs from one moment to the next only if it names something else.
func (s Message) Exact() bool { return s.names }

// Until is when what it says may be over, by the clock alone; zero if the clock alone ends nothing.
func (s Message) Until() time.Time { return s.until }

// Holding fills in {holders}.
func (s Message) Holding(holders fmt.Stringer) Message {
	s.holders = holders
	return s
}

// Staged begins what is said of a node that could be cordoned, and isn't.
const Staged = "staged; "
