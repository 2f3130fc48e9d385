package policy

import (
	"time"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
)

// SlotCapacity is the most slots that there can ever be, which keeps the list of holders small.
const SlotCapacity = 1000

// Settings are the policy.
type Settings struct {
	// MaxUnavailable is how many nodes may be in our hands (cordoned to verified) at once. Default 1.
	MaxUnavailable int
	// MaxLost is how many Lost nodes lend their slot on; with more of them nothing starts. Default 1.
	MaxLost int
	// MaxStaging is how many nodes may download and write an update at once. Default 10.
	MaxStaging int
	// Soak is how long a node must be Ready, without a break, after its update. Default 60 s.
	Soak time.Duration
	// Deadlines of the phases.
	Deadlines Deadlines
	// RetryBase is the wait after a node's first failure, doubled by each further one up to RetryMax.
	// Defaults 10 min and 24 h.
	RetryBase, RetryMax time.Duration
	// HandsOff is how long a node is left alone after a human took our cordon away. Default 10 min.
	HandsOff time.Duration
}

// Deadlines are counted by the controller's clock from the mark that began the phase.
type Deadlines struct {
	// Prepare must be longer than an agent's patience with a busy host, intent.BusyPatience. Default 45 min.
	Prepare time.Duration
	// Drain: past it the node is given back; a drain that can't finish never leads to a reboot. Default 30 min.
	Drain time.Duration
	// Reboot is also how long an agent may take to begin. Default 30 min.
	Reboot time.Duration
	// Return is for the kubelet to show the new boot, and again for the soak to end. Default 15 min.
	Return time.Duration
}

// DefaultSettings returns the defaults.
func DefaultSettings() Settings {
	return Settings{
		MaxUnavailable: 1,
		MaxLost:        1,
		MaxStaging:     10,
		Soak:           time.Minute,
		Deadlines: Deadlines{
			Prepare: 45 * time.Minute,
			Drain:   30 * time.Minute,
			Reboot:  30 * time.Minute,
			Return:  15 * time.Minute,
		},
		RetryBase: 10 * time.Minute,
		RetryMax:  24 * time.Hour,
		HandsOff:  10 * time.Minute,
	}
}

// Validate returns the first thing that is wrong, with the remedy.
func (s Settings) Validate() error {
	switch {
	case s.MaxUnavailable < 1 || s.MaxUnavailable > SlotCapacity:
		return errors.Errorf("limit of unavailable nodes is %d: give 1 to %d", s.MaxUnavailable, SlotCapacity)
	case s.MaxLost < 0:
		return errors.Errorf("limit of lost nodes is %d: give 0 or more", s.MaxLost)
	case s.MaxStaging < 1:
		return errors.Errorf("limit of staging nodes is %d: give 1 or more", s.MaxStaging)
	case s.Soak < 0:
		return errors.Errorf("soak is %s: give 0 or more", s.Soak)
	case s.Deadlines.Prepare <= 0 || s.Deadlines.Drain <= 0 || s.Deadlines.Reboot <= 0 || s.Deadlines.Return <= 0:
		return errors.New("a phase's deadline is not positive: give each a duration such as 30m")
	case s.RetryBase <= 0 || s.RetryMax < s.RetryBase:
		return errors.Errorf("retry waits are %s to %s: give positive durations, the smaller one first", s.RetryBase, s.RetryMax)
	case s.HandsOff < 0:
		return errors.Errorf("hands-off time is %s: give 0 or more", s.HandsOff)
	}
	return nil
}

// Warnings returns what is allowed but will surprise.
func (s Settings) Warnings() []string {
	var w []string
	if s.Deadlines.Prepare <= intent.BusyPatience {
		w = append(w, "the prepare deadline is shorter than an agent's patience with a busy host ("+intent.BusyPatience.String()+")")
	}
	if s.Deadlines.Reboot <= intent.RebootPatience {
		w = append(w, "the reboot deadline is shorter than an agent's patience with its own reboot ("+intent.RebootPatience.String()+")")
	}
	return w
}

// backOff is the wait after the count-th failure.
func (s Settings) backOff(count int) time.Duration {
	d := s.RetryBase
	for i := 1; i < count && d < s.RetryMax; i++ {
		d *= 2
	}
	return min(d, s.RetryMax)
}
