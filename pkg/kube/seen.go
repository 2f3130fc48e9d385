package kube

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/pkg/errors"
)

// seenKey holds a JSON object: each version that a node of this cluster has run or was offered, with the time
// when the controller saw it first. It outlives every process, so that a minimum age does.
const seenKey = "versions"

// maxSeen is how many versions are kept, the latest ones.
const maxSeen = 200

func seen(value string) map[string]time.Time {
	known := map[string]time.Time{}
	if json.Unmarshal([]byte(value), &known) != nil || known == nil {
		return map[string]time.Time{}
	}
	return known
}

// RecordVersions notes versions that are seen for the first time, by compare-and-swap.
func (k *Cluster) RecordVersions(ctx context.Context, versions []string, now time.Time) error {
	return k.slots.record(ctx, "recording versions", seenKey, func(stands string) (string, error) {
		known := seen(stands)
		for _, v := range versions {
			if _, ok := known[v]; !ok {
				known[v] = now.UTC().Truncate(time.Second)
			}
		}
		forget(known)
		value, err := json.Marshal(known)
		return string(value), errors.Wrap(err, "encoding versions")
	})
}

// forget drops the versions that have been known for longest.
func forget(known map[string]time.Time) {
	if len(known) <= maxSeen {
		return
	}
	oldest := slices.SortedFunc(maps.Keys(known), func(a, b string) int {
		return cmp.Or(known[a].Compare(known[b]), cmp.Compare(a, b))
	})
	for _, v := range oldest[:len(known)-maxSeen] {
		delete(known, v)
	}
}
