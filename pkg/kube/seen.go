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

// seenKey holds a JSON object: each version that enough nodes of this cluster have run or were offered, with the time
// when that was so first. It outlives every process, so that a minimum age does.
const seenKey = "versions"

// maxSeen is how many versions are kept: those that some node names, and of the others the latest ones.
const maxSeen = 200

func firstSeen(value string) map[string]time.Time {
	known := map[string]time.Time{}
	if json.Unmarshal([]byte(value), &known) != nil || known == nil {
		return map[string]time.Time{}
	}
	return known
}

// RecordVersions notes versions that were not known before, by compare-and-swap. Where that makes too many, those that
// are not among the named ones are forgotten first.
func (k *Cluster) RecordVersions(ctx context.Context, saw, named []string, now time.Time) error {
	return k.slots.record(ctx, "recording versions", seenKey, func(stands string) (string, error) {
		known := firstSeen(stands)
		for _, v := range saw {
			if _, ok := known[v]; !ok {
				known[v] = now.UTC().Truncate(time.Second)
			}
		}
		forget(known, named)
		value, err := json.Marshal(known)
		return string(value), errors.Wrap(err, "encoding versions")
	})
}

// forget drops the versions that have been known for longest, those that no node names first.
func forget(known map[string]time.Time, named []string) {
	if len(known) <= maxSeen {
		return
	}
	rank := map[string]int{}
	for _, v := range named {
		rank[v] = 1
	}
	oldest := slices.SortedFunc(maps.Keys(known), func(a, b string) int {
		return cmp.Or(rank[a]-rank[b], known[a].Compare(known[b]), cmp.Compare(a, b))
	})
	for _, v := range oldest[:len(known)-maxSeen] {
		delete(known, v)
	}
}
