package authorizer

import (
	"crypto/sha256"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
)

const (
	// maxEntries limits each cache, since any client can add entries.
	maxEntries = 8192
	keptFor    = time.Hour
)

// lruMap makes values on demand, and forgets those that were not used for the longest time.
type lruMap[K comparable, V any] struct {
	make func() V

	mu  sync.Mutex
	lru *cache.LRUExpireCache
}

func newLRUMap[K comparable, V any](make func() V) *lruMap[K, V] {
	return &lruMap[K, V]{make: make, lru: cache.NewLRUExpireCache(maxEntries)}
}

// get returns the key's value, a new one if there is none.
func (m *lruMap[K, V]) get(key K) V {
	m.mu.Lock()
	defer m.mu.Unlock()
	found, _ := m.lru.Get(key)
	v, ok := found.(V)
	if !ok {
		v = m.make()
	}
	m.lru.Add(key, v, keptFor)
	return v
}

// reviews are the last reviews of tokens. Good ones are kept apart, so that bad ones can't push them out.
type reviews struct{ good, bad *cache.LRUExpireCache }

// dated is a review with the time of its request.
type dated struct {
	review
	at time.Time
}

func newReviews() *reviews {
	return &reviews{good: cache.NewLRUExpireCache(maxEntries), bad: cache.NewLRUExpireCache(maxEntries)}
}

// get returns the last review if it is still valid, and whether it was good, however old.
func (r *reviews) get(hash [sha256.Size]byte, now time.Time) (last *review, good bool) {
	found, good := r.good.Get(hash)
	if !good {
		found, _ = r.bad.Get(hash)
	}
	if d, ok := found.(dated); ok {
		if age := now.Sub(d.at); age >= 0 && age < reviewFor {
			last = &d.review
		}
	}
	return last, good
}

// put remembers a review with the time of its request.
func (r *reviews) put(hash [sha256.Size]byte, v review, at time.Time) {
	if v.refusal != nil {
		r.good.Remove(hash)
		r.bad.Add(hash, dated{v, at}, reviewFor)
		return
	}
	r.good.Add(hash, dated{v, at}, keptFor)
	r.bad.Remove(hash)
}
