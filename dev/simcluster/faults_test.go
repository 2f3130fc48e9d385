package simcluster_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/nodesim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/simcluster"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// faultLine is one fault on one machine, and what the operator makes of it.
type faultLine struct {
	id hostsim.FaultID
	// about tells the lines of a fault apart; it is in the node's name.
	about string
	// alone: the host has a repository of its own. Else version 1 is released to it when all agents work.
	alone bool
	// held: a pod on the node may not be evicted until letGo.
	held bool
	// first happens before the operator sees the machine.
	first func(*patient)
	// story is what must be seen, in this order.
	story []scene
	// history is all attempts at the end, with their reasons, several in a row that ended alike once.
	history string
	// runs is the version at the end, ends the reason in the plan; UpToDate on version 1 if not given.
	runs string
	ends plan.Reason
	// asked is how often the operator asked for a reboot, boots how often the host booted, if that isn't the same.
	asked, boots int
	// atLeast and atMost count commands that the host took from the operator, where that tells what happened.
	atLeast, atMost map[hostsim.Command]int
	// elsewhere says what of this fault takes longer than a test may, and which test has it.
	elsewhere string
}

func (l faultLine) node() string {
	return strings.Trim(strings.ToLower(string(l.id))+"-"+l.about, "-")
}

func (l faultLine) version() string {
	if l.runs != "" {
		return l.runs
	}
	return version(1)
}

func (l faultLine) reason() plan.Reason {
	if l.ends != "" {
		return l.ends
	}
	return plan.ReasonUpToDate
}

const (
	inSimulation = "; the simulation has it"
	// byDeadline: the deadlines here are shorter than an agent's patience.
	byDeadline = "by default the agent gives up first, after intent.RebootPatience, and the node is given back" + inSimulation
)

func once(id hostsim.FaultID, variant string) hostsim.Fault {
	return hostsim.Fault{ID: id, Variant: variant, Count: 1}
}

// faultLines are all faults of docs/host-api.md#faults, and one machine without any.
func faultLines() []faultLine {
	v0, v1, v2 := version(0), version(1), version(2)
	updated, failed := v1+" Updated", func(r plan.Reason) string { return v1 + " " + string(r) + ", " }
	lines := []faultLine{
		{about: "healthy", history: updated, asked: 1},
		{
			// Somebody else's commands are waited for.
			id: hostsim.F1, about: "refresh", history: updated, asked: 1,
			first: add(hostsim.Fault{ID: hostsim.F1, Count: 3, Delay: hostsim.Duration(2 * time.Second)}),
		},
		{
			// Activated by somebody else right after the stage: undone, staged again, and only then rebooted.
			id: hostsim.F1, about: "activate", history: updated, asked: 1,
			atLeast: map[hostsim.Command]int{hostsim.Prepare: 2, hostsim.Deactivate: 1},
			story: []scene{sees(at(preparing), func(p *patient) {
				add(hostsim.Fault{ID: hostsim.F1, Variant: "activate", Until: time.Now().Add(3 * time.Second), Delay: hostsim.Duration(300 * time.Millisecond)})(p)
			})},
		},
		{
			id: hostsim.F2, history: failed(plan.ReasonPrepareDeadline) + updated, asked: 1, boots: 2,
			story: []scene{
				sees(at(preparing), add(hostsim.Fault{ID: hostsim.F2})),
				sees(event(plan.ReasonPrepareDeadline, "the agent did not stage"), reboot),
			},
			elsewhere: "by default the agent gives up first, after intent.BusyPatience; pkg/agent/next has it",
		},
		{
			id: hostsim.F3, history: updated, asked: 1,
			first: add(hostsim.Fault{ID: hostsim.F3}),
			story: []scene{sees(event(plan.ReasonHostError, "refreshing what is available: Metadata error"), cure)},
		},
		{
			id: hostsim.F4, history: failed(plan.ReasonPrepareFailed) + updated, asked: 1,
			first: add(once(hostsim.F4, "write"), once(hostsim.F4, "target")),
			story: []scene{
				sees(event(plan.ReasonPrepareFailed, "Failed writing update data to disk")),
				sees(event(plan.ReasonPrepareFailed, "Target not found")),
			},
		},
		{
			// Nothing of this passes by itself: people put it right, and say so.
			id: hostsim.F5, history: failed(plan.ReasonPrepareFailed) + updated, asked: 1,
			first: add(hostsim.Fault{ID: hostsim.F5, Variant: "single-bank"}),
			story: []scene{
				sees(event(plan.ReasonPrepareFailed, "Could not find inactive partition set")),
				sees(planned(plan.ReasonBackingOff, "Could not find inactive partition set"), cure, wishRetry),
				sees(event(plan.ReasonRetryWanted, "")),
			},
		},
		{
			id: hostsim.F6, held: true, history: failed(plan.ReasonOfferWithdrawn) + updated, asked: 1,
			story: []scene{
				sees(event(plan.ReasonEvictionBlocked, ""), add(hostsim.Fault{ID: hostsim.F6})),
				sees(event(plan.ReasonOfferWithdrawn, "is not offered any more")),
				sees(planned(plan.ReasonUpToDate, ""), cure, letGo),
			},
		},
		{
			id: hostsim.F7, history: failed(plan.ReasonPrepareFailed) + updated, asked: 1,
			first: add(once(hostsim.F7, "")),
			story: []scene{sees(event(plan.ReasonPrepareFailed, "the host wrote nothing"))},
		},
		{
			id: hostsim.F8, history: failed(plan.ReasonRebootFailed) + updated, asked: 1,
			first: add(once(hostsim.F8, "invalid"), once(hostsim.F8, "marked")),
			story: []scene{
				sees(event(plan.ReasonRebootFailed, "has not been marked valid")),
				sees(event(plan.ReasonRebootFailed, "is already marked")),
			},
		},
		{
			id: hostsim.F9, history: failed(plan.ReasonPrepareFailed) + updated, asked: 1,
			first: add(hostsim.Fault{ID: hostsim.F9, Version: "1.50.5", Count: 1}),
			story: []scene{sees(event(plan.ReasonPrepareFailed, "the host wrote 1.50.5, its choice has changed"))},
		},
		{
			id: hostsim.F10, history: failed(plan.ReasonPrepareFailed) + failed(plan.ReasonRebootFailed) + updated, asked: 1,
			first: add(hostsim.Fault{ID: hostsim.F10, Command: hostsim.Prepare, Count: 1}, hostsim.Fault{ID: hostsim.F10, Command: hostsim.Activate, Count: 1}),
			story: []scene{
				sees(event(plan.ReasonPrepareFailed, "ended without a record")),
				sees(event(plan.ReasonRebootFailed, "ended without a record")),
			},
		},
		{
			id: hostsim.F10, about: "refresh", history: updated, asked: 1,
			first: add(hostsim.Fault{ID: hostsim.F10, Command: hostsim.Refresh}),
			story: []scene{sees(event(plan.ReasonHostError, "refreshing what is available: the host's command ended without a record"), cure)},
		},
		{
			// The agent ends, and its next container has the new socket: TestHostReplacesItsSocket.
			id: hostsim.F11, alone: true, history: updated, asked: 1,
			first: releases(v0),
			story: []scene{
				sees(planned(plan.ReasonUpToDate, ""), restartAPI, releases(v1)),
				sees(logged("replaced its API socket")),
			},
		},
		{
			id: hostsim.F12, about: "silent", history: updated, asked: 1,
			first: add(hostsim.Fault{ID: hostsim.F12, On: "/updates/status"}),
			story: []scene{
				sees(logged("Could not look at the host")),
				sees(planned(plan.ReasonAgentNotReady, "no agent pod is Ready"), cure),
			},
		},
		{
			// The host began the prepare, but its answer was cut: it isn't asked again.
			id: hostsim.F12, about: "truncated", history: updated, asked: 1,
			atMost: map[hostsim.Command]int{hostsim.Prepare: 1},
			first:  add(hostsim.Fault{ID: hostsim.F12, Variant: "truncated", On: "/actions/prepare-update", Count: 1}),
			story:  []scene{sees(logged("The host may have received the command"))},
		},
		{
			id: hostsim.F13, about: "cut", history: updated, asked: 1,
			first: add(hostsim.Fault{ID: hostsim.F13}),
			story: []scene{
				sees(logged("Could not look at the host")),
				sees(planned(plan.ReasonAgentNotReady, "no agent pod is Ready"), cure),
			},
		},
		{
			id: hostsim.F13, about: "dispatcher", history: failed(plan.ReasonPrepareFailed) + updated, asked: 1,
			first: add(hostsim.Fault{ID: hostsim.F13, Variant: "dispatcher", On: "/actions/prepare-update", Count: 3}),
			story: []scene{sees(event(plan.ReasonPrepareFailed, "the host refused: Update dispatcher failed"))},
		},
		{
			// Fields that nobody knows are ignored.
			id: hostsim.F13, about: "extra", history: updated, asked: 1,
			first: add(hostsim.Fault{ID: hostsim.F13, Variant: "extra"}, hostsim.Fault{ID: hostsim.F13, Variant: "extra", On: "/os"}),
		},
		{
			// Whatever the host says, it may still go down; people reboot it.
			id: hostsim.F14, history: updated, asked: 1,
			first:     add(once(hostsim.F14, "inhibited")),
			story:     []scene{sees(event(plan.ReasonLost, "has not begun to reboot"), reboot)},
			elsewhere: byDeadline,
		},
		{
			id: hostsim.F15, about: "eof", history: updated, asked: 1,
			first: add(once(hostsim.F15, "eof")),
		},
		{
			id: hostsim.F15, about: "delay", history: updated, asked: 1,
			first: add(hostsim.Fault{ID: hostsim.F15, Variant: "delay", Count: 1, Delay: hostsim.Duration(4 * time.Second)}),
		},
		{
			id: hostsim.F16, history: updated, asked: 1,
			first:     add(once(hostsim.F16, "")),
			story:     []scene{sees(event(plan.ReasonLost, "has not begun to reboot"), reboot)},
			elsewhere: byDeadline,
		},
		{
			// The second boot of a rollback is the host's own.
			id: hostsim.F17, history: failed(plan.ReasonRolledBack) + updated, asked: 2, boots: 3,
			first: add(once(hostsim.F17, "")),
			story: []scene{
				sees(event(plan.ReasonRolledBack, "the host came back with "+v0+" instead of "+v1)),
				sees(event(plan.ReasonVerified, "on the version that it ran before")),
			},
		},
		{
			id: hostsim.F18, history: updated, asked: 1, boots: 2,
			first: add(hostsim.Fault{ID: hostsim.F18}),
			story: []scene{sees(event(plan.ReasonLost, ""), cure, reboot)},
		},
		{
			// Somebody else staged and activated an update, and reboots the host.
			id: hostsim.F19, alone: true, boots: 1,
			first: func(p *patient) {
				releases(v1)(p)
				for _, c := range []hostsim.Command{hostsim.Refresh, hostsim.Prepare, hostsim.Activate} {
					assert.Check(p.ward.t, p.machine.Host().Foreign(c))
					assert.Check(p.ward.t, simcluster.Await(p.ward.t.Context(), "the command ends", bound, func() (bool, error) {
						return p.machine.Host().Snapshot().Running == "", nil
					}))
				}
			},
			story: []scene{sees(event(plan.ReasonAnotherUpdater, "activated "+v1), reboot)},
		},
		{
			// After the cordon, so it counts as the reboot; the stage was not activated, so it says nothing of the version.
			id: hostsim.F20, held: true, history: failed(plan.ReasonRebootedEarly) + updated, asked: 1, boots: 2,
			story: []scene{
				sees(event(plan.ReasonEvictionBlocked, ""), reboot, letGo),
				sees(event(plan.ReasonRebootedEarly, "")),
				sees(event(plan.ReasonRebootedEarly, "was rebooted before "+v1+" was activated")),
				sees(event(plan.ReasonVerified, "")),
			},
			elsewhere: "before the cordon the stage is staged again" + inSimulation,
		},
		{
			// Between our activation and the reboot: activated again.
			id: hostsim.F21, history: updated, asked: 1,
			atLeast: map[hostsim.Command]int{hostsim.Activate: 2},
			story: []scene{sees(at(pointOfNoReturn), func(p *patient) {
				add(hostsim.Fault{ID: hostsim.F1, Variant: "deactivate", Until: time.Now().Add(2 * time.Second), Delay: hostsim.Duration(200 * time.Millisecond)})(p)
			})},
		},
		{
			id: hostsim.F22, alone: true, held: true, runs: v2, history: failed(plan.ReasonOfferWithdrawn) + v2 + " Updated", asked: 1,
			first: releases(v1),
			story: []scene{
				sees(event(plan.ReasonEvictionBlocked, ""), releases(v2), func(p *patient) {
					// The agent's own refresh may be at it.
					_ = p.machine.Host().Foreign(hostsim.Refresh)
				}),
				sees(event(plan.ReasonOfferWithdrawn, v2+" is offered instead of "+v1), letGo),
			},
		},
		{
			// A host doesn't tell that a wave isn't open.
			id: hostsim.F23, alone: true, history: updated, asked: 1,
			first: func(p *patient) { releases(version(0))(p); p.wave(time.Hour) },
			story: []scene{sees(planned(plan.ReasonUpToDate, "nothing newer is offered"), func(p *patient) { p.wave(0) })},
		},
		{
			id: hostsim.F24, alone: true, runs: v0, ends: plan.ReasonLowerVersionOffered,
			first: func(p *patient) {
				assert.Check(p.ward.t, p.repo.Release(hostsim.Release{Version: "1.49.0", MaxVersion: "1.49.0", Variant: simcluster.Variant, Arch: simcluster.Arch}))
			},
			story: []scene{sees(planned(plan.ReasonLowerVersionOffered, "is offered the lower 1.49.0"))},
		},
		{
			id: hostsim.F25, about: "dispatcher", runs: v0, ends: plan.ReasonInterfaceUnsupported,
			first: add(hostsim.Fault{ID: hostsim.F25}),
			story: []scene{sees(event(plan.ReasonInterfaceUnsupported, "in-place updates are not supported by this host"))},
		},
		{
			id: hostsim.F25, about: "routes", runs: v0, ends: plan.ReasonInterfaceUnsupported,
			first: add(hostsim.Fault{ID: hostsim.F25, Variant: "routes"}),
			story: []scene{sees(event(plan.ReasonInterfaceUnsupported, "the os is older than 0.4.1"))},
		},
		{
			// Nothing of the operator needs a setting.
			id: hostsim.F26, history: updated, asked: 1,
			first: add(hostsim.Fault{ID: hostsim.F26}),
		},
		{
			id: hostsim.F27, history: updated, asked: 1,
			first: add(hostsim.Fault{ID: hostsim.F27, Variant: "panic"}),
			story: []scene{
				sees(event(plan.ReasonHostError, "refreshing what is available: thread 'main' panicked"), cure, add(hostsim.Fault{ID: hostsim.F27, Variant: "config"})),
				sees(planned(plan.ReasonHostError, "refreshing what is available: Failed to parse config file"), cure),
			},
		},
		{
			// Timestamps go back between two commands.
			id: hostsim.F29, history: updated, asked: 1,
			story: []scene{sees(at(preparing), add(hostsim.Fault{ID: hostsim.F29, Delay: hostsim.Duration(-time.Hour)}))},
		},
		{
			id: hostsim.F30, history: failed(plan.ReasonPrepareFailed) + failed(plan.ReasonRebootFailed) + updated, asked: 1,
			first: add(hostsim.Fault{ID: hostsim.F30, Command: hostsim.Prepare, Count: 1}, hostsim.Fault{ID: hostsim.F30, Variant: "15", Command: hostsim.Activate, Count: 1}),
			story: []scene{
				sees(event(plan.ReasonPrepareFailed, "preparing "+v1)),
				sees(event(plan.ReasonRebootFailed, "activating "+v1)),
			},
		},
		{
			// What is read is the cause, at the end of hundreds of bytes.
			id: hostsim.F31, history: failed(plan.ReasonRebootFailed) + updated, asked: 1,
			first: add(hostsim.Fault{ID: hostsim.F31, Command: hostsim.Activate, Count: 1}),
			story: []scene{sees(event(plan.ReasonRebootFailed, "Connection refused (os error 111)"))},
		},
		{
			// Asked again at once, before the node is called Lost.
			id: hostsim.F32, history: updated, asked: 1,
			first: add(hostsim.Fault{ID: hostsim.F32, On: "/actions/prepare-update", Count: 1},
				hostsim.Fault{ID: hostsim.F32, On: "/actions/activate-update", Count: 1}, hostsim.Fault{ID: hostsim.F32, On: "/actions/reboot", Count: 1}),
			story: []scene{sees(logged("was too busy to hear reboot"))},
		},
		{
			id: hostsim.F33, history: updated, asked: 1,
			first: add(hostsim.Fault{ID: hostsim.F33, Command: hostsim.Refresh}),
			story: []scene{
				sees(event(plan.ReasonHostError, "refreshing what is available: the host"), cure, add(hostsim.Fault{ID: hostsim.F33, Command: hostsim.Prepare, Count: 2})),
			},
		},
		{
			id: hostsim.F34, history: updated, asked: 1,
			first: add(once(hostsim.F34, "")),
		},
		{
			id: hostsim.F35, history: failed(plan.ReasonPrepareFailed) + updated, asked: 1,
			first: add(hostsim.Fault{ID: hostsim.F35}, once(hostsim.F4, "write")),
			story: []scene{sees(event(plan.ReasonPrepareFailed, "more than 1 MiB of output"), cure)},
		},
	}
	forbidden := faultLine{
		id: hostsim.F28, history: updated, asked: 1,
		first: func(p *patient) { add(hostsim.Fault{ID: hostsim.F28})(p); restartAPI(p) },
		story: []scene{
			sees(logged("check the SELinux type of the container")),
			sees(planned(plan.ReasonAgentNotReady, "no agent pod is Ready"), cure, restartAPI),
		},
	}
	if os.Geteuid() == 0 {
		forbidden = faultLine{id: hostsim.F28, elsewhere: "no mode of a socket keeps root out; pkg/platform/updateapi has it"}
	}
	return append(lines, forbidden)
}

// wave releases version 1 to a wave that opens after a while.
func (p *patient) wave(after time.Duration) {
	assert.Check(p.ward.t, p.repo.Release(hostsim.Release{
		Version: version(1), Variant: simcluster.Variant, Arch: simcluster.Arch, Waves: map[uint32]time.Time{0: time.Now().Add(after)},
	}))
}

// Every fault has a line, here or by name elsewhere.
func TestAllFaultsHaveALine(t *testing.T) {
	var wanted, got []string
	for i := range 35 {
		wanted = append(wanted, fmt.Sprintf("F%d", i+1))
	}
	names := map[string]bool{}
	for _, l := range faultLines() {
		assert.Check(t, !names[l.node()], "%s stands there twice", l.node())
		names[l.node()] = true
		if l.id != "" && !slices.Contains(got, string(l.id)) {
			got = append(got, string(l.id))
		}
	}
	slices.Sort(wanted)
	slices.Sort(got)
	assert.DeepEqual(t, got, wanted)
}

// One cluster, on each machine another fault: people see the reason, the node ends where it should, and
// nobody else is disturbed.
func TestHostFaults(t *testing.T) {
	d := newWard(t)
	var making sync.WaitGroup
	var mu sync.Mutex
	for _, line := range faultLines() {
		if line.elsewhere != "" {
			t.Logf("%s: %s", line.node(), line.elsewhere)
		}
		if line.id == hostsim.F28 && line.first == nil {
			continue
		}
		making.Go(func() {
			p, err := d.admit(t.Context(), line)
			if assert.Check(t, err) {
				mu.Lock()
				defer mu.Unlock()
				d.patients = append(d.patients, p)
			}
		})
	}
	making.Wait()
	assert.Assert(t, !t.Failed())
	began := time.Now()
	d.watch(t)
	for _, p := range d.patients {
		_, err := d.Kubectl(t.Context(), "label", "node", p.name, string(marker.KeyInterfaceVersion)+"=2.0.0")
		assert.NilError(t, err)
	}
	assert.NilError(t, d.Release(version(1)))

	var open []string
	err := simcluster.Await(t.Context(), "all patients are at their ends", bound, func() (bool, error) {
		var err error
		open, err = d.round(t.Context())
		return err == nil && len(open) == 0, err
	})
	d.acts.Wait()
	t.Logf("%d machines in %s", len(d.patients), time.Since(began).Round(time.Second))
	assert.Check(t, err)
	for _, o := range open {
		t.Error(o)
	}
	for _, p := range d.patients {
		d.judge(t, p)
		if t.Failed() || testing.Verbose() {
			d.tell(t, p)
		}
	}
	d.untouched(t)
}

// judge looks at what is left of a patient's way at the end.
func (d *ward) judge(t *testing.T, p *patient) {
	t.Helper()
	n, err := d.Client.CoreV1().Nodes().Get(t.Context(), p.name, metav1.GetOptions{})
	assert.NilError(t, err)
	m, problems := marker.Decode(n.Annotations)
	assert.Check(t, len(problems) == 0, "%s: %v", p.name, problems)
	assert.Check(t, history(m) == p.line.history, "%s: history is %q, not %q", p.name, history(m), p.line.history)
	assert.Check(t, m.Failure == nil, "%s: %+v", p.name, m.Failure)
	c := p.machine.Host().Snapshot().Counters
	for command, n := range p.line.atLeast {
		assert.Check(t, c.Commands[command] >= n, "%s: asked for %s %d times, at least %d expected", p.name, command, c.Commands[command], n)
	}
	for command, n := range p.line.atMost {
		assert.Check(t, c.Commands[command] <= n, "%s: asked for %s %d times, at most %d expected", p.name, command, c.Commands[command], n)
	}
	assert.Check(t, c.Boots == max(p.line.asked, p.line.boots), "%s: booted %d times", p.name, c.Boots)
	assert.Check(t, c.RebootsAsked == p.line.asked, "%s: asked for %d reboots, not %d", p.name, c.RebootsAsked, p.line.asked)
	assert.Check(t, c.RebootsAsked <= len(p.reboots), "%s: asked for %d reboots by %d intents", p.name, c.RebootsAsked, len(p.reboots))
}

// untouched makes sure that the operator did nothing to machines that nobody gave it.
func (d *ward) untouched(t *testing.T) {
	t.Helper()
	for _, m := range d.Fleet.Machines() {
		if d.patient(m.Name()) != nil {
			continue
		}
		n, err := d.Client.CoreV1().Nodes().Get(t.Context(), m.Name(), metav1.GetOptions{})
		assert.NilError(t, err)
		boots := m.Host().Snapshot().Counters.Boots
		assert.Check(t, boots == 0 && !n.Spec.Unschedulable && nodesim.Ready(n), "%s: %d boots, %+v", m.Name(), boots, n.Spec)
	}
}

func newWard(t *testing.T) *ward {
	t.Helper()
	controlplane.SkipIfShort(t)
	ctx := t.Context()
	c, err := simcluster.Start(ctx, simcluster.Config{
		Nodes: 2, Version: version(0), Progress: os.Stderr,
		Args: map[string][]string{
			agent: {"-refresh-interval=1s"},
		},
		Reboot:  nodesim.Reboot{Mode: nodesim.RebootStale, Down: 300 * time.Millisecond},
		PodStop: 100 * time.Millisecond,
	})
	assert.NilError(t, err)
	t.Cleanup(c.Stop)
	d := &ward{world: &world{Cluster: c}, t: t}
	assert.NilError(t, d.Install(ctx))
	// Of so many sick machines none may hold up another.
	d.setPolicy(t, "version: 1\nmaxUnavailable: 100\nmaxStaging: 100\nmaxLost: 10\nsoak: 1s\nretry: {base: 3s}\n"+
		"deadlines: {prepare: 20s, reboot: 20s, return: 20s}\nmaxFailed: unlimited\ncountUnavailable: false\ndrain: {predict: false}\n")
	assert.NilError(t, d.AwaitOperator(ctx, bound, false))
	return d
}
