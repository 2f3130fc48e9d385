package next_test

import (
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent/next"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// process is a memory with the clock, the host and the intent that it looks at.
type process struct {
	next.Memory
	now    time.Time
	host   next.Host
	intent string
}

func newProcess() *process {
	return &process{Memory: next.NewMemory(now, 30*time.Minute), now: now, host: next.Host{BootID: "b1", State: next.HostIdle, Last: refreshed}, intent: id}
}

func (p *process) view() next.View {
	return p.View(p.now, marker.Intent{ID: p.intent}, marker.Report{}, p.host)
}

// look observes the host so many times, a second apart.
func (p *process) look(times int) next.View {
	for range times {
		p.now = p.now.Add(time.Second)
		p.Observed(p.now, p.host)
	}
	return p.view()
}

// ask sends a command to the host, as the agent's loop does.
func (p *process) ask(c next.Command, delivery next.Delivery, why next.Refusal, body string) next.View {
	v := p.view()
	p.Sending(v, p.now, c)
	p.Sent(v, p.now, c, next.Result{Delivery: delivery, Why: why, Body: body}, time.Hour)
	return p.view()
}

// What the process knows is in the view, and a boot of the host ends all of it but when the process started.
func TestMemoryOfABoot(t *testing.T) {
	p := newProcess()
	v := p.look(1)
	assert.Equal(t, v.Now, p.now)
	assert.Equal(t, v.Intent.ID, id)
	assert.Equal(t, v.Host, p.host)
	p.Affirm(id)
	assert.Assert(t, p.IsAffirmed(id) && !p.IsAffirmed("8"))
	v = p.ask(next.CommandRefresh, next.Delivered, "", "")
	assert.Equal(t, v.Affirmed, id)
	assert.Equal(t, v.Asked, next.Asked{Command: next.CommandRefresh, ID: id, At: p.now, Before: "t1"})
	assert.Equal(t, v.RefreshTried, p.now)
	assert.Equal(t, v.RefreshEvery, time.Hour)
	p.look(2)
	assert.Assert(t, p.IsAffirmed(id), "the same boot")
	p.host.BootID = "b2"
	v = p.look(1)
	assert.Equal(t, v.Started, now)
	assert.Equal(t, v.RefreshEvery, time.Hour)
	assert.Assert(t, v.Affirmed == "" && v.Asked == next.Asked{} && v.RefreshTried.IsZero())
	v = p.ask(next.CommandRefresh, next.Delivered, "", "")
	assert.Equal(t, p.look(1).RefreshTried, v.RefreshTried, "the new boot is remembered too")
}

// A lock counts from the first look that found it, without a break.
func TestMemoryOfALock(t *testing.T) {
	p := newProcess()
	p.ask(next.CommandPrepare, next.Delivered, "", "")
	p.host.Locked = true
	first := p.look(1).Now
	v := p.look(3)
	assert.Equal(t, v.LockedSince, first)
	assert.Equal(t, v.Asked.Unchanged, 0, "a locked host shows no record")
	p.host.Locked = false
	assert.Assert(t, p.look(1).LockedSince.IsZero())
	p.host.Locked = true
	v = p.look(1)
	assert.Equal(t, v.LockedSince, v.Now)
}

// A command that the host began is remembered until its record shows, and looks without one are counted.
func TestMemoryOfACommand(t *testing.T) {
	p := newProcess()
	assert.Equal(t, p.look(2).Asked, next.Asked{}, "nothing was asked")
	p.ask(next.CommandPrepare, next.Delivered, "", "")
	assert.Equal(t, p.look(2).Asked.Unchanged, 2)
	p.host.Last = written
	v := p.look(5)
	assert.Equal(t, v.Asked.Unchanged, 2)
	assert.Equal(t, v.Asked.Command, next.CommandPrepare)
}

// A command that the host may not have received is asked for again after three looks without a trace of it, and the third
// time it counts as one that left no record.
func TestMemoryOfADoubt(t *testing.T) {
	p := newProcess()
	for range 2 {
		p.ask(next.CommandPrepare, next.DeliveryUnknown, "", "")
		assert.Equal(t, p.look(2).Asked.Command, next.CommandPrepare)
		assert.Equal(t, p.look(1).Asked, next.Asked{})
	}
	p.ask(next.CommandPrepare, next.DeliveryUnknown, "", "")
	v := p.look(3)
	assert.Equal(t, v.Asked.Command, next.CommandPrepare)
	assert.Assert(t, v.Asked.Unchanged > 100)

	// Its record ends the doubt.
	p = newProcess()
	p.ask(next.CommandPrepare, next.DeliveryUnknown, "", "")
	p.look(2)
	p.host.Last = written
	p.look(1)
	p.host.Last = refreshed
	assert.Equal(t, p.look(9).Asked.Command, next.CommandPrepare)
	// What the host certainly received, or did not, is in no doubt.
	p = newProcess()
	p.ask(next.CommandPrepare, next.DeliveryUnknown, "", "")
	p.ask(next.CommandPrepare, next.Delivered, "", "")
	assert.Equal(t, p.look(9).Asked.Unchanged, 9)
	before := p.view().Asked
	p.now = p.now.Add(time.Minute)
	assert.Equal(t, p.ask(next.CommandPrepare, next.NotDelivered, "", "").Asked, before)
}

// A refusal is taken for the host's last word after three in a row for one intent and command.
func TestMemoryOfARefusal(t *testing.T) {
	p := newProcess()
	refuse := func(c next.Command) next.Asked { return p.ask(c, next.DeliveryRefused, next.RefusedState, "no").Asked }
	refuse(next.CommandPrepare)
	refuse(next.CommandPrepare)
	assert.Equal(t, refuse(next.CommandActivate), next.Asked{}, "another command")
	p.intent = "8"
	refuse(next.CommandActivate)
	assert.Equal(t, refuse(next.CommandActivate), next.Asked{}, "another intent")
	a := refuse(next.CommandActivate)
	assert.Assert(t, a.Command == next.CommandActivate && a.ID == "8" && a.At.Equal(p.now) && a.Refused == "no" && a.Unchanged > 100, "%+v", a)
	p.look(1)
	assert.Equal(t, p.view().Asked.Command, next.CommandActivate, "that is in no doubt")
	// Another command's lock is no refusal.
	p = newProcess()
	for range 9 {
		v := p.ask(next.CommandRefresh, next.DeliveryRefused, next.RefusedLocked, "locked")
		assert.Assert(t, v.Asked == next.Asked{} && v.RefreshTried.IsZero())
	}
}

// A host that can't be updated in place says so once, and what it says is believed until it begins a command.
func TestMemoryOfAnUnsupportedHost(t *testing.T) {
	p := newProcess()
	v := p.ask(next.CommandRefresh, next.DeliveryRefused, next.RefusedUnsupported, "no route")
	assert.Equal(t, v.Unsupported, "no route")
	assert.Assert(t, v.Asked.Refused == "no route" && v.Asked.Unchanged > 100)
	assert.Equal(t, v.RefreshEvery, time.Hour, "it need not be asked soon")
	assert.Equal(t, p.ask(next.CommandRefresh, next.NotDelivered, "", "").Unsupported, "no route")
	assert.Equal(t, p.ask(next.CommandRefresh, next.Delivered, "", "").Unsupported, "")
	assert.Equal(t, p.ask(next.CommandRefresh, next.DeliveryRefused, next.RefusedUnsupported, "").Unsupported, "it has no Update API, as Bottlerocket before 0.4.1")
}

// A reboot counts as asked for before the answer is there, and is asked for again only if the host can't have received it.
func TestMemoryOfAReboot(t *testing.T) {
	p := newProcess()
	before := p.ask(next.CommandActivate, next.DeliveryUnknown, "", "").Asked
	p.Sending(p.view(), p.now, next.CommandPrepare)
	assert.Equal(t, p.view().Asked, before, "no other command does")
	v := p.view()
	p.Sending(v, p.now, next.CommandReboot)
	assert.Equal(t, p.view().Asked, next.Asked{Command: next.CommandReboot, ID: id, At: p.now, Before: "t1"})
	p.Sent(v, p.now, next.CommandReboot, next.Result{Delivery: next.NotDelivered}, time.Hour)
	assert.Equal(t, p.view().Asked, before)
	for _, delivery := range []next.Delivery{next.Delivered, next.DeliveryUnknown, next.DeliveryRefused} {
		p.ask(next.CommandReboot, delivery, next.RefusedState, "no")
		v := p.look(9)
		assert.Assert(t, v.Asked.Command == next.CommandReboot && v.Asked.Unchanged == 0, "%+v", v.Asked)
	}
}

// A refresh that failed is tried again after two minutes, and after twice as long each time that it fails again, but not
// more seldom than any other refresh; one that the host didn't begin, soon.
func TestMemoryOfARefresh(t *testing.T) {
	p := newProcess()
	p.ask(next.CommandRefresh, next.Delivered, "", "")
	p.host.Last = failed(next.CommandRefresh, "no route")
	for _, want := range []int{2, 4, 8, 16, 32, 60, 60} {
		assert.Equal(t, p.look(1).RefreshEvery, time.Duration(want)*time.Minute)
		p.ask(next.CommandRefresh, next.Delivered, "", "")
	}
	p.host.Last = failed(next.CommandPrepare, "disk")
	assert.Equal(t, p.look(1).RefreshEvery, time.Hour, "another command's failure is none of the refresh")
	p.host.Last = next.LastCommand{Command: next.CommandRefresh, Success: true, Timestamp: "t5"}
	p.look(1)
	p.ask(next.CommandRefresh, next.Delivered, "", "")
	assert.Equal(t, p.look(1).RefreshEvery, time.Hour)
	p.host.SawNothing = true
	assert.Equal(t, p.look(1).RefreshEvery, 2*time.Minute, "it names no release, which is no success, and the first")

	p = newProcess()
	assert.Equal(t, p.ask(next.CommandRefresh, next.DeliveryUnknown, "", "").RefreshEvery, time.Hour)
	assert.Equal(t, p.ask(next.CommandRefresh, next.NotDelivered, "", "").RefreshEvery, 2*time.Minute)
	p = newProcess()
	assert.Equal(t, p.ask(next.CommandRefresh, next.DeliveryRefused, next.RefusedFailed, "").RefreshEvery, 2*time.Minute)
	tried := p.now
	p.look(1)
	assert.Equal(t, p.ask(next.CommandPrepare, next.Delivered, "", "").RefreshTried, tried)

	// However often it failed, the interval doesn't wrap around.
	p = newProcess()
	p.host.Last = failed(next.CommandRefresh, "no route")
	p.look(1)
	for range 99 {
		p.Sent(p.view(), p.now, next.CommandRefresh, next.Result{Delivery: next.Delivered}, 1e6*time.Hour)
	}
	assert.Equal(t, p.view().RefreshEvery, 2048*time.Minute)
}

// Two memories that differ in moments and names alone are the same in common terms, and so are counts that are past
// making a difference; no other count is.
func TestMemoryInTerms(t *testing.T) {
	// lived is a process of which everything is remembered that can be.
	lived := func(began time.Time, boot, intent, record string, looks, refreshes, refusals int) next.Memory {
		p := &process{Memory: next.NewMemory(began, time.Hour), now: began, intent: intent}
		p.host = next.Host{BootID: boot, Last: next.LastCommand{Command: next.CommandRefresh, Timestamp: record}}
		p.look(1)
		for range refreshes {
			p.ask(next.CommandRefresh, next.Delivered, "", "")
		}
		for range refusals {
			p.ask(next.CommandActivate, next.DeliveryRefused, next.RefusedState, "no")
		}
		p.ask(next.CommandPrepare, next.Delivered, "", "")
		p.Affirm(intent)
		v := p.view()
		p.Wish(&v, &marker.Lock{Want: v.Host.VersionLock})
		p.Sent(v, p.now, next.CommandLock, next.Result{Delivery: next.Delivered}, time.Hour)
		p.look(looks)
		p.host.Locked, p.now = true, began.Add(time.Hour)
		p.look(1)
		return p.Memory
	}
	in := func(m next.Memory, began time.Time, boot, intent, record string) next.Memory {
		rename := func(name string) func(string) string {
			return func(s string) string {
				if s != name {
					t.Errorf("%q is not of its kind, as %q is", s, name)
				}
				return ""
			}
		}
		return m.In(next.Terms{
			Moment: func(at time.Time) time.Time { return time.Time{}.Add(at.Sub(began)) },
			ID:     rename(intent), Boot: rename(boot), Timestamp: rename(record),
		})
	}
	later := now.Add(time.Hour)
	one := in(lived(now, "b1", "7", "t1", 2, 3, 2), now, "b1", "7", "t1")
	assert.Equal(t, one, in(lived(later, "b2", "8", "t2", 2, 3, 2), later, "b2", "8", "t2"))
	counted := func(looks, refreshes, refusals int) next.Memory {
		return in(lived(now, "b1", "7", "t1", looks, refreshes, refusals), now, "b1", "7", "t1")
	}
	assert.Assert(t, one != counted(3, 3, 2), "looks")
	assert.Assert(t, one != counted(2, 4, 2), "refreshes")
	assert.Assert(t, one != counted(2, 3, 1), "refusals")
	assert.Assert(t, counted(2, 9, 2) != counted(2, 10, 2))
	assert.Equal(t, counted(3, 10, 3), counted(4, 11, 4))
}
