package chaos

import (
	"cmp"
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// slotState is the list of slot holders at one resourceVersion, by UID.
type slotState struct {
	version uint64
	holders map[string]string
	// from is the version that a write was made from; 0 for a read.
	from uint64
}

// slotHistory is what the log tells of the list of slots, in the order of the store.
type slotHistory []slotState

func slotsOf(log Log) slotHistory {
	var h slotHistory
	for _, e := range log.Entries {
		if e.resource() != "configmaps" || e.Object.Namespace != "bottlerocket" || !e.succeeded() {
			continue
		}
		var c corev1.ConfigMap
		if json.Unmarshal(e.Response, &c) != nil || c.Name != "update-state" {
			continue
		}
		s := slotState{version: versionOf(c.ResourceVersion), holders: map[string]string{}}
		if json.Unmarshal([]byte(c.Data["slots"]), &s.holders) != nil {
			continue
		}
		if e.writes() {
			s.from = versionOf(parsePatch(e.Request).Metadata.ResourceVersion)
		}
		h = append(h, s)
	}
	slices.SortStableFunc(h, func(a, b slotState) int { return cmp.Compare(a.version, b.version) })
	return h
}

// held reports whether a node held a slot at a version of the store. Where a hole hides when that changed, it
// did.
func (h slotHistory) held(uid string, version uint64) bool {
	held, last := false, uint64(0)
	for _, s := range h {
		if s.version > version {
			return held || s.from > last
		}
		_, held = s.holders[uid]
		last = s.version
	}
	return held
}
