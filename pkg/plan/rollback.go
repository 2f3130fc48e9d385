package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// Before returns the version that a node ran before the one that it runs, by its history; empty if that doesn't tell.
func Before(n *fleet.Node) string {
	h := n.Marks.History
	updated := func(a marker.Attempt) bool {
		return a.Outcome == marker.OutcomeUpdated && marker.ValidVersion(a.Version)
	}
	for i := len(h) - 1; i >= 0; i-- {
		if !updated(h[i]) || h[i].Version != n.OSVersion {
			continue
		}
		if marker.ValidVersion(h[i].From) {
			return h[i].From
		}
		// An older controller told only where each attempt went.
		for j := i - 1; j >= 0; j-- {
			if updated(h[j]) && h[j].Version != n.OSVersion {
				return h[j].Version
			}
		}
		return ""
	}
	return ""
}

// RollbackOf returns the version to which a rollback of these nodes goes: the one that each of them ran before, or
// still runs. Of a node that came with what it runs no other is known, and it goes along. Where the nodes don't agree,
// the error says what each would go to.
func RollbackOf(nodes []*fleet.Node) (string, error) {
	before := map[string][]string{}
	for _, n := range nodes {
		if v := Before(n); v != "" {
			before[v] = append(before[v], n.Name)
		}
	}
	var all []string
	for v := range before {
		agreed := true
		for _, n := range nodes {
			was := Before(n)
			agreed = agreed && (was == "" || was == v || n.OSVersion == v)
		}
		if agreed {
			all = append(all, v)
		}
	}
	switch {
	case len(before) == 0:
		return "", errors.Errorf("of none of %s is known which version it ran before: give one with --to", count(len(nodes), "node", "nodes"))
	case len(all) == 1:
		return all[0], nil
	}
	var each []string
	for v, names := range before {
		slices.Sort(names)
		before[v] = names
		each = append(each, v)
	}
	slices.SortFunc(each, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(before[b]), len(before[a])), marker.CompareVersions(b, a), cmp.Compare(a, b))
	})
	for i, v := range each {
		each[i] = fmt.Sprintf("%s on %s", v, Some(before[v]))
	}
	return "", errors.Errorf("the nodes don't agree on which version ran before (%s): give one with --to", strings.Join(each, ", "))
}

// maxNamed is how many nodes are named in a line.
const maxNamed = 5

// Some returns the first of some names, and how many more there are.
func Some(names []string) string {
	if len(names) <= maxNamed {
		return strings.Join(names, " ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], " "), len(names)-maxNamed)
}
