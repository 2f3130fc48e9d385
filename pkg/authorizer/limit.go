package authorizer

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/util/cache"
)

const (
	// An agent at rest sends a request in minutes, a busy one a few in a second.
	requestsPerSecond = 5
	requestBurst      = 30
	// inFlight is how many requests of one agent are served at once, its watch among them.
	inFlight = 8
	// limitsKept bounds how many agents are kept in mind.
	limitsKept = 8192
)

// limits keep one agent in a tight loop from hurting the others.
type limits struct {
	mu   sync.Mutex
	kept *cache.LRUExpireCache
}

type limit struct {
	rate *rate.Limiter
	open chan struct{}
}

func newLimits() *limits { return &limits{kept: cache.NewLRUExpireCache(limitsKept)} }

// enter returns how to leave, or false if this agent has to wait.
func (l *limits) enter(who string) (leave func(), ok bool) {
	l.mu.Lock()
	var mine *limit
	if v, found := l.kept.Get(who); found {
		mine, _ = v.(*limit)
	}
	if mine == nil {
		mine = &limit{rate: rate.NewLimiter(requestsPerSecond, requestBurst), open: make(chan struct{}, inFlight)}
	}
	l.kept.Add(who, mine, time.Hour)
	l.mu.Unlock()
	if !mine.rate.Allow() {
		return nil, false
	}
	select {
	case mine.open <- struct{}{}:
		return func() { <-mine.open }, true
	default:
		return nil, false
	}
}
