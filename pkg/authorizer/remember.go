package authorizer

import (
	"crypto/sha256"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
)

const (
	// keptMost bounds what is kept in mind of agents and strangers, whoever comes.
	keptMost = 8192
	keptFor  = time.Hour
)

// kept makes values on demand, and forgets the longest unused ones.
type kept[K comparable, V any] struct {
	make func() V

	mu  sync.Mutex
	lru *cache.LRUExpireCache
}

func newKept[K comparable, V any](make func() V) *kept[K, V] {
	return &kept[K, V]{make: make, lru: cache.NewLRUExpireCache(keptMost)}
}

// of returns the key's value.
func (k *kept[K, V]) of(key K) V {
	k.mu.Lock()
	defer k.mu.Unlock()
	found, _ := k.lru.Get(key)
	v, ok := found.(V)
	if !ok {
		v = k.make()
	}
	k.lru.Add(key, v, keptFor)
	return v
}

// reviews are the last ones of tokens. Good ones are kept apart, so that no number of others pushes them out.
type reviews struct{ good, bad *cache.LRUExpireCache }

// dated is a review with when it was asked for.
type dated struct {
	review
	at time.Time
}

func newReviews() *reviews {
	return &reviews{good: cache.NewLRUExpireCache(keptMost), bad: cache.NewLRUExpireCache(keptMost)}
}

// get returns the last review if it still stands, and if it was a good one, however old.
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

// put remembers a review that was asked for at some time.
func (r *reviews) put(hash [sha256.Size]byte, v review, at time.Time) {
	if v.refusal != nil {
		r.good.Remove(hash)
		r.bad.Add(hash, dated{v, at}, reviewFor)
		return
	}
	r.good.Add(hash, dated{v, at}, keptFor)
	r.bad.Remove(hash)
}
