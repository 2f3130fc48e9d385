package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/nodesim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// row is one node in the table.
type row struct {
	name, kubelet, phase, version, note string
}

func rows(list []corev1.Node) []row {
	var out []row
	for i := range list {
		n := &list[i]
		m, problems := marker.Decode(n.Annotations)
		r := row{name: n.Name, kubelet: "Ready", phase: string(intent.PhaseOf(m)), version: fleet.OSVersion(n.Status.NodeInfo.OSImage)}
		if fleet.InterfaceOf(n.Labels) == fleet.InterfacePlan {
			r.version = n.Status.NodeInfo.KubeletVersion
		}
		if len(problems) > 0 {
			r.phase, r.note = string(intent.PhaseUnreadable), problems[0].String()
		}
		if !nodesim.Ready(n) {
			r.kubelet = "NotReady"
		}
		if n.Spec.Unschedulable {
			r.kubelet += ",cordoned"
		}
		if m.Intent.Target != "" {
			r.version += " -> " + marker.ShortVersion(m.Intent.Target)
		}
		if m.Waiting != nil {
			r.note = m.Waiting.Message
		}
		out = append(out, r)
	}
	return out
}

// screen shows the fleet: a table that is drawn anew in its place on a terminal, a line for each change
// elsewhere.
type screen struct {
	out      io.Writer
	terminal bool
	drawn    int
	last     map[string]row
}

func newScreen(f *os.File) *screen {
	info, err := f.Stat()
	return &screen{out: f, terminal: err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb", last: map[string]row{}}
}

// line says something below what is drawn.
func (s *screen) line(format string, args ...any) {
	s.drawn = 0
	fmt.Fprintf(s.out, format+"\n", args...)
}

func (s *screen) table(now []row) {
	if s.terminal {
		s.draw(now)
		return
	}
	for _, r := range now {
		if s.last[r.name] != r {
			fmt.Fprintf(s.out, "  %-10s %-10s %-18s %-20s %s\n", r.name, r.phase, r.kubelet, r.version, r.note)
		}
		s.last[r.name] = r
	}
}

func (s *screen) draw(now []row) {
	var b strings.Builder
	if s.drawn > 0 {
		// Up to the first line of the table, which is then written over.
		fmt.Fprintf(&b, "\x1b[%dA", s.drawn)
	}
	var t strings.Builder
	w := tabwriter.NewWriter(&t, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "NODE\tPHASE\tKUBELET\tVERSION\tNOTE")
	for _, r := range now {
		note := r.note
		if len(note) > 60 {
			note = note[:57] + "..."
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.name, r.phase, r.kubelet, r.version, note)
	}
	_ = w.Flush()
	for line := range strings.Lines(t.String()) {
		b.WriteString("\x1b[2K" + line)
	}
	s.drawn = len(now) + 1
	fmt.Fprint(s.out, b.String())
}
