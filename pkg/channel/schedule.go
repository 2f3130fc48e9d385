package channel

import "time"

const (
	// interval is between two polls of a channel that answers well.
	interval = 15 * time.Minute
	// firstBackoff is after its first error; it doubles up to maxBackoff.
	firstBackoff, maxBackoff = time.Minute, time.Hour
	// spread is by which part a wait is made longer or shorter, so that many clusters don't ask at the same time.
	spread = 0.2
	// maxRetryAfter bounds what the channel itself may ask for.
	maxRetryAfter = 24 * time.Hour
)

// Result is what is known of a channel.
type Result struct {
	// Version is the last one that could be read, as the channel names it; empty if there was none yet.
	Version string
	// Problem is a sentence on why the last poll showed no version; empty if it did.
	Problem string
	// At is when the channel was last asked.
	At time.Time
}

// known is what the polls of one channel have shown so far. The zero value is a channel that was not asked yet.
type known struct {
	Result
	validators
	// failures is how many of the last polls in a row showed no version.
	failures int
	// due is when to ask again.
	due time.Time
}

// after is what is known once a poll has ended. random is at least 0 and less than 1.
func (k known) after(a answer, now time.Time, random float64) known {
	k.At = now
	k.Problem = a.problem
	switch {
	case a.problem != "":
		// The validators stay those of the version that is known.
		k.failures++
	case a.unchanged:
		k.failures = 0
		if a.validators != (validators{}) {
			k.validators = a.validators
		}
	default:
		k.failures, k.Version, k.validators = 0, a.version, a.validators
	}
	k.due = now.Add(wait(k.failures, a.retryAfter, random))
	return k
}

// wait is how long a channel is left alone after so many failures in a row: not shorter than it wants.
func wait(failures int, retryAfter time.Duration, random float64) time.Duration {
	base := interval
	if failures > 0 {
		base = firstBackoff
		for i := 1; i < failures && base < maxBackoff; i++ {
			base *= 2
		}
		base = min(base, maxBackoff)
	}
	part := time.Duration(spread * float64(base) * random)
	return max(base-time.Duration(spread*float64(base))+2*part, retryAfter+part)
}
