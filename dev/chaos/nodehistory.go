package chaos

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// nodeState is one node at one resourceVersion.
type nodeState struct {
	version       uint64
	uid           string
	annotations   map[string]string
	unschedulable bool
	bootID        string
	os            string
	ready         bool
	readySince    string
}

func (s nodeState) mark(k marker.Key) string { return s.annotations[string(k)] }

// marks are read as the operator reads them; the problems are the judge's to see elsewhere.
func (s nodeState) marks() marker.Marks {
	m, _ := marker.Decode(s.annotations)
	return m
}

// disrupted reports whether the operator has the node out of service.
func (s nodeState) disrupted() bool { return s.mark(marker.KeyDisruption) != "" }

// step is one change of a node.
type step struct {
	node string
	// by is the user; empty for a change that the log doesn't have, which is known by its effect.
	by string
	// at is when the request came in; for a hole, when its effect was seen.
	at            time.Time
	before, after nodeState
	first         bool
	patch         nodePatch
	entry         *Entry
}

func (s step) hole() bool { return s.by == "" }

// nodePatch is what a request asked to change, as far as promises go.
type nodePatch struct {
	Metadata struct {
		ResourceVersion string             `json:"resourceVersion"`
		Annotations     map[string]*string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		Unschedulable *bool `json:"unschedulable"`
	} `json:"spec"`
	// cordons: spec.unschedulable is in it, be it null.
	cordons bool
}

func parsePatch(raw []byte) nodePatch {
	var p nodePatch
	_ = json.Unmarshal(raw, &p)
	var fields struct {
		Spec map[string]json.RawMessage `json:"spec"`
	}
	_ = json.Unmarshal(raw, &fields)
	_, p.cordons = fields.Spec["unschedulable"]
	return p
}

// sighting is an answer that shows a node.
type sighting struct {
	entry *Entry
	state nodeState
	// whole: spec and status were in it.
	whole, write bool
}

// nodeHistory is what the log tells of all nodes: the steps of each in order.
type nodeHistory map[string][]step

// nodesOf puts the changes of nodes in the order in which the store took them.
func nodesOf(log Log) nodeHistory {
	seen := map[string][]sighting{}
	for _, e := range log.Entries {
		if e.Object.Resource != "nodes" || !e.succeeded() || len(e.Response) == 0 {
			continue
		}
		for name, s := range sightings(e) {
			seen[name] = append(seen[name], s)
		}
	}
	history := nodeHistory{}
	for name, list := range seen {
		slices.SortStableFunc(list, func(a, b sighting) int {
			return cmp.Or(cmp.Compare(a.state.version, b.state.version), -compareBool(a.write, b.write),
				a.entry.Answered.Compare(b.entry.Answered.Time))
		})
		history[name] = steps(name, list)
	}
	return history
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func sightings(e *Entry) map[string]sighting {
	if e.Verb == "list" {
		var list corev1.NodeList
		if json.Unmarshal(e.Response, &list) != nil || list.Kind != "NodeList" {
			return nil
		}
		out := map[string]sighting{}
		for i := range list.Items {
			out[list.Items[i].Name] = sighting{entry: e, state: stateOf(&list.Items[i]), whole: true}
		}
		return out
	}
	var n corev1.Node
	if json.Unmarshal(e.Response, &n) != nil || n.Name == "" || n.Kind != "Node" && n.Kind != "PartialObjectMetadata" {
		return nil
	}
	return map[string]sighting{n.Name: {entry: e, state: stateOf(&n), whole: n.Kind == "Node", write: e.writes()}}
}

func stateOf(n *corev1.Node) nodeState {
	s := nodeState{
		version: versionOf(n.ResourceVersion), uid: string(n.UID), annotations: map[string]string{},
		unschedulable: n.Spec.Unschedulable,
		bootID:        n.Status.NodeInfo.BootID, os: fleet.OSVersion(n.Status.NodeInfo.OSImage),
	}
	for k, v := range n.Annotations {
		if marker.Owns(marker.WriterController, k) || marker.Owns(marker.WriterAgent, k) || marker.Owns(marker.WriterUser, k) {
			s.annotations[k] = v
		}
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			s.ready, s.readySince = c.Status == corev1.ConditionTrue, c.LastTransitionTime.UTC().Format(time.RFC3339)
		}
	}
	return s
}

func steps(name string, list []sighting) []step {
	var out []step
	var now nodeState
	for _, s := range list {
		known := len(out) > 0
		if !s.whole {
			if !known {
				continue
			}
			s.state.unschedulable, s.state.bootID, s.state.os = now.unschedulable, now.bootID, now.os
			s.state.ready, s.state.readySince = now.ready, now.readySince
		}
		if !s.write {
			switch {
			case !known:
				out = append(out, step{node: name, by: s.entry.User.Username, at: s.entry.Answered.Time, before: s.state, after: s.state, first: true, entry: s.entry})
			case s.state.version > now.version:
				out = append(out, step{node: name, at: s.entry.Answered.Time, before: now, after: s.state, entry: s.entry})
			default:
				continue
			}
			now = s.state
			continue
		}
		st := step{node: name, by: s.entry.User.Username, at: s.entry.Received.Time, before: now, after: s.state,
			patch: parsePatch(s.entry.Request), entry: s.entry}
		if !known {
			st.before, st.first = s.state, true
		} else if lost, ok := hidden(st, s.whole); ok {
			out = append(out, step{node: name, at: s.entry.Received.Time, before: now, after: lost, entry: s.entry})
			st.before = lost
		}
		out = append(out, st)
		now = s.state
	}
	return out
}

// hidden returns what the node looked like right before a write, if that is not what the log knew of it.
func hidden(s step, whole bool) (nodeState, bool) {
	made := versionOf(s.patch.Metadata.ResourceVersion)
	was := s.after
	was.annotations = maps.Clone(s.after.annotations)
	for k := range s.patch.Metadata.Annotations {
		delete(was.annotations, k)
		if v, ok := s.before.annotations[k]; ok {
			was.annotations[k] = v
		}
	}
	if s.patch.cordons || !whole {
		was.unschedulable = s.before.unschedulable
	}
	was.version = max(made, s.before.version)
	if was.version == 0 || s.after.version == s.before.version {
		return nodeState{}, false
	}
	differs := !maps.Equal(was.annotations, s.before.annotations) || was.unschedulable != s.before.unschedulable
	if made > s.before.version || made == 0 && differs {
		if s.entry.Object.Subresource == "status" {
			was.bootID, was.os, was.ready, was.readySince = s.before.bootID, s.before.os, s.before.ready, s.before.readySince
		}
		return was, true
	}
	return nodeState{}, false
}

// all are the steps of all nodes in the order of the store.
func (h nodeHistory) all() []step {
	var out []step
	for _, name := range slices.Sorted(maps.Keys(h)) {
		out = append(out, h[name]...)
	}
	slices.SortStableFunc(out, func(a, b step) int { return cmp.Compare(a.after.version, b.after.version) })
	return out
}

// inHandsAt reports whether a node was out of service at a version of the store. Where a hole hides when that
// changed, it was not.
func (h nodeHistory) inHandsAt(node string, version uint64) (nodeState, bool) {
	list := h[node]
	var at nodeState
	for i, s := range list {
		if s.after.version > version {
			if s.hole() && !s.after.disrupted() {
				return at, false
			}
			break
		}
		at = list[i].after
	}
	return at, at.disrupted()
}

// last is the state in which the log leaves a node.
func (h nodeHistory) last(node string) nodeState { return h[node][len(h[node])-1].after }
