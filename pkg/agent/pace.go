package agent

import "time"

const (
	paceFirst = time.Second
	paceMost  = time.Minute
)

// pace counts failures in a row and says how long to pause after each: the first time hardly, then a
// second, doubling up to a minute, each up to a quarter shorter or longer.
type pace struct {
	failures int
	// what was logged last, so that a failure that goes on is logged once.
	logged string
}

func (p *pace) pause(random float64) time.Duration {
	p.failures++
	d := paceFirst / 4
	if p.failures > 1 {
		d = paceMost
		if n := p.failures - 2; n < 6 {
			d = min(paceFirst<<n, paceMost)
		}
	}
	return jitter(d, 0.25, random)
}

// changed tells if what is another failure than the one logged last.
func (p *pace) changed(what string) bool {
	if p.logged == what {
		return false
	}
	p.logged = what
	return true
}

func (p *pace) over() { *p = pace{} }

// jitter makes d up to share longer or shorter; random is from 0 to 1.
func jitter(d time.Duration, share, random float64) time.Duration {
	return d + time.Duration(float64(d)*share*(2*random-1))
}
