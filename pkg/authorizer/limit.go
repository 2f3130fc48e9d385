package authorizer

import (
	"context"

	"golang.org/x/time/rate"
)

const (
	// An agent at rest sends a request in minutes, a busy one a few in a second.
	requestsPerSecond = 5
	requestBurst      = 30
	// inFlight is how many requests of one agent are served at once, its watch among them.
	inFlight = 8

	// badTokensPerSecond and badTokenBurst are how many tokens that turn out no good are reviewed for one
	// address; good ones cost nothing. reviewsInFlight is how many are reviewed at once for it.
	badTokensPerSecond = 1
	badTokenBurst      = 20
	reviewsInFlight    = 16
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

// gate keeps strangers from making the API server review tokens without end.
type gate struct {
	bad  *rate.Limiter
	open chan struct{}
}

func newGate() *gate {
	return &gate{bad: rate.NewLimiter(badTokensPerSecond, badTokenBurst), open: make(chan struct{}, reviewsInFlight)}
}

// enter waits for its turn.
func (g *gate) enter(ctx context.Context) (leave func(), refusal *Refusal) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	select {
	case g.open <- struct{}{}:
	case <-ctx.Done():
		return nil, refuse(ReasonTooMany, "too many tokens from this address are being reviewed")
	}
	if g.bad.Tokens() < 1 {
		<-g.open
		return nil, refuse(ReasonTooMany, "too many tokens from this address were no good")
	}
	return func() { <-g.open }, nil
}

func (g *gate) failed() { g.bad.Allow() }
