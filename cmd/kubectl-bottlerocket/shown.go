package main

import (
	"io"
	"reflect"
	"slices"

	"k8s.io/cli-runtime/pkg/printers"
)

// shown is what a watch has printed.
type shown struct {
	*plugin
	o       *statusOptions
	before  map[string]Status
	told    map[string]bool
	table   *table
	printer printers.ResourcePrinter
}

// changes prints the nodes that look different than when they were printed last.
func (s *shown) changes(l *planned) error {
	if s.table == nil {
		s.table, s.printer = newTable(s.Out), s.o.printer()
		if s.printer == nil {
			s.table.row(s.o.header()...)
		}
	}
	s.news(l)
	seen := make(map[string]bool, len(l.outcome.Nodes))
	for i := range l.outcome.Nodes {
		standing := &l.outcome.Nodes[i]
		n := l.nodes[standing.Node]
		if n == nil || !s.o.wants(n) {
			continue
		}
		seen[n.Name] = true
		now := l.status(n, standing)
		if was, printed := s.before[n.Name]; printed && alike(was, now) {
			continue
		}
		if err := s.print(l, now); err != nil {
			return err
		}
	}
	var left []string
	for name := range s.before {
		if !seen[name] {
			left = append(left, name)
		}
	}
	slices.Sort(left)
	for _, name := range left {
		if err := s.print(l, Status{printed: kind("Status"), Node: name, Phase: gone, WaitingFor: WaitingFor{Reason: gone, Message: "not in the operator's care any more"}}); err != nil {
			return err
		}
		delete(s.before, name)
	}
	return s.table.w.Flush()
}

// news prints what holds for all nodes and wasn't so at the last look.
func (s *shown) news(l *planned) {
	told := map[string]bool{}
	for _, news := range []struct {
		lines []string
		print func(io.Writer, []string)
	}{{l.notes, warn}, {l.outcome.Troubles(), tell}} {
		news.print(s.ErrOut, slices.DeleteFunc(slices.Clone(news.lines), func(line string) bool { return s.told[line] }))
		for _, line := range news.lines {
			told[line] = true
		}
	}
	s.told = told
}

// alike tells if nothing has changed but the words of a reason: who else holds the last place is no news of a
// thousand nodes that wait for it.
func alike(a, b Status) bool {
	a.WaitingFor.Message, b.WaitingFor.Message = "", ""
	return reflect.DeepEqual(a, b)
}

func (s *shown) print(l *planned, node Status) error {
	s.before[node.Node] = node
	if s.printer != nil {
		return s.printer.PrintObj(&node, s.Out)
	}
	s.table.row(s.o.row(l.now, &node)...)
	return nil
}
