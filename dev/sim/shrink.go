package sim

import (
	"slices"
	"strings"
)

// Shrink looks for a smaller scenario that breaks the same promise: fewer faults first, then fewer rules in
// its policies, then fewer nodes. It returns s itself if it finds none, and the number of runs that it took.
func Shrink(s Scenario, broken string) (Scenario, int) {
	promise, _, _ := strings.Cut(broken, ":")
	runs := 0
	fails := func(c Scenario) bool {
		runs++
		got, _, _ := strings.Cut(Run(c).Violation, ":")
		return got == promise
	}
	for chunk := max(1, len(s.Faults)/2); ; chunk /= 2 {
		for i := 0; i < len(s.Faults); {
			c := s
			c.Faults = slices.Delete(slices.Clone(s.Faults), i, min(i+chunk, len(s.Faults)))
			if fails(c) {
				s = c
			} else {
				i += chunk
			}
		}
		if chunk <= 1 {
			break
		}
	}
	// The last policy is one that lets the fleet come to its end, and stays so.
	for p := 0; p < len(s.Policies)-1; p++ {
		for i := 0; i < len(s.Policies[p]); {
			c := s
			c.Policies = slices.Clone(s.Policies)
			c.Policies[p] = slices.Delete(slices.Clone(s.Policies[p]), i, i+1)
			if fails(c) {
				s = c
			} else {
				i++
			}
		}
	}
	for n := 1; n < s.Nodes; n++ {
		c := s
		c.Nodes = n
		if fails(c) {
			s = c
			break
		}
	}
	return s, runs
}
