package agent

import "time"

const (
	backoffFirst = time.Second
	backoffMost  = time.Minute
)

// backoff counts failures in a row and returns how long to pause after each: a quarter of a second, then a second,
// doubling up to a minute, each up to a quarter shorter or longer.
type backoff struct {
	failures int
	// logged is the failure that was logged last, so that one which goes on is logged once.
	logged string
}

func (b *backoff) pause(random float64) time.Duration {
	b.failures++
	d := backoffFirst / 4
	if b.failures > 1 {
		d = backoffMost
		if n := b.failures - 2; n < 6 {
			d = min(backoffFirst<<n, backoffMost)
		}
	}
	return jitter(d, 0.25, random)
}

// changed reports whether what is another failure than the one logged last.
func (b *backoff) changed(what string) bool {
	if b.logged == what {
		return false
	}
	b.logged = what
	return true
}

func (b *backoff) over() { *b = backoff{} }

// jitter makes d up to share longer or shorter; random is from 0 to 1.
func jitter(d time.Duration, share, random float64) time.Duration {
	return d + time.Duration(float64(d)*share*(2*random-1))
}
