package chaos

import (
	"fmt"
	"strings"
	"time"
)

// Total adds up runs.
type Total struct {
	Seeds []uint64
	// Bad counts runs with something wrong.
	Bad        int
	Struck     map[Fault]int
	Figures    Figures
	Violations int
	Took       time.Duration
}

// Add takes in one more run; err is what was wrong with it.
func (t *Total) Add(r Result, err error) {
	t.Seeds = append(t.Seeds, r.Seed)
	if err != nil {
		t.Bad++
	}
	if t.Struck == nil {
		t.Struck = map[Fault]int{}
	}
	for f, n := range r.Struck {
		t.Struck[f] += n
	}
	f, g := &t.Figures, r.Figures
	f.Requests += g.Requests
	f.Writes += g.Writes
	f.Holes += g.Holes
	f.Torn += g.Torn
	f.Cordons += g.Cordons
	f.Begun += g.Begun
	f.Reboots += g.Reboots
	f.Updated += g.Updated
	f.Abandoned += g.Abandoned
	f.Failed += g.Failed
	f.Conflicts += g.Conflicts
	f.Refused += g.Refused
	f.Renewals += g.Renewals
	f.Checks += g.Checks
	f.MostDisrupted = max(f.MostDisrupted, g.MostDisrupted)
	t.Violations += len(r.Violations)
	t.Took += r.Took
}

// String is one line.
func (t Total) String() string {
	var faults []string
	for _, f := range Faults() {
		faults = append(faults, fmt.Sprintf("%s %d", f, t.Struck[f]))
	}
	f := t.Figures
	return fmt.Sprintf("seeds %v: %d nodes updated in %s (%d cordons, %d reboots, %d given back, %d failed, most out of service at once %d); "+
		"faults: %s; %d requests in the log, %d writes of the operator's (%d conflicts, %d refused, %d certificates renewed), %d holes, %d torn lines; "+
		"%d invariants checked %d times, %d violations, %d bad runs",
		t.Seeds, f.Updated, t.Took.Round(time.Second), f.Cordons, f.Reboots, f.Abandoned, f.Failed, f.MostDisrupted,
		strings.Join(faults, ", "), f.Requests, f.Writes, f.Conflicts, f.Refused, f.Renewals, f.Holes, f.Torn,
		len(Invariants()), f.Checks, t.Violations, t.Bad)
}
