package authorizer

import (
	"context"
	"sync"
	"time"
)

const (
	// badTokensPerSecond and badTokenBurst are how many tokens that turn out no good are reviewed for one address,
	// and for all together, of those that anybody could have made up. One that is good costs nothing in the end.
	badTokensPerSecond, badTokenBurst       = 1, 20
	allBadTokensPerSecond, allBadTokenBurst = 50, 100
	// podReviewsPerSecond and podReviewBurst are how many reviews one pod has of tokens that the API server made, good or
	// not. An agent needs half of that at most: one in reviewFor, and another one for the new token of each hour. What
	// its watch asks for isn't counted.
	podReviewsPerSecond, podReviewBurst = 0.2, 10
	// madeUpAtOnce and signedAtOnce are how many reviews are under way at once: of tokens that may be made up, and of
	// those that were good before or have a good signature. The latter also sets the pace at which agents that come
	// together go on to their requests: with 64, an API server refused some of 500 for their number, with 16 none.
	madeUpAtOnce = 32
	signedAtOnce = 16
)

// gate keeps strangers from making the API server review tokens without end. A review is paid for before it is asked
// for: to go away spares nothing.
type gate struct {
	byAddress *kept[string, *allowance]
	all       *allowance
	open      chan struct{}
}

func newGate(now func() time.Time) *gate {
	return &gate{
		byAddress: newKept[string](func() *allowance { return newAllowance(badTokensPerSecond, badTokenBurst, now) }),
		all:       newAllowance(allBadTokensPerSecond, allBadTokenBurst, now),
		open:      make(chan struct{}, madeUpAtOnce),
	}
}

// enter pays, waits for its turn, and returns how to leave; what was good is given back. So no more wait than have paid.
func (g *gate) enter(ctx context.Context, address string) (leave func(good bool), refusal *Refusal) {
	own := g.byAddress.of(address)
	if !own.take() {
		return nil, refuse(ReasonTooMany, "too many tokens from this address were no good")
	}
	if !g.all.take() {
		own.giveBack()
		return nil, refuse(ReasonTooMany, "too many tokens were no good")
	}
	select {
	case g.open <- struct{}{}:
	case <-ctx.Done():
		return nil, refuse(ReasonTooMany, "too many tokens are being reviewed")
	}
	return func(good bool) {
		<-g.open
		if good {
			own.giveBack()
			g.all.giveBack()
		}
	}, nil
}

// allowance is a number that grows with time up to a most.
type allowance struct {
	perSecond, most float64
	now             func() time.Time

	mu   sync.Mutex
	left float64
	at   time.Time
}

func newAllowance(perSecond, most float64, now func() time.Time) *allowance {
	return &allowance{perSecond: perSecond, most: most, now: now, left: most, at: now()}
}

// take takes one, or reports that there is none.
func (a *allowance) take() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	// A clock that was put back gives nothing.
	a.left = min(a.most, a.left+max(0, now.Sub(a.at).Seconds())*a.perSecond)
	a.at = now
	if a.left < 1 {
		return false
	}
	a.left--
	return true
}

func (a *allowance) giveBack() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.left = min(a.most, a.left+1)
}
