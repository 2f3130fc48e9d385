package sim_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/sim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// TestHostFaults plays each fault of a host (F1 to F30 of the Update API reference) through the whole
// system: it must strike, users must be able to read what came of it, no promise may be broken, and the
// fleet must end updated once it has passed.
func TestHostFaults(t *testing.T) {
	type want []plan.Reason
	cases := map[sim.Kind]struct {
		when sim.Moment
		last time.Duration
		n    int
		// reasons are what users read of the node; none: the fault costs time, or nothing at all.
		reasons want
	}{
		// Another program's command is waited for.
		"F1": {when: sim.AtPrepare, n: 1, last: time.Minute},
		// A lock that is never released ends in the patience with a busy host.
		"F2": {when: sim.AtPrepare, last: 31 * time.Minute, reasons: want{plan.ReasonStagingFailed}},
		// A host that can't find out what is available isn't up to date.
		"F3": {n: 4, reasons: want{plan.ReasonHostError}},
		"F4": {n: 4, last: 10 * time.Minute, reasons: want{plan.ReasonStagingFailed}},
		"F5": {n: 3, last: 10 * time.Minute, reasons: want{plan.ReasonStagingFailed}},
		// The offer goes away under the agent's hands: given back, and nothing counted.
		"F6":  {n: 4, last: 2 * time.Minute},
		"F7":  {n: 4, last: 10 * time.Minute, reasons: want{plan.ReasonStagingFailed}},
		"F8":  {n: 4, last: 10 * time.Minute, reasons: want{plan.ReasonRebootFailed}},
		"F9":  {n: 4, last: 10 * time.Minute, reasons: want{plan.ReasonStagingFailed}},
		"F10": {when: sim.AtPrepare, n: 4, last: time.Minute, reasons: want{plan.ReasonStagingFailed}},
		// The agent's process ends and finds the new socket.
		"F11": {when: sim.AtPrepare},
		"F12": {when: sim.AtPrepare, n: 3, last: time.Minute},
		"F13": {when: sim.AtPrepare, n: 9, last: time.Minute},
		// No answer to a reboot is proof: ten minutes later it is called failed.
		"F14": {when: sim.AtCordon, n: 4, last: 12 * time.Minute, reasons: want{plan.ReasonRebootFailed}},
		"F15": {when: sim.AtCordon, n: 3, last: 5 * time.Minute},
		"F16": {when: sim.AtCordon, n: 4, last: 12 * time.Minute, reasons: want{plan.ReasonRebootFailed}},
		"F17": {when: sim.AtCordon, n: 4, last: 5 * time.Minute, reasons: want{plan.ReasonRolledBack}},
		"F18": {when: sim.AtBusy, last: 6 * time.Minute, reasons: want{plan.ReasonReturning, plan.ReasonLost}},
		// A reboot by another program after the cordon is the reboot, and before it the stage is gone.
		"F19": {when: sim.AtCordon, last: time.Minute, reasons: want{plan.ReasonRebootedEarly}},
		"F20": {when: sim.AtCordon, reasons: want{plan.ReasonRebootedEarly}},
		"F21": {when: sim.AtCordon, last: time.Minute, reasons: want{plan.ReasonRebootFailed}},
		"F22": {when: sim.AtPrepare},
		// What isn't offered yet isn't missed.
		"F23": {last: 2 * time.Minute},
		"F24": {last: 2 * time.Minute, reasons: want{}},
		"F25": {n: 8, last: 2 * time.Minute, reasons: want{plan.ReasonInterfaceUnsupported}},
		// Without a pin nothing but the fact of the host's lock depends on its settings.
		"F26": {last: 5 * time.Minute},
		"F27": {n: 4, last: 2 * time.Minute, reasons: want{plan.ReasonHostError}},
		"F28": {last: 2 * time.Minute},
		"F29": {last: 10 * time.Minute, n: 3},
		"F30": {when: sim.AtPrepare, n: 4, last: time.Minute, reasons: want{plan.ReasonStagingFailed}},
		// Activated again and again, until the repository is back.
		"F31": {when: sim.AtCordon, n: 2, last: 5 * time.Minute, reasons: want{plan.ReasonRebooting}},
		"F32": {when: sim.AtCordon, n: 4, last: 5 * time.Minute},
		"F33": {when: sim.AtPrepare, n: 4, last: 5 * time.Minute, reasons: want{plan.ReasonStagingFailed}},
		// A host that names no release is not taken for up to date.
		"F34": {last: 5 * time.Minute, reasons: want{plan.ReasonHostError}},
		// A mere mass of output is no failure.
		"F35": {when: sim.AtPrepare, n: 4, last: time.Minute},
	}
	for i := 1; i <= 35; i++ {
		id := sim.Kind(fmt.Sprintf("F%d", i))
		t.Run(string(id), func(t *testing.T) {
			c, ok := cases[id]
			assert.Assert(t, ok, "no case for %s", id)
			// The fault comes within seconds of its moment, so some runs miss the request that it is for. All
			// of them must end well.
			const tries = 8
			for try := uint64(1); ; try++ {
				s := sim.Scenario{Seed: uint64(i) + 100*(try-1), Nodes: 3, Controllers: 1, MaxUnavailable: 1, MaxLost: 1, MaxStaging: 3, Soak: 5 * time.Second,
					Refresh: 4 * time.Minute, Live: 3 * time.Minute, Trouble: 15*time.Minute + 4*c.last,
					Faults: []sim.Fault{{At: time.Second, Kind: id, On: 1, For: c.last, N: c.n, When: c.when}}}
				r := sim.Run(s)
				var trace bytes.Buffer
				r.Trace(&trace, 0)
				assert.Equal(t, r.Violation, "", "%s", trace.String())
				assert.Equal(t, r.Updated, r.Nodes, "%s", trace.String())
				shown := reasonsOf(r)
				if len(c.reasons) == 0 {
					// No reason is a warning.
					for _, reason := range shown {
						assert.Assert(t, !reason.Troubling() || reason == plan.ReasonEvictionBlocked, "users are warned of %s\n%s", reason, trace.String())
					}
				}
				missing := slices.DeleteFunc(slices.Clone(c.reasons), func(r plan.Reason) bool { return slices.Contains(shown, r) })
				if r.Struck[id] > 0 && len(missing) == 0 {
					return
				}
				if try == tries {
					t.Fatalf("in %d runs: struck %d times in the last one, and users can't read %v, but %v\n%s", tries, r.Struck[id], missing, shown, trace.String())
				}
			}
		})
	}
}

// reasonsOf returns the reasons that users could read of any node.
func reasonsOf(r sim.Result) []plan.Reason {
	var shown []plan.Reason
	for _, reasons := range r.Reasons {
		for reason := range reasons {
			if reason != "" && !slices.Contains(shown, reason) {
				shown = append(shown, reason)
			}
		}
	}
	slices.Sort(shown)
	return shown
}
