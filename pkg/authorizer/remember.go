package authorizer

import (
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

// remembered is the last review of one token.
type remembered struct {
	mu   sync.Mutex
	last *review
	at   time.Time
}

func newRemembered() *remembered { return &remembered{} }

// get returns the last review if it still stands, and if it was a good one, however old.
func (m *remembered) get(now time.Time) (last *review, good bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last == nil {
		return nil, false
	}
	if age := now.Sub(m.at); age >= 0 && age < reviewFor {
		last = m.last
	}
	return last, m.last.refusal == nil
}

// put remembers a review that was asked for at some time; an older one changes nothing.
func (m *remembered) put(v review, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last == nil || !at.Before(m.at) {
		m.last, m.at = &v, at
	}
}
