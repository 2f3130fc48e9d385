package sim

import (
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"
)

// Figures add up many runs.
type Figures struct {
	// Seeds is how many were run, from First on.
	First, Seeds uint64
	// Steps is how many things happened in all, Nodes and Updated count machines.
	Steps, Nodes, Updated int
	// Struck counts faults that had an effect, by kind; Checked how often each promise was looked at.
	Struck  map[Kind]int
	Checked map[string]int
	// Virtual is how long all runs were on their own clocks.
	Virtual time.Duration
	// Violations counts the seeds that broke a promise.
	Violations int
}

// Promises that the simulation looks at.
var Promises = []string{"S1", "S2", "S3", "S4", "S5", "S6", "S7", "S9", "S10", "L1", "L2", "L3", "L4", Cycled, CycleEnded, LockChanged, FreshTaken, Untainted}

// LeftInPlace is what S2 is counted as where there is no other node to drain to.
const LeftInPlace = "S2 of a cluster of one"

// Cycled is what S3 is counted as where a cycle begins, S10 where one ends.
const (
	Cycled     = "S3 of a cycle"
	CycleEnded = "S10 of a cycle"
	// LockChanged counts the changes of hosts' locks.
	LockChanged = "S5 of a lock"
	// FreshTaken counts new nodes that are taken out of service, Untainted the taints of new nodes that are taken off.
	FreshTaken = "S1 of a new node"
	Untainted  = "S5 of a taint"
)

func (f *Figures) add(r Result) {
	f.Seeds++
	f.Steps += r.Steps
	f.Nodes += r.Nodes
	f.Updated += r.Updated
	f.Virtual += r.Took
	if r.Violation != "" {
		f.Violations++
	}
	for k, n := range r.Struck {
		f.Struck[k] += n
	}
	for p, n := range r.Checked {
		f.Checked[p] += n
	}
}

// Never lists the kinds of faults that never struck, and the promises that were never looked at.
func (f *Figures) Never() []string {
	var out []string
	for _, k := range kinds {
		if f.Struck[k] == 0 {
			out = append(out, string(k))
		}
	}
	for _, p := range Promises {
		if f.Checked[p] == 0 {
			out = append(out, p)
		}
	}
	return out
}

// String is the line of figures that closes a search.
func (f *Figures) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d seeds from %d: %d violations; %d nodes, %d of them ended on the newest version; %d steps over %d virtual hours; faults that struck:",
		f.Seeds, f.First, f.Violations, f.Nodes, f.Updated, f.Steps, int(f.Virtual.Hours()))
	for _, k := range kinds {
		fmt.Fprintf(&b, " %s %d", k, f.Struck[k])
	}
	b.WriteString("; checks:")
	for _, p := range Promises {
		fmt.Fprintf(&b, " %s %d", p, f.Checked[p])
	}
	return b.String()
}

// Search runs n seeds from the first one on, several at once, and stops after the first violations.
// Report is called with each result, one at a time but not in order; false ends the search. While it
// runs, the process's garbage is collected seldom.
func Search(first, n uint64, workers int, report func(Result) bool) Figures {
	// A run leaves some 20 MiB behind and keeps nothing: a quarter of a GiB holds several.
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(256 << 20))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	f := Figures{First: first, Struck: map[Kind]int{}, Checked: map[string]int{}}
	var mu sync.Mutex
	next, stopped := first, false
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for {
				mu.Lock()
				seed := next
				next++
				done := stopped || seed >= first+n
				mu.Unlock()
				if done {
					return
				}
				r := Run(Generate(seed))
				mu.Lock()
				f.add(r)
				if !stopped && !report(r) {
					stopped = true
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return f
}
