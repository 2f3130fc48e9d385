package chaos

import (
	"maps"
	"slices"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// writers: every key has one writer. The controller may take away any of them.
func writers(s *story) {
	for _, st := range s.nodes.all() {
		if st.hole() || st.first {
			continue
		}
		for _, k := range changed(st) {
			s.check(mayWrite(st, k), st.node, st.at, "%s wrote %s", st.by, k)
		}
	}
}

// changed are the annotations that a step set to another value or took away.
func changed(st step) []string {
	var keys []string
	for _, side := range []map[string]string{st.before.annotations, st.after.annotations} {
		for k := range side {
			b, had := st.before.annotations[k]
			a, has := st.after.annotations[k]
			if (had != has || a != b) && !slices.Contains(keys, k) {
				keys = append(keys, k)
			}
		}
	}
	slices.Sort(keys)
	return keys
}

func mayWrite(st step, key string) bool {
	_, stays := st.after.annotations[key]
	switch {
	case marker.Owns(marker.WriterController, key):
		return st.by == controllerAccount
	case marker.Owns(marker.WriterAgent, key):
		return st.by == proxyAccount || st.by == controllerAccount && !stays
	}
	return !isOperator(st.by) || st.by == controllerAccount && !stays && (key == string(marker.KeyRetry) || key == string(marker.KeyCycle))
}

func sortedNodes(h nodeHistory) []string { return slices.Sorted(maps.Keys(h)) }
