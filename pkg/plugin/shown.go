package plugin

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"k8s.io/cli-runtime/pkg/printers"
)

// shown is what a watch has printed.
type shown struct {
	*plugin
	o       *statusOptions
	before  map[string]Status
	printed []string
	table   *table
	printer printers.ResourcePrinter
}

// changes prints the nodes that look different than when they were printed last.
func (s *shown) changes(fleet *snapshot) error {
	if s.table == nil {
		s.table, s.printer = newTable(s.Out), s.o.printer()
		if s.printer == nil {
			s.table.row(s.o.header()...)
		}
	}
	s.news(fleet.notes)
	here := map[string]bool{}
	for i := range fleet.nodes {
		n := &fleet.nodes[i]
		if !cared(n) || !s.o.wants(n) {
			continue
		}
		here[n.Name] = true
		now := fleet.status(n)
		if was, printed := s.before[n.Name]; printed && reflect.DeepEqual(was, now) {
			continue
		}
		if err := s.print(fleet.now, now); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.before)) {
		if here[name] {
			continue
		}
		left := Status{printed: kind("Status"), Node: name, Phase: gone, WaitingFor: WaitingFor{Reason: gone, Message: "not in the operator's care any more"}}
		if err := s.print(fleet.now, left); err != nil {
			return err
		}
		delete(s.before, name)
	}
	return s.table.w.Flush()
}

// news prints what wasn't so at the last look.
func (s *shown) news(notes []string) {
	warn(s.ErrOut, slices.DeleteFunc(slices.Clone(notes), func(note string) bool { return slices.Contains(s.printed, note) }))
	s.printed = notes
}

func (s *shown) print(now time.Time, node Status) error {
	s.before[node.Node] = node
	if s.printer != nil {
		return s.printer.PrintObj(&node, s.Out)
	}
	s.table.row(s.o.row(now, &node)...)
	return nil
}
