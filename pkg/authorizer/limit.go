package authorizer

import "golang.org/x/time/rate"

const (
	// An agent at rest sends a request in minutes, a busy one a few in a second.
	requestsPerSecond = 5
	requestBurst      = 30
	// inFlight is how many requests of one agent are served at once, its watch among them.
	inFlight = 8
)

// limit keeps one agent in a tight loop from hurting the others.
type limit struct {
	rate *rate.Limiter
	open chan struct{}
}

func newLimit() *limit {
	return &limit{rate: rate.NewLimiter(requestsPerSecond, requestBurst), open: make(chan struct{}, inFlight)}
}

// enter returns how to leave, or why this agent has to wait.
func (l *limit) enter() (leave func(), refusal *Refusal) {
	if !l.rate.Allow() {
		return nil, refuse(ReasonTooMany, "this agent sends more than %d requests a second", requestsPerSecond)
	}
	select {
	case l.open <- struct{}{}:
		return func() { <-l.open }, nil
	default:
		return nil, refuse(ReasonTooMany, "this agent has %d requests open", inFlight)
	}
}
