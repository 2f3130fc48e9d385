package drain

import (
	"sync"
	"time"
)

// memory has the time at which each key was noted last, and forgets keys that were not noted for a span. The zero value
// is empty.
type memory[K comparable] struct {
	mu    sync.Mutex
	noted map[K]time.Time
	swept time.Time
}

// last returns when the key was noted last; zero if it isn't known.
func (m *memory[K]) last(k K) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.noted[k]
}

func (m *memory[K]) note(k K, now time.Time, span time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.noted == nil {
		m.noted = map[K]time.Time{}
	}
	if now.Sub(m.swept) >= span {
		for k, at := range m.noted {
			if now.Sub(at) >= span {
				delete(m.noted, k)
			}
		}
		m.swept = now
	}
	m.noted[k] = now
}

func (m *memory[K]) forget(k K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.noted, k)
}
