package agent

import (
	"math/rand/v2"
	"time"

	"github.com/pkg/errors"
	"github.com/sirupsen/logrus"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/platform"
)

const (
	// DefaultRefreshEvery is how often a host is asked to look for updates.
	DefaultRefreshEvery = 30 * time.Minute
	// DefaultLiveEvery is how often the node is read live besides the watch.
	DefaultLiveEvery = 10 * time.Minute
)

// Config is what New needs. Node, Host and Log have no default.
type Config struct {
	Node Node
	Host platform.Host
	Log  logrus.FieldLogger
	// Version is reported as operator-version.
	Version string
	// RefreshEvery defaults to DefaultRefreshEvery; each time is up to 10 % shorter or longer.
	RefreshEvery time.Duration
	// LiveEvery defaults to DefaultLiveEvery, with the same jitter.
	LiveEvery time.Duration
	// Metrics defaults to metrics that are not registered.
	Metrics *Metrics
	// Now defaults to time.Now.
	Now func() time.Time
	// Rand returns numbers from 0 to 1; it defaults to math/rand's.
	Rand func() float64
}

func (c *Config) complete() error {
	switch {
	case c.Node == nil:
		return errors.New("agent needs a node")
	case c.Host == nil:
		return errors.New("agent needs a host")
	case c.Log == nil:
		return errors.New("agent needs a log")
	case c.RefreshEvery < 0:
		return errors.Errorf("agent's refresh interval %s is negative", c.RefreshEvery)
	case c.LiveEvery < 0:
		return errors.Errorf("agent's live read interval %s is negative", c.LiveEvery)
	}
	if c.RefreshEvery == 0 {
		c.RefreshEvery = DefaultRefreshEvery
	}
	if c.LiveEvery == 0 {
		c.LiveEvery = DefaultLiveEvery
	}
	if c.Metrics == nil {
		c.Metrics = NewMetrics()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
	return nil
}
