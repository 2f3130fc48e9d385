package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// print is the plan for people: what holds for all, then what starts, then who waits.
func (p *Plan) print(out io.Writer, wide bool) error {
	fmt.Fprintf(out, "Plan of %s by %s\n", moment(p.Time), line(p.Policy))
	tell(out, append(p.counts, p.troubles...))
	var parts []func(*table, bool)
	if len(p.Budgets) > 0 {
		parts = append(parts, p.budgets)
	}
	if len(p.Groups) > 0 {
		parts = append(parts, p.waves)
	}
	for _, part := range append(parts, p.starts, p.waits) {
		fmt.Fprintln(out)
		t := newTable(out)
		part(t, wide)
		if err := t.w.Flush(); err != nil {
			return err
		}
	}
	return nil
}

func (p *Plan) budgets(t *table, _ bool) {
	t.row("BUDGET", "USED", "LIMIT", "BY-OTHERS")
	for _, b := range p.Budgets {
		limit := b.Rule
		if n := strconv.Itoa(b.Limit); strings.HasSuffix(limit, "%") {
			limit = n + " (" + limit + ")"
		}
		t.row(b.Of, strconv.Itoa(b.Used), limit, strconv.Itoa(b.Others))
	}
}

func (p *Plan) waves(t *table, _ bool) {
	t.row("GROUP", "NODES", "UP-TO-DATE", "STARTING", "IN-PROGRESS", "WAITING", "AFTER", "WINDOW")
	for i := range p.Groups {
		g := &p.Groups[i]
		if g.Name == "" && g.Nodes == 0 && len(p.Groups) > 1 {
			continue
		}
		after := strings.Join(g.After, ",")
		if g.AfterSoak > 0 {
			after += " for " + g.AfterSoak.String()
		}
		t.row(g.Name, strconv.Itoa(g.Nodes), strconv.Itoa(g.UpToDate), strconv.Itoa(g.Starting), strconv.Itoa(g.InProgress), strconv.Itoa(g.Waiting),
			after, g.when(p.Time))
	}
}

// when says when a group may go.
func (g *Wave) when(now time.Time) string {
	said := g.Window.when(now)
	if g.Paused != nil {
		said = "paused: " + *g.Paused + "; " + said
	}
	return said
}

func (w *Window) when(now time.Time) string {
	var said string
	switch {
	case w.Open && w.Closes.IsZero():
		return "always open"
	case w.Open:
		said = "closes " + coming(now, w.Closes)
		if !w.Opens.IsZero() {
			said += ", opens again " + moment(w.Opens)
		}
		return said
	case w.Frozen != nil:
		said = "frozen: " + *w.Frozen + "; "
	}
	if w.Opens.IsZero() {
		return said + "does not open again in years"
	}
	said += "opens " + coming(now, w.Opens)
	if !w.Closes.IsZero() {
		said += ", closes " + moment(w.Closes)
	}
	return said
}

func (p *Plan) starts(t *table, wide bool) {
	if len(p.Starts) == 0 {
		t.row("Nothing would start now.")
		return
	}
	header := []string{"ORDER", "STARTS-NOW", "GROUP", "ACT", "VERSION", "TARGET"}
	if wide {
		header = append(header, "REASON")
	}
	t.row(append(header, "MESSAGE")...)
	for i, s := range p.Starts {
		row := []string{strconv.Itoa(i + 1), s.Node, s.Group, string(s.Act), s.Version, s.Target}
		if wide {
			row = append(row, string(s.Reason))
		}
		t.row(append(row, s.Message)...)
	}
}

func (p *Plan) waits(t *table, wide bool) {
	if len(p.Waits) == 0 {
		t.row("No node waits.")
		return
	}
	header := []string{"WAITS", "GROUP", "PHASE"}
	if wide {
		header = append(header, "VERSION", "TARGET")
	}
	t.row(append(header, "NOT-BEFORE", "REASON", "MESSAGE")...)
	for _, w := range p.Waits {
		row := []string{w.Node, w.Group, string(w.Phase)}
		if wide {
			row = append(row, w.Version, w.Target)
		}
		t.row(append(row, coming(p.Time, w.NotBefore), string(w.Reason), w.Message)...)
	}
}
