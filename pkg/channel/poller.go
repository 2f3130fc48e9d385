package channel

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

const (
	// timeout bounds one poll, from the look-up of the name to the last header.
	timeout = 10 * time.Second
	// maxHeader is far above the size of an answer's headers, in bytes.
	maxHeader = 64 << 10
	// maxAtOnce is how many channels are asked at the same time.
	maxAtOnce = 4
)

// Config is what a Poller works with.
type Config struct {
	// Transport carries the requests: NewTransport, but for tests.
	Transport http.RoundTripper
	// Now is the clock.
	Now func() time.Time
	// Random returns numbers of at least 0 and less than 1, as rand.Float64 does.
	Random func() float64
	// Changed is called when a version or a problem is another one than before, by one goroutine at a time. It must not
	// call Run. Nil: there is none.
	Changed func()
}

// Poller asks channels which version they name, again and again.
type Poller struct {
	config Config
	// wake has the loop look again.
	wake chan struct{}
	// telling is held while Changed is called.
	telling sync.Mutex

	mu sync.Mutex
	// channels are those of Set. One that is taken out and put in again is another entry.
	channels map[string]*known
}

// New returns a Poller without channels.
func New(c Config) *Poller {
	return &Poller{config: c, wake: make(chan struct{}, 1), channels: map[string]*known{}}
}

// NewTransport returns the transport for channels. It takes a proxy from the environment of the process alone.
func NewTransport() *http.Transport {
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxHeader,
	}
}

// Set says which channels to ask from now on. One that is new is asked at once, and what was known of one that isn't
// among them is forgotten. The same address may be there more than once.
func (p *Poller) Set(channels []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	next := make(map[string]*known, len(channels))
	for _, c := range channels {
		if k, there := p.channels[c]; there {
			next[c] = k
		} else {
			next[c] = &known{}
		}
	}
	p.channels = next
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Current returns what is known of each channel that was asked since Set first named it.
func (p *Poller) Current() map[string]Result {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make(map[string]Result, len(p.channels))
	for c, k := range p.channels {
		if !k.At.IsZero() {
			all[c] = k.Result
		}
	}
	return all
}

// Run asks each channel whenever it is due, until ctx ends. It is called once.
func (p *Poller) Run(ctx context.Context) {
	for ctx.Err() == nil {
		due, next := p.due()
		if len(due) > 0 {
			p.askAll(ctx, due)
			continue
		}
		p.sleep(ctx, next)
	}
}

// due returns the channels that are due, in order; if there are none, when the next one is, or the zero time.
func (p *Poller) due() (due []string, next time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.config.Now()
	for c, k := range p.channels {
		switch {
		case !k.due.After(now):
			due = append(due, c)
		case next.IsZero() || k.due.Before(next):
			next = k.due
		}
	}
	slices.Sort(due)
	return due, next
}

// sleep waits until then, or without end if that is zero, but not longer than until Set is called or ctx ends.
func (p *Poller) sleep(ctx context.Context, then time.Time) {
	var rings <-chan time.Time
	if !then.IsZero() {
		timer := time.NewTimer(then.Sub(p.config.Now()))
		defer timer.Stop()
		rings = timer.C
	}
	select {
	case <-ctx.Done():
	case <-p.wake:
	case <-rings:
	}
}

// askAll asks these channels, a few at a time, and returns when all have answered.
func (p *Poller) askAll(ctx context.Context, channels []string) {
	var group errgroup.Group
	group.SetLimit(maxAtOnce)
	for _, c := range channels {
		group.Go(func() error {
			p.askOne(ctx, c)
			return nil
		})
	}
	_ = group.Wait()
}

func (p *Poller) askOne(ctx context.Context, channel string) {
	p.mu.Lock()
	k, there := p.channels[channel]
	if !there {
		p.mu.Unlock()
		return
	}
	asked := k.validators
	p.mu.Unlock()

	a := p.ask(ctx, channel, asked)
	if ctx.Err() != nil {
		// The answer may be of our own making.
		return
	}
	p.mu.Lock()
	before := k.Result
	if p.channels[channel] != k {
		p.mu.Unlock()
		return
	}
	*k = k.after(a, p.config.Now(), p.config.Random())
	changed := before.Version != k.Version || before.Problem != k.Problem
	p.mu.Unlock()
	if changed && p.config.Changed != nil {
		p.telling.Lock()
		defer p.telling.Unlock()
		p.config.Changed()
	}
}

// ask sends one request. The transport alone carries it, without a client: that one would follow redirects and send
// cookies.
func (p *Poller) ask(ctx context.Context, channel string, asked validators) answer {
	u, problem := parse(channel)
	if problem != "" {
		return answer{problem: problem}
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return answer{problem: "the channel is no address"}
	}
	req.Header.Set("User-Agent", "bottlerocket-update-operator/"+telemetry.Version)
	if asked.etag != "" {
		req.Header.Set("If-None-Match", asked.etag)
	}
	if asked.modified != "" {
		req.Header.Set("If-Modified-Since", asked.modified)
	}
	resp, err := p.config.Transport.RoundTrip(req)
	switch {
	case err != nil && ctx.Err() != nil:
		return answer{problem: fmt.Sprintf("the channel gave no answer within %s", timeout)}
	case err != nil:
		return answer{problem: "the channel can't be reached: " + reason(err)}
	}
	_ = resp.Body.Close()
	return read(u, resp.StatusCode, resp.Header, asked, p.config.Now())
}
