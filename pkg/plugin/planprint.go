package plugin

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// printPlan prints a plan as text: what holds for all, then what starts, then what waits.
func printPlan(p *plan.Plan, out io.Writer, wide bool) error {
	fmt.Fprintf(out, "Plan of %s by %s\n", moment(p.Time), line(p.Policy))
	printLines(out, append(p.Counts(), p.Troubles()...))
	for _, part := range []func(*plan.Plan, *table, bool){printBudgets, printGroups, printStarts, printWaits} {
		fmt.Fprintln(out)
		t := newTable(out)
		part(p, t, wide)
		if err := t.w.Flush(); err != nil {
			return err
		}
	}
	return nil
}

func printBudgets(p *plan.Plan, t *table, _ bool) {
	t.row("BUDGET", "USED", "LIMIT", "BY-OTHERS")
	for _, b := range p.Budgets {
		limit := b.Rule
		if n := strconv.Itoa(b.Limit); strings.HasSuffix(limit, "%") {
			limit = n + " (" + limit + ")"
		}
		t.row(b.Of, strconv.Itoa(b.Used), limit, strconv.Itoa(b.ByOthers))
	}
}

func printGroups(p *plan.Plan, t *table, _ bool) {
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
		when := window(&g.Window, p.Time)
		if g.Paused != nil {
			when = "paused: " + *g.Paused + "; " + when
		}
		t.row(g.Name, strconv.Itoa(g.Nodes), strconv.Itoa(g.UpToDate), strconv.Itoa(g.Starting), strconv.Itoa(g.InProgress), strconv.Itoa(g.Waiting), after, when)
	}
}

// window says when a group may go.
func window(w *plan.Window, now time.Time) string {
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

func printStarts(p *plan.Plan, t *table, wide bool) {
	nodes := make(map[string]*plan.Decision, len(p.Nodes))
	for i := range p.Nodes {
		nodes[p.Nodes[i].Node] = &p.Nodes[i]
	}
	order := 0
	for _, s := range p.Steps {
		if !s.Starts() {
			continue
		}
		if order++; order == 1 {
			header := []string{"ORDER", "STARTS-NOW", "GROUP", "ACT", "VERSION", "TARGET"}
			if wide {
				header = append(header, "REASON")
			}
			t.row(append(header, "MESSAGE")...)
		}
		// The node of a slot that is freed may be gone.
		d := nodes[s.Node]
		if d == nil {
			d = &plan.Decision{}
		}
		row := []string{strconv.Itoa(order), s.Node, d.Group, string(s.Act), marker.ShortVersion(d.Version), marker.ShortVersion(d.Target)}
		if wide {
			row = append(row, string(s.Reason))
		}
		t.row(append(row, s.Message)...)
	}
	if order == 0 {
		t.row("Nothing would start now.")
	}
}

func printWaits(p *plan.Plan, t *table, wide bool) {
	waits := false
	for i := range p.Nodes {
		d := &p.Nodes[i]
		if d.Starts() {
			continue
		}
		if !waits {
			waits = true
			header := []string{"WAITS", "GROUP", "PHASE"}
			if wide {
				header = append(header, "VERSION", "TARGET")
			}
			t.row(append(header, "NOT-BEFORE", "REASON", "MESSAGE")...)
		}
		row := []string{d.Node, d.Group, string(d.Phase)}
		if wide {
			row = append(row, marker.ShortVersion(d.Version), marker.ShortVersion(d.Target))
		}
		t.row(append(row, coming(p.Time, d.NotBefore), string(d.Reason), d.Message.String())...)
	}
	if !waits {
		t.row("No node waits.")
	}
}
