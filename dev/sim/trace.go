package sim

import (
	"fmt"
	"io"
	"time"
)

// trace is what happened, kept as it was said and put into words only if it is printed.
type trace struct {
	begun time.Time
	lines []line
}

type line struct {
	at     time.Time
	actor  string
	format string
	args   []any
}

func (t *trace) add(at time.Time, actor, format string, args ...any) {
	t.lines = append(t.lines, line{at, actor, format, args})
}

// print writes the last n lines, all if n is 0.
func (t *trace) print(w io.Writer, n int) {
	lines := t.lines
	if n > 0 && len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	for _, l := range lines {
		d := l.at.Sub(t.begun)
		fmt.Fprintf(w, "%02d:%02d:%02d.%03d %-14s %s\n", int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60,
			d.Milliseconds()%1000, l.actor, fmt.Sprintf(l.format, l.args...))
	}
}
