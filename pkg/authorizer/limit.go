package authorizer

import (
	"golang.org/x/time/rate"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/authorizer/rule"
)

const (
	// An idle agent sends a request every few minutes, a busy one a few per second.
	requestsPerSecond = 5
	requestBurst      = 30
	// inFlight is how many requests of one agent are served at once, its watch included.
	inFlight = 8
)

// limit limits one agent's requests, so that an agent in a tight loop does no harm to others.
type limit struct {
	rate *rate.Limiter
	open chan struct{}
}

func newLimit() *limit {
	return &limit{rate: rate.NewLimiter(requestsPerSecond, requestBurst), open: make(chan struct{}, inFlight)}
}

// enter begins a request. It returns the function that ends it, or a refusal if there are too many.
func (l *limit) enter() (leave func(), refusal *Refusal) {
	if !l.rate.Allow() {
		return nil, rule.Refuse(rule.ReasonTooMany, "this agent sends more than %d requests per second", requestsPerSecond)
	}
	select {
	case l.open <- struct{}{}:
		return func() { <-l.open }, nil
	default:
		return nil, rule.Refuse(rule.ReasonTooMany, "this agent has %d requests open", inFlight)
	}
}
