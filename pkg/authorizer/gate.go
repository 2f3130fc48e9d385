package authorizer

import (
	"context"
	"sync"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/authorizer/rule"
)

const (
	// badTokensPerSecond and badTokenBurst limit the reviews of tokens that may be made up, for one address and for all
	// together. Only those that turn out bad count.
	badTokensPerSecond, badTokenBurst       = 1, 20
	allBadTokensPerSecond, allBadTokenBurst = 50, 100
	// podReviewsPerSecond and podReviewBurst limit the reviews of tokens with a good signature for one pod, good or not.
	// An agent needs at most half of that: one in reviewFor, and one for each hour's new token. Its watch's reviews don't
	// count.
	podReviewsPerSecond, podReviewBurst = 0.2, 10
	// madeUpAtOnce and signedAtOnce are how many reviews run at once: of tokens that may be made up, and of those that
	// were good before or have a good signature. The latter also limits how fast agents that connect together send their
	// requests: with 64, an API server refused some of 500 as too many; with 16, none.
	madeUpAtOnce = 32
	signedAtOnce = 16
)

// gate limits the reviews of tokens that may be made up. A review counts before it is requested, so that a client which
// disconnects early saves nothing.
type gate struct {
	byAddress *lruMap[string, *allowance]
	all       *allowance
	open      chan struct{}
}

func newGate(now func() time.Time) *gate {
	return &gate{
		byAddress: newLRUMap[string](func() *allowance { return newAllowance(badTokensPerSecond, badTokenBurst, now) }),
		all:       newAllowance(allBadTokensPerSecond, allBadTokenBurst, now),
		open:      make(chan struct{}, madeUpAtOnce),
	}
}

// enter counts a review, waits until it may run, and returns the function that ends it. A good one no longer counts
// then.
func (g *gate) enter(ctx context.Context, address string) (leave func(good bool), refusal *Refusal) {
	own := g.byAddress.get(address)
	if !own.take() {
		return nil, rule.Refuse(rule.ReasonTooMany, "too many tokens from this address were not valid: try again later")
	}
	if !g.all.take() {
		own.restore()
		return nil, rule.Refuse(rule.ReasonTooMany, "too many tokens were not valid: try again later")
	}
	select {
	case g.open <- struct{}{}:
	case <-ctx.Done():
		return nil, rule.Refuse(rule.ReasonTooMany, "too many tokens are being reviewed: try again later")
	}
	return func(good bool) {
		<-g.open
		if good {
			own.restore()
			g.all.restore()
		}
	}, nil
}

// allowance is a token bucket that gets back what turned out not to count.
type allowance struct {
	perSecond, burst float64
	now              func() time.Time

	mu   sync.Mutex
	left float64
	at   time.Time
}

func newAllowance(perSecond, burst float64, now func() time.Time) *allowance {
	return &allowance{perSecond: perSecond, burst: burst, now: now, left: burst, at: now()}
}

// take reports whether there was one left, which it takes.
func (a *allowance) take() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	// A clock that was set back adds nothing.
	a.left = min(a.burst, a.left+max(0, now.Sub(a.at).Seconds())*a.perSecond)
	a.at = now
	if a.left < 1 {
		return false
	}
	a.left--
	return true
}

func (a *allowance) restore() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.left = min(a.burst, a.left+1)
}
