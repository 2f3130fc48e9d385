package next_test

import (
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent/next"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

const (
	v1, v2, v3 = "1.1.0", "1.2.0", "1.3.0"
	id         = "7"
)

var now = time.Date(2026, 9, 20, 10, 0, 0, 0, time.UTC)

type change func(*next.View)

// view is an agent that has just refreshed and was asked for action a; nothing is answered.
func view(a marker.Action, changes ...change) next.View {
	v := next.View{
		Now:          now,
		Intent:       marker.Intent{ID: id, Action: a, Time: now, Until: now.Add(time.Hour), Target: v2},
		Report:       marker.Report{ActiveID: "6", State: marker.StateReady, Current: v1, BootID: "b1", Available: v2},
		Host:         next.Host{BootID: "b1", Version: v1, State: next.HostAvailable, Chosen: v2, ChosenKnown: true, Last: refreshed},
		Started:      now.Add(-time.Hour),
		RefreshTried: now.Add(-time.Minute),
		RefreshEvery: 30 * time.Minute,
	}
	if a == marker.ActionRebootUpdate {
		v.Intent.RebootFrom = "b1"
	}
	for _, c := range changes {
		c(&v)
	}
	return v
}

var (
	refreshed = next.LastCommand{Command: next.CommandRefresh, Success: true, Timestamp: "t1"}
	written   = next.LastCommand{Command: next.CommandPrepare, Success: true, Timestamp: "t2", Started: v2}
)

func answered(s marker.State) change {
	return func(v *next.View) { v.Report.ActiveID, v.Report.State = v.Intent.ID, s }
}

func affirmed(v *next.View) {
	answered(marker.StateBusy)(v)
	v.Affirmed = v.Intent.ID
}

func asked(c next.Command, before string) change {
	return func(v *next.View) {
		v.Asked = next.Asked{Command: c, ID: v.Intent.ID, At: v.Now.Add(-time.Minute), Before: before}
	}
}

// askedFor is asked for another intent.
func askedFor(other string, c next.Command, before string) change {
	return func(v *next.View) {
		asked(c, before)(v)
		v.Asked.ID = other
	}
}

func unchanged(looks int) change { return func(v *next.View) { v.Asked.Unchanged = looks } }

func host(s next.HostState, last next.LastCommand) change {
	return func(v *next.View) {
		v.Host.State, v.Host.Last = s, last
		v.Host.ChosenKnown = last.Command == next.CommandRefresh && last.Success && s != next.HostIdle
		if s == next.HostStaged || s == next.HostReady {
			v.Host.Staged = v2
		}
	}
}

func failed(c next.Command, problem string) next.LastCommand {
	return next.LastCommand{Command: c, Timestamp: "t9", Problem: problem}
}

// silent is a host that names no release after its first refresh in this boot.
func silent(v *next.View) {
	host(next.HostIdle, next.LastCommand{Command: next.CommandRefresh, Success: true, Timestamp: "t9"})(v)
	v.Host.Chosen, v.Host.SawNothing = "", true
}

// endless is a host that failed to refresh with more to say than a message holds.
func endless(v *next.View) {
	host(next.HostIdle, failed(next.CommandRefresh, "no route  to "+strings.Repeat("a far  host ", 30)))(v)
}

func locked(since time.Duration) change {
	return func(v *next.View) {
		v.Host = next.Host{BootID: v.Host.BootID, Version: v.Host.Version, Locked: true}
		v.LockedSince = v.Now.Add(-since)
	}
}

func booted(version string) change {
	return func(v *next.View) {
		v.Host = next.Host{BootID: "b2", Version: version, State: next.HostUninitialized}
		v.Started, v.RefreshTried = v.Now, time.Time{}
	}
}

// unoffered: no update is known.
func unoffered(v *next.View) { v.Report.Available = "" }

func with(f func(v *next.View)) change { return f }

// say prints a step the way the tables spell it.
func say(s next.Step) string {
	switch s.Kind {
	case next.StepCommand:
		return "ask " + string(s.Command)
	case next.StepReport:
		said := "say " + string(s.State)
		if s.Reason != marker.ReportReasonNone {
			said += " " + string(s.Reason)
		}
		return strings.TrimSuffix(said+": "+s.Message, ": ")
	default:
		return string(s.Kind)
	}
}

type line struct {
	name    string
	changes []change
	// want is how the step begins.
	want string
}

func check(t *testing.T, a marker.Action, lines []line) {
	t.Helper()
	for _, l := range lines {
		t.Run(l.name, func(t *testing.T) {
			v := view(a, l.changes...)
			step := next.Decide(v)
			got := say(step)
			assert.Assert(t, got == l.want || strings.HasSuffix(l.want, "...") && strings.HasPrefix(got, strings.TrimSuffix(l.want, "...")), "got %q, want %q", got, l.want)
			assert.Assert(t, step.Kind != next.StepWait || step.After > 0, "a wait without time is a hot loop")
			if step.Kind == next.StepReport && step.State == marker.StateError {
				assert.Assert(t, step.Message != "", "an error says what is wrong")
			}
			if step.Kind == next.StepCommand && step.Command != next.CommandRefresh && v.Intent.Action != marker.ActionResetState {
				assert.Equal(t, v.Affirmed, v.Intent.ID, "nothing but a refresh without an accepted busy")
			}
		})
	}
}

func TestDecideWithoutIntent(t *testing.T) {
	none := with(func(v *next.View) { v.Intent = marker.Intent{} })
	check(t, "", []line{
		{"facts are fresh", []change{none}, "rest"},
		{"facts are due", []change{none, with(func(v *next.View) { v.RefreshTried = now.Add(-time.Hour) })}, "ask refresh"},
		{"a fresh process", []change{none, with(func(v *next.View) { v.RefreshTried = time.Time{} })}, "ask refresh"},
		{"facts are due and the host is busy", []change{none, locked(0), with(func(v *next.View) { v.RefreshTried = time.Time{} })}, "wait"},
		{"an action of a newer controller is not acted on", []change{with(func(v *next.View) { v.Intent.Action = "defrost" })}, "rest"},
	})
}

func TestDecideStabilize(t *testing.T) {
	check(t, marker.ActionStabilize, []line{
		{"a host that was looked at", nil, "say ready"},
		{"answered", []change{answered(marker.StateReady)}, "rest"},
		{"a host that was never refreshed has no facts yet", []change{with(func(v *next.View) { v.RefreshTried = time.Time{} })}, "ask refresh"},
		{"the refresh is under way", []change{asked(next.CommandRefresh, "t1")}, "wait"},
		{"the refresh failed, and an update is known: it is no less stable", []change{host(next.HostIdle, failed(next.CommandRefresh, "no route"))}, "say ready"},
		{"the refresh failed, and none is known: that isn't up to date", []change{unoffered, host(next.HostIdle, failed(next.CommandRefresh, "no route"))}, "say error: refreshing what is available: no route"},
		{"which is told once", []change{unoffered, host(next.HostIdle, failed(next.CommandRefresh, "no route")), answered(marker.StateError),
			with(func(v *next.View) { v.Report.Message = "refreshing what is available: no route" })}, "rest"},
		{"and told anew when it is another", []change{unoffered, host(next.HostIdle, failed(next.CommandRefresh, "no route")), answered(marker.StateError)}, "say error: refreshing what is available: no route"},
		{"as it is written, without its double spaces and its end, and then it is asked again", []change{unoffered, endless, answered(marker.StateError), func(v *next.View) {
			v.Report.Message = marker.Clip("refreshing what is available: "+v.Host.Last.Problem, marker.MaxMessage)
			v.RefreshTried = v.Now.Add(-time.Hour)
		}}, "ask refresh"},
		{"also if it was up to date before", []change{unoffered, host(next.HostIdle, failed(next.CommandRefresh, "no route")), answered(marker.StateReady)}, "say error: refreshing what is available: no route"},
		{"the refresh left no record", []change{unoffered, host(next.HostIdle, next.LastCommand{}), asked(next.CommandRefresh, ""), unchanged(3)}, "say error: refreshing what is available: the host's command ended without a record"},
		{"the refresh is done, and nothing is offered", []change{unoffered, host(next.HostIdle, refreshed), asked(next.CommandRefresh, "t0"), unchanged(3)}, "say ready"},
		{"the refresh was asked for, and the host has not looked", []change{unoffered, host(next.HostUninitialized, next.LastCommand{})}, "say error: refreshing what is available: the host has not looked since it booted"},
		{"the refresh is called done, and names no release (F34): that isn't up to date", []change{unoffered, silent}, "say error: refreshing what is available: the refresh succeeded but listed no release..."},
		{"an update that is known stands then", []change{silent}, "say ready"},
		{"the host is busy, and the answer isn't left to the next refresh", []change{locked(0)}, "wait"},
		{"the host is busy for too long", []change{locked(26 * time.Minute), answered(marker.StateReady)}, "say error: the host has been busy..."},
		{"which is told once", []change{locked(26 * time.Minute), answered(marker.StateError)}, "rest"},
		{"an activation that this agent did not ask for", []change{host(next.HostReady, refreshed)}, "say error UnrequestedActivation: the host has activated 1.2.0..."},
		{"one that was told already", []change{host(next.HostReady, refreshed), answered(marker.StateError),
			with(func(v *next.View) {
				v.Report.Reason = marker.ReasonUnrequestedActivation
				v.Report.Message = "the host has activated 1.2.0, and no update on its Node asked for it"
			})}, "rest"},
		{"one that an older agent told, without its reason", []change{host(next.HostReady, refreshed), answered(marker.StateError),
			with(func(v *next.View) {
				v.Report.Message = "the host has activated 1.2.0, and no update on its Node asked for it"
			})}, "say error UnrequestedActivation: the host has activated 1.2.0..."},
		{"an activation outside the API", []change{with(func(v *next.View) { v.Host.ForeignBoot = true })}, "say error AnotherUpdater: the host will boot another..."},
		{"one that was not what was told", []change{host(next.HostReady, refreshed), answered(marker.StateError)}, "say error UnrequestedActivation: the host has activated 1.2.0..."},
		{"it has gone again", []change{answered(marker.StateError)}, "say ready"},
		{"a host that can't update in place", []change{with(func(v *next.View) { v.Unsupported = "no route" })}, "say error InterfaceUnsupported: in-place updates are not supported..."},
	})
}

func TestDecidePrepare(t *testing.T) {
	check(t, marker.ActionPrepareUpdate, []line{
		{"busy before the host is touched", nil, "say busy"},
		{"busy of an earlier process has to be accepted once more", []change{answered(marker.StateBusy)}, "say busy: taken up by the agent that started at 2026-09-20T09:00:00Z"},
		{"then the host is asked", []change{affirmed}, "ask prepare"},
		{"it works", []change{affirmed, asked(next.CommandPrepare, "t1"), locked(time.Minute)}, "wait"},
		{"its own command takes longer than the patience with others'", []change{affirmed, asked(next.CommandPrepare, "t1"), locked(40 * time.Minute)}, "wait"},
		{"another intent's command takes longer", []change{affirmed, askedFor("6", next.CommandPrepare, "t1"), locked(26 * time.Minute)}, "say error: the host has been busy..."},
		{"another intent's command is none of its own", []change{affirmed, askedFor("6", next.CommandPrepare, "t1")}, "ask prepare"},
		{"nor is how that ended", []change{affirmed, askedFor("6", next.CommandPrepare, "t1"), host(next.HostAvailable, failed(next.CommandPrepare, "disk"))}, "ask refresh"},
		{"beside its refresh", []change{affirmed, asked(next.CommandRefresh, "t1")}, "ask prepare"},
		{"after its refresh", []change{affirmed, asked(next.CommandRefresh, "t0")}, "ask prepare"},
		{"another process's command takes long", []change{locked(20 * time.Minute)}, "wait"},
		{"another process's command takes too long", []change{locked(26 * time.Minute)}, "say error: the host has been busy..."},
		{"done", []change{affirmed, asked(next.CommandPrepare, "t1"), host(next.HostStaged, written)}, "say ready"},
		{"done, by a process that died meanwhile", []change{answered(marker.StateBusy), host(next.HostStaged, written)}, "say ready"},
		{"another version was written", []change{affirmed, asked(next.CommandPrepare, "t1"), host(next.HostStaged, next.LastCommand{Command: next.CommandPrepare, Success: true, Timestamp: "t2", Started: v3})},
			"say error: staging 1.2.0: the host wrote 1.3.0..."},
		{"nothing was written: a phantom stage", []change{affirmed, asked(next.CommandPrepare, "t1"), host(next.HostStaged, next.LastCommand{Command: next.CommandPrepare, Success: true, Timestamp: "t2"})},
			"say error: staging 1.2.0: the host wrote nothing"},
		{"failed", []change{affirmed, asked(next.CommandPrepare, "t1"), host(next.HostAvailable, failed(next.CommandPrepare, "disk"))}, "say error: staging 1.2.0: disk"},
		{"failed without a word", []change{affirmed, asked(next.CommandPrepare, "t1"), host(next.HostAvailable, failed(next.CommandPrepare, ""))}, "say error: staging 1.2.0: the host printed no error"},
		{"refused", []change{affirmed, asked(next.CommandPrepare, "t1"), unchanged(9), with(func(v *next.View) { v.Asked.Refused = "no" })}, "say error: staging 1.2.0: the host refused the command: no"},
		{"no record yet", []change{affirmed, asked(next.CommandPrepare, "t1"), unchanged(2)}, "wait"},
		{"no record at all", []change{affirmed, asked(next.CommandPrepare, "t1"), unchanged(3)}, "say error: staging 1.2.0: the host's command ended without a record"},
		{"a stage of unknown origin is no proof", []change{host(next.HostStaged, refreshed)}, "say busy"},
		{"a choice that isn't known is refreshed", []change{host(next.HostAvailable, failed(next.CommandPrepare, "disk"))}, "ask refresh"},
		{"a host that has just booted is refreshed", []change{host(next.HostUninitialized, next.LastCommand{})}, "ask refresh"},
		{"another choice is refreshed once", []change{with(func(v *next.View) { v.Host.Chosen = v3 })}, "ask refresh"},
		{"and is then an error", []change{with(func(v *next.View) { v.Host.Chosen = v3 }), asked(next.CommandRefresh, "t0")}, "say error: the host does not offer 1.2.0 any more"},
		{"a refresh that failed", []change{host(next.HostIdle, failed(next.CommandRefresh, "no route")), asked(next.CommandRefresh, "t1")}, "say error: refreshing what is available: no route"},
		{"a refresh that is called done and names no release (F34)", []change{silent, asked(next.CommandRefresh, "t1")}, "say error: refreshing what is available: the refresh succeeded but listed no release..."},
		{"another version found activated is deactivated, after busy", []change{host(next.HostReady, refreshed)}, "say busy"},
		{"and only then", []change{host(next.HostReady, refreshed), affirmed}, "ask deactivate"},
		{"which can fail", []change{host(next.HostReady, failed(next.CommandDeactivate, "no")), affirmed, asked(next.CommandDeactivate, "t1")}, "say error: deactivating 1.2.0: no"},
		{"ready and untouched", []change{answered(marker.StateReady), host(next.HostStaged, written)}, "rest"},
		{"ready and refreshed since", []change{answered(marker.StateReady), host(next.HostStaged, refreshed)}, "rest"},
		{"ready, and gone by a reboot: never a second staging", []change{answered(marker.StateReady), booted(v1)}, "say error: the staged update is gone..."},
		{"ready, and overwritten without a word of it in the record", []change{answered(marker.StateReady), host(next.HostStaged, next.LastCommand{Command: next.CommandPrepare, Success: true, Timestamp: "t9", Started: v3})}, "say error: the staged update is gone..."},
		{"ready, and overwritten by another process", []change{answered(marker.StateReady), host(next.HostStaged, written), with(func(v *next.View) { v.Host.Staged = v3 })}, "say error: the staged update is gone..."},
		{"an error stands", []change{answered(marker.StateError)}, "rest"},
		{"already on the target", []change{booted(v2)}, "say ready: already running 1.2.0"},
		{"on the target by another's reboot after an error", []change{answered(marker.StateError), booted(v2)}, "say ready: already running 1.2.0"},
	})
}

// A node that has waited for its turn may have a repository that is down by now, and an activation needs it.
func TestDecideConfirm(t *testing.T) {
	staged := host(next.HostStaged, written)
	looked := with(func(v *next.View) {
		v.Host.State, v.Host.Staged, v.Host.Chosen, v.Host.ChosenKnown = next.HostStaged, v2, v2, true
		v.Host.Last = next.LastCommand{Command: next.CommandRefresh, Success: true, Timestamp: "t3"}
	})
	down := host(next.HostStaged, next.LastCommand{Command: next.CommandRefresh, Timestamp: "t9", Problem: "no route", OfRepository: true})
	told := with(func(v *next.View) {
		answered(marker.StateBusy)(v)
		v.Report.Reason = marker.ReasonRepositoryUnavailable
		v.Report.Message = "refreshing what is available: no route"
	})
	check(t, marker.ActionConfirmUpdate, []line{
		{"the repository is asked", []change{staged}, "ask refresh"},
		{"it is asked again for this intent, however lately for another", []change{looked, askedFor("6", next.CommandRefresh, "t2")}, "ask refresh"},
		{"it is at it", []change{locked(time.Second), asked(next.CommandRefresh, "t2")}, "wait"},
		{"another process's command takes too long", []change{locked(26 * time.Minute)}, "say error: the host has been busy..."},
		{"it answers, and what is staged stands", []change{looked, asked(next.CommandRefresh, "t2")}, "say ready"},
		{"the refresh fails by itself", []change{host(next.HostStaged, failed(next.CommandRefresh, "no route")), asked(next.CommandRefresh, "t2")}, "say error: refreshing what is available: no route"},
		{"it is down: what is staged stands, and the host's word is told", []change{down, asked(next.CommandRefresh, "t2")}, "say busy RepositoryUnavailable: refreshing what is available: no route"},
		{"what it said before is no answer", []change{down, asked(next.CommandRefresh, "t9"), unchanged(1)}, "wait"},
		{"which is told once", []change{down, asked(next.CommandRefresh, "t2"), told}, "wait"},
		{"and tried again", []change{down, asked(next.CommandRefresh, "t2"), told, with(func(v *next.View) { v.Asked.At = v.Now.Add(-2 * time.Minute) })}, "ask refresh"},
		{"by a new process at once", []change{down, told}, "ask refresh"},
		{"it is back", []change{looked, told, asked(next.CommandRefresh, "t2")}, "say ready"},
		{"not for ever", []change{down, asked(next.CommandRefresh, "t2"), told, with(func(v *next.View) { v.Intent.Until = v.Now.Add(time.Minute) })}, "say error: refreshing what is available: no route"},
		{"the host was rebooted while it was down", []change{booted(v1), told}, "say error: the staged update is gone..."},
		{"the target runs, by another's reboot", []change{booted(v2)}, "say ready: already running 1.2.0"},
		{"also after the answer", []change{booted(v2), answered(marker.StateReady)}, "ask refresh"},
		{"the refresh left no record", []change{staged, asked(next.CommandRefresh, "t2"), unchanged(3)}, "say error: refreshing what is available: the host's command ended without a record"},
		{"it offers another version", []change{looked, asked(next.CommandRefresh, "t2"), with(func(v *next.View) { v.Host.Chosen = v3 })}, "say error: the host does not offer 1.2.0 any more"},
		{"the host was rebooted", []change{booted(v1)}, "say error: the staged update is gone..."},
		{"the host was rebooted and refreshed", []change{booted(v1), host(next.HostAvailable, refreshed)}, "say error: the staged update is gone..."},
		{"another process staged another version", []change{staged, with(func(v *next.View) { v.Host.Staged = v3 })}, "say error: the staged update is gone..."},
		{"a stage of unknown origin is no proof", []change{looked, with(func(v *next.View) { v.Report.State = marker.StateError })}, "say error: the staged update is gone..."},
		{"answered", []change{answered(marker.StateReady), looked}, "rest"},
		{"answered, and gone since", []change{answered(marker.StateReady), booted(v1)}, "say error: the staged update is gone..."},
		{"an error stands", []change{answered(marker.StateError), looked}, "rest"},
	})
}

func TestDecideReboot(t *testing.T) {
	staged := host(next.HostStaged, written)
	active := host(next.HostReady, next.LastCommand{Command: next.CommandActivate, Success: true, Timestamp: "t3"})
	late := with(func(v *next.View) { v.Intent.Until = v.Now })
	fresh := with(func(v *next.View) { v.Started = v.Now.Add(-time.Minute) })
	told := with(func(v *next.View) { v.Report.ActivatedID = id })
	overwritten := next.LastCommand{Command: next.CommandPrepare, Success: true, Timestamp: "t9", Started: v3}
	repositoryDown := with(func(v *next.View) {
		host(next.HostStaged, failed(next.CommandActivate, "Metadata error"))(v)
		v.Host.Last.OfRepository = true
	})
	just := with(func(v *next.View) { v.Asked.At = v.Now.Add(-time.Second) })
	check(t, marker.ActionRebootUpdate, []line{
		{"the stage is proven: busy before the host is touched", []change{staged}, "say busy"},
		{"the stage was answered ready in this boot", []change{host(next.HostStaged, refreshed)}, "say busy"},
		{"the stage was answered ready in another boot", []change{host(next.HostStaged, refreshed), with(func(v *next.View) { v.Report.BootID = "b0" })}, "say error: 1.2.0 is not staged..."},
		{"nothing is staged", nil, "say error: 1.2.0 is not staged..."},
		{"another version is staged", []change{staged, with(func(v *next.View) { v.Host.Staged = v3 })}, "say error: 1.2.0 is not staged..."},
		{"the host is busy", []change{locked(time.Minute)}, "wait"},
		{"the host is busy for too long", []change{locked(26 * time.Minute)}, "say error: the host has been busy..."},
		{"activate", []change{staged, affirmed}, "ask activate"},
		{"activating", []change{staged, affirmed, asked(next.CommandActivate, "t2")}, "wait"},
		{"another intent's activation", []change{staged, affirmed, askedFor("6", next.CommandActivate, "t2")}, "ask activate"},
		{"an activation of which another command took the record", []change{staged, affirmed, asked(next.CommandActivate, "t0")}, "ask activate"},
		{"activation failed", []change{affirmed, asked(next.CommandActivate, "t2"), host(next.HostStaged, failed(next.CommandActivate, "blank"))}, "say error: activating 1.2.0: blank"},
		{"activation failed on the repository", []change{affirmed, asked(next.CommandActivate, "t2"), repositoryDown, just}, "say busy RepositoryUnavailable: Metadata error"},
		{"which was told", []change{affirmed, asked(next.CommandActivate, "t2"), repositoryDown, just, with(func(v *next.View) {
			v.Report.Reason, v.Report.Message = marker.ReasonRepositoryUnavailable, "Metadata error"
		})}, "wait"},
		{"which lasts until half a minute after it", []change{affirmed, asked(next.CommandActivate, "t2"), repositoryDown,
			with(func(v *next.View) { v.Asked.At = v.Now.Add(-30 * time.Second) })}, "ask activate"},
		{"which passes: activate again", []change{affirmed, asked(next.CommandActivate, "t2"), repositoryDown}, "ask activate"},
		{"but not for longer than the intent", []change{affirmed, asked(next.CommandActivate, "t2"), repositoryDown, with(func(v *next.View) { v.Intent.Until = v.Now.Add(2 * time.Minute) })}, "say error: activating 1.2.0: Metadata error"},
		{"another version was written behind its back, and the host's record does not say so", []change{host(next.HostStaged, overwritten), affirmed, asked(next.CommandActivate, "t1")},
			"say error AnotherUpdater: 1.3.0 was prepared on the host instead of 1.2.0"},
		{"before busy too", []change{host(next.HostStaged, overwritten)}, "say error: 1.2.0 is not staged..."},
		{"activated: that is told first", []change{active, affirmed, asked(next.CommandActivate, "t2"), just}, "facts"},
		{"activated and told: reboot", []change{active, affirmed, asked(next.CommandActivate, "t2"), just, told}, "ask reboot"},
		{"activated, and it can't be told", []change{active, affirmed, asked(next.CommandActivate, "t2"), with(func(v *next.View) { v.Asked.At = v.Now.Add(-5 * time.Minute) })}, "ask reboot"},
		{"asked to reboot: only time tells", []change{active, affirmed, asked(next.CommandReboot, "t3")}, "wait"},
		{"never a second reboot for one intent by one process", []change{staged, affirmed, asked(next.CommandReboot, "t3")}, "wait"},
		{"ten minutes after the last request", []change{active, affirmed, asked(next.CommandReboot, "t3"), with(func(v *next.View) { v.Asked.At = v.Now.Add(-11 * time.Minute) })}, "say error: the host did not reboot within..."},
		{"a new process touches nothing before its busy was accepted", []change{active, answered(marker.StateBusy)}, "say busy: taken up by the agent that started at 2026-09-20T09:00:00Z"},
		{"too late to begin, the predecessor's reboot may come", []change{active, answered(marker.StateBusy), late, fresh}, "wait"},
		{"too late, and it didn't come", []change{active, answered(marker.StateBusy), late}, "say error: the host did not reboot in time"},
		{"another version was activated: no reboot into it", []change{active, affirmed, asked(next.CommandActivate, "t2"), with(func(v *next.View) { v.Host.Staged = v3 })}, "say error: the host has 1.3.0 staged..."},
		{"a new process can't know yet if the reboot comes", []change{active, affirmed, fresh, with(func(v *next.View) { v.Host.Staged = v3 })}, "wait"},
		{"the stage is gone after busy", []change{affirmed}, "say error: nothing is staged..."},
		{"back on the target", []change{affirmed, booted(v2)}, "say ready"},
		{"back on the target and told", []change{booted(v2), answered(marker.StateReady), with(func(v *next.View) { v.RefreshTried = v.Now })}, "rest"},
		{"back on the target after a late error", []change{booted(v2), answered(marker.StateError)}, "say ready"},
		{"rebooted by another before it was asked", []change{booted(v2)}, "say ready"},
		{"its power was lost before it was asked", []change{booted(v1)}, "say error: the host was rebooted before 1.2.0 was activated"},
		{"its power was lost after busy", []change{affirmed, booted(v1)}, "say error: the host was rebooted before 1.2.0 was activated"},
		{"rolled back", []change{affirmed, told, booted(v1)}, "say error: the host came back with 1.1.0 instead of 1.2.0..."},
		{"another version was activated behind its back", []change{affirmed, told, booted(v3)}, "say error AnotherUpdater: the host came back with 1.3.0..."},
		{"fell back after it was ready", []change{answered(marker.StateReady), told, booted(v1)}, "say error: the host came back with 1.1.0..."},
		{"an error before the reboot stands", []change{staged, answered(marker.StateError)}, "rest"},
	})
}

// Asked to reboot into the version that runs, an agent reboots without an activation, once and after its busy (S3), and
// only where nothing else would boot.
func TestDecideCycle(t *testing.T) {
	cycle := with(func(v *next.View) { v.Intent.Target = v1 })
	idle := host(next.HostIdle, refreshed)
	staged := host(next.HostStaged, written)
	active := host(next.HostReady, next.LastCommand{Command: next.CommandActivate, Success: true, Timestamp: "t3"})
	foreign := with(func(v *next.View) { v.Host.ForeignBoot = true })
	unknown := host(next.HostUninitialized, next.LastCommand{})
	fresh := with(func(v *next.View) { v.Started = v.Now.Add(-time.Minute) })
	late := with(func(v *next.View) { v.Intent.Until = v.Now })
	check(t, marker.ActionRebootUpdate, []line{
		{"busy before the host is touched", []change{cycle, idle}, "say busy"},
		{"what is staged, and not activated, is nothing that boots", []change{cycle, staged}, "say busy"},
		{"another set is activated", []change{cycle, active}, "say error UnrequestedActivation: the host has activated 1.2.0..."},
		{"outside the API", []change{cycle, idle, foreign}, "say error AnotherUpdater: the host will boot another..."},
		{"the host does not say what boots next", []change{cycle, unknown}, "say error: the host does not say..."},
		{"the host is busy: it isn't known what boots next", []change{cycle, locked(time.Minute)}, "wait"},
		{"the reboot alone", []change{cycle, idle, affirmed}, "ask reboot"},
		{"activated after busy", []change{cycle, active, affirmed}, "say error UnrequestedActivation: the host has activated 1.2.0..."},
		{"a new process can't know if its predecessor asked", []change{cycle, active, affirmed, fresh}, "wait"},
		{"outside the API after busy", []change{cycle, idle, foreign, affirmed}, "say error AnotherUpdater..."},
		{"the host is busy after busy", []change{cycle, affirmed, locked(time.Minute)}, "wait"},
		{"asked: only time tells", []change{cycle, idle, affirmed, asked(next.CommandReboot, "t1")}, "wait"},
		{"ten minutes after", []change{cycle, idle, affirmed, asked(next.CommandReboot, "t1"), with(func(v *next.View) { v.Asked.At = v.Now.Add(-11 * time.Minute) })},
			"say error: the host did not reboot within..."},
		{"a new process has its busy accepted first", []change{cycle, idle, answered(marker.StateBusy)}, "say busy: taken up..."},
		{"too late to begin", []change{cycle, idle, answered(marker.StateBusy), late, fresh}, "wait"},
		{"back", []change{cycle, affirmed, booted(v1)}, "say ready"},
		{"rebooted by another before it was asked", []change{cycle, booted(v1)}, "say ready"},
		{"back with another version", []change{cycle, affirmed, booted(v3)}, "say error AnotherUpdater: the host, which ran 1.1.0..."},
		{"an error before the reboot stands", []change{cycle, idle, answered(marker.StateError)}, "rest"},
	})
	check(t, marker.ActionPrepareUpdate, []line{{"nothing is staged for it", []change{cycle, idle}, "say ready: already running 1.1.0"}})
}

func TestDecideReset(t *testing.T) {
	active := host(next.HostReady, refreshed)
	check(t, marker.ActionResetState, []line{
		{"nothing is activated", nil, "say ready"},
		{"a stage may stay", []change{host(next.HostStaged, written)}, "say ready"},
		{"what is activated is undone", []change{active}, "ask deactivate"},
		{"undoing", []change{active, asked(next.CommandDeactivate, "t1")}, "wait"},
		{"another intent's undoing", []change{active, askedFor("6", next.CommandDeactivate, "t1")}, "ask deactivate"},
		{"undoing, of which another command took the record", []change{active, asked(next.CommandDeactivate, "t0")}, "ask deactivate"},
		{"undone", []change{host(next.HostStaged, next.LastCommand{Command: next.CommandDeactivate, Success: true, Timestamp: "t4"}), asked(next.CommandDeactivate, "t1")}, "say ready"},
		{"it failed", []change{host(next.HostReady, failed(next.CommandDeactivate, "no")), asked(next.CommandDeactivate, "t1")}, "say error: deactivating 1.2.0: no"},
		{"it failed and is tried again, without end", []change{host(next.HostReady, failed(next.CommandDeactivate, "no")), answered(marker.StateError), asked(next.CommandDeactivate, "t1")}, "ask deactivate"},
		{"after an error it can still come true", []change{answered(marker.StateError)}, "say ready"},
		{"the host is busy", []change{locked(20 * time.Minute)}, "wait"},
		{"the host is busy for too long", []change{locked(time.Hour)}, "say error: the host has been busy..."},
		{"and still is", []change{locked(time.Hour), answered(marker.StateError)}, "wait"},
		{"answered", []change{answered(marker.StateReady)}, "rest"},
	})
}

// Every patience ends at its moment and no earlier.
func TestPatience(t *testing.T) {
	active := host(next.HostReady, next.LastCommand{Command: next.CommandActivate, Success: true, Timestamp: "t3"})
	down := func(c next.Command) change {
		last := failed(c, "down")
		last.OfRepository = true
		return host(next.HostStaged, last)
	}
	told := func(message string) change {
		return func(v *next.View) { v.Report.Reason, v.Report.Message = marker.ReasonRepositoryUnavailable, message }
	}
	askedAgo := func(c next.Command, d time.Duration) change {
		return func(v *next.View) { v.Asked = next.Asked{Command: c, ID: id, At: now.Add(-d), Before: "t1"} }
	}
	startedAgo := func(d time.Duration) change { return func(v *next.View) { v.Started = now.Add(-d) } }
	left := func(d time.Duration) change { return func(v *next.View) { v.Intent.Until = now.Add(d) } }
	for _, tc := range []struct {
		name   string
		action marker.Action
		when   func(d time.Duration) []change
		// last is for how long the first step is taken, up to the nanosecond.
		last        time.Duration
		first, then string
	}{
		{"with a lock", marker.ActionStabilize, func(d time.Duration) []change { return []change{locked(d)} }, 25 * time.Minute, "wait", "say error: the host has been busy..."},
		{"with a lock, before a reboot", marker.ActionRebootUpdate, func(d time.Duration) []change { return []change{affirmed, locked(d)} }, 25 * time.Minute, "wait", "say error: the host has been busy..."},
		{"with a reboot", marker.ActionRebootUpdate, func(d time.Duration) []change { return []change{active, affirmed, askedAgo(next.CommandReboot, d)} },
			10 * time.Minute, "wait", "say error: the host did not reboot within..."},
		{"with a predecessor's reboot", marker.ActionRebootUpdate, func(d time.Duration) []change {
			return []change{active, answered(marker.StateBusy), left(0), startedAgo(d)}
		},
			10 * time.Minute, "wait", "say error: the host did not reboot in time"},
		{"with a predecessor's reboot, on a host that was changed", marker.ActionRebootUpdate, func(d time.Duration) []change { return []change{affirmed, startedAgo(d)} },
			10 * time.Minute, "wait", "say error: nothing is staged..."},
		{"with the beginning of a reboot", marker.ActionRebootUpdate, func(d time.Duration) []change {
			return []change{active, answered(marker.StateBusy), left(time.Hour - d)}
		},
			time.Hour - 1, "say busy: taken up by...", "say error: the host did not reboot in time"},
		{"with the report of an activation", marker.ActionRebootUpdate, func(d time.Duration) []change { return []change{active, affirmed, askedAgo(next.CommandActivate, d)} },
			5*time.Minute - 1, "facts", "ask reboot"},
		{"with a repository, before another activation", marker.ActionRebootUpdate, func(d time.Duration) []change {
			return []change{affirmed, down(next.CommandActivate), askedAgo(next.CommandActivate, d), told("down")}
		}, 30*time.Second - 1, "wait", "ask activate"},
		{"with a repository, on activation", marker.ActionRebootUpdate, func(d time.Duration) []change {
			return []change{affirmed, down(next.CommandActivate), askedAgo(next.CommandActivate, time.Minute), left(time.Hour - d)}
		}, 58*time.Minute - 1, "ask activate", "say error: activating 1.2.0: down"},
		{"with a repository, on confirmation", marker.ActionConfirmUpdate, func(d time.Duration) []change {
			return []change{down(next.CommandRefresh), askedAgo(next.CommandRefresh, time.Minute), left(time.Hour - d)}
		}, 58*time.Minute - 1, "say busy RepositoryUnavailable: refreshing...", "say error: refreshing what is available: down"},
		{"with a repository, before another confirmation", marker.ActionConfirmUpdate, func(d time.Duration) []change {
			return []change{answered(marker.StateBusy), down(next.CommandRefresh), askedAgo(next.CommandRefresh, d), told("refreshing what is available: down")}
		}, 2*time.Minute - 1, "wait", "ask refresh"},
		{"with facts", marker.ActionStabilize, func(d time.Duration) []change {
			return []change{answered(marker.StateReady), func(v *next.View) { v.RefreshTried = now.Add(-d) }}
		}, 30*time.Minute - 1, "rest", "ask refresh"},
		{"with an activation that can't be undone", marker.ActionResetState, func(d time.Duration) []change {
			return []change{answered(marker.StateError), host(next.HostReady, failed(next.CommandDeactivate, "no")), askedAgo(next.CommandDeactivate, d)}
		}, time.Minute - 1, "wait", "ask deactivate"},
	} {
		check(t, tc.action, []line{{tc.name, tc.when(tc.last), tc.first}, {tc.name + ", which is over", tc.when(tc.last + 1), tc.then}})
	}
}

// An agent looks again at once at what may be short, seldom at what is long, and exactly when something is due.
func TestWaits(t *testing.T) {
	ago := func(d time.Duration) change { return func(v *next.View) { v.Asked.At = now.Add(-d) } }
	down := with(func(v *next.View) {
		v.Host.State, v.Host.Staged, v.Report.ActiveID, v.Report.State = next.HostStaged, v2, id, marker.StateBusy
		v.Host.ChosenKnown = false
		v.Host.Last = next.LastCommand{Command: v.Asked.Command, Timestamp: "t9", Problem: "down", OfRepository: true}
	})
	for _, tc := range []struct {
		name    string
		action  marker.Action
		changes []change
		want    time.Duration
	}{
		{"a command of its own", marker.ActionPrepareUpdate, []change{asked(next.CommandPrepare, "t1"), locked(0), ago(10 * time.Second)}, 250 * time.Millisecond},
		{"a refresh of its own accord", "", []change{func(v *next.View) { v.Intent.ID = "" }, asked(next.CommandRefresh, "t1"), locked(0), ago(0)}, 250 * time.Millisecond},
		{"a long one", marker.ActionPrepareUpdate, []change{asked(next.CommandPrepare, "t1"), locked(0), ago(10*time.Second + 1)}, 2 * time.Second},
		{"one that shows no record yet", marker.ActionPrepareUpdate, []change{affirmed, asked(next.CommandPrepare, "t1"), ago(0)}, 250 * time.Millisecond},
		{"one for this intent, under another's lock", marker.ActionConfirmUpdate, []change{asked(next.CommandRefresh, "t1"), locked(0), ago(0)}, 250 * time.Millisecond},
		{"another process's", marker.ActionConfirmUpdate, []change{locked(0)}, 2 * time.Second},
		{"a lock, when facts are due", "", []change{locked(0), func(v *next.View) { v.Intent.ID, v.RefreshTried = "", time.Time{} }}, 2 * time.Second},
		{"a lock, when an answer is", marker.ActionStabilize, []change{locked(0)}, 2 * time.Second},
		{"a reboot", marker.ActionRebootUpdate, []change{affirmed, asked(next.CommandReboot, "t1")}, 30 * time.Second},
		{"a predecessor's reboot", marker.ActionRebootUpdate, []change{answered(marker.StateBusy), func(v *next.View) { v.Started, v.Intent.Until = now, now }}, 30 * time.Second},
		{"a predecessor's reboot on a host that was changed", marker.ActionRebootUpdate, []change{affirmed, func(v *next.View) { v.Started = now }}, 30 * time.Second},
		{"an activation that can't be undone", marker.ActionResetState, []change{answered(marker.StateError), host(next.HostReady, failed(next.CommandDeactivate, "no")),
			asked(next.CommandDeactivate, "t1"), ago(time.Second)}, 30 * time.Second},
		{"a repository, before another confirmation", marker.ActionConfirmUpdate, []change{asked(next.CommandRefresh, "t1"), ago(30 * time.Second), down,
			func(v *next.View) {
				v.Report.Reason, v.Report.Message = marker.ReasonRepositoryUnavailable, "refreshing what is available: down"
			}}, 90 * time.Second},
		{"a repository, before another activation", marker.ActionRebootUpdate, []change{affirmed, asked(next.CommandActivate, "t1"), ago(10 * time.Second), down,
			func(v *next.View) {
				v.Report.Reason, v.Report.Message = marker.ReasonRepositoryUnavailable, "down"
			}}, 20 * time.Second},
		{"facts", marker.ActionStabilize, []change{answered(marker.StateReady), func(v *next.View) { v.RefreshTried = now.Add(-10 * time.Minute) }}, 20 * time.Minute},
	} {
		step := next.Decide(view(tc.action, tc.changes...))
		assert.Equal(t, step.After, tc.want, "%s: %+v", tc.name, step)
	}
}

// A refresh that fails withdraws nothing; one that finds nothing does.
func TestFactsOf(t *testing.T) {
	last := marker.Report{ActiveID: id, State: marker.StateReady, Available: v2, Current: v1, BootID: "b1"}
	for _, tc := range []struct {
		name      string
		host      next.Host
		available string
	}{
		{"a choice that is known", next.Host{Version: v1, State: next.HostAvailable, Chosen: v3, ChosenKnown: true, Last: refreshed}, v3},
		{"a locked host says nothing", next.Host{Version: v1, Locked: true}, v2},
		{"a refresh that failed says nothing", next.Host{Version: v1, State: next.HostIdle, Last: failed(next.CommandRefresh, "x")}, v2},
		{"a refresh that found nothing withdraws", next.Host{Version: v1, State: next.HostIdle, Last: refreshed}, ""},
		{"one that named no release at all withdraws nothing (F34)", next.Host{Version: v1, State: next.HostIdle, SawNothing: true, Last: refreshed}, v2},
		{"a staged host whose offer is withdrawn", next.Host{Version: v1, State: next.HostStaged, Staged: v2, ChosenKnown: true, Last: refreshed}, ""},
		{"what runs is no offer", next.Host{Version: v2, State: next.HostUninitialized}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.host.BootID = "b5"
			r := next.FactsOf(next.View{Report: last, Host: tc.host}, "build")
			assert.Equal(t, r, marker.Report{ActiveID: id, State: marker.StateReady, Available: tc.available, Current: tc.host.Version,
				BootID: "b5", Protocol: marker.Protocol, OperatorVersion: "build"})
		})
	}
}

// What a host lists and its settings are reported as they are, and stay as they were where it says nothing of them:
// while a command runs, after a boot, and with its data store locked down (F26).
func TestFactsOfSettings(t *testing.T) {
	last := marker.Report{Offered: "1.27.0,1.26.1", VersionLock: "latest", WaveSeed: "7"}
	r := next.FactsOf(next.View{Report: last, Host: next.Host{BootID: "b5", Version: v1, Locked: true}}, "build")
	assert.Assert(t, r.Offered == last.Offered && r.VersionLock == "latest" && r.WaveSeed == "7", "%+v", r)
	r = next.FactsOf(next.View{Report: last, Host: next.Host{BootID: "b5", Version: v1, Offered: "1.28.0,1.27.0,more", VersionLock: "v1.27.0", WaveSeed: "0"}}, "build")
	assert.Assert(t, r.Offered == "1.28.0,1.27.0,more" && r.VersionLock == "v1.27.0" && r.WaveSeed == "0", "%+v", r)
}

// The report remembers, over the boot that follows, that the target was activated for the intent to reboot, and nothing
// else does: a host that comes back without it was rolled back, or never got that far (S10).
func TestActivatedIsRemembered(t *testing.T) {
	active := host(next.HostReady, next.LastCommand{Command: next.CommandActivate, Success: true, Timestamp: "t3"})
	remembered := with(func(v *next.View) { v.Report.ActivatedID = id })
	for _, tc := range []struct {
		name    string
		action  marker.Action
		changes []change
		want    string
	}{
		{"not activated yet", marker.ActionRebootUpdate, []change{host(next.HostStaged, written)}, ""},
		{"activated", marker.ActionRebootUpdate, []change{active}, id},
		{"another version is", marker.ActionRebootUpdate, []change{active, with(func(v *next.View) { v.Host.Staged = v3 })}, ""},
		{"a locked host says nothing", marker.ActionRebootUpdate, []change{remembered, locked(0)}, id},
		{"deactivated before the reboot", marker.ActionRebootUpdate, []change{remembered, host(next.HostStaged, written)}, ""},
		{"after the boot", marker.ActionRebootUpdate, []change{remembered, booted(v1)}, id},
		{"after a boot into something else", marker.ActionRebootUpdate, []change{remembered, booted(v3)}, ""},
		{"after the boot, told once more", marker.ActionRebootUpdate, []change{remembered, booted(v1), with(func(v *next.View) { v.Report.BootID = "b2" })}, id},
		{"after a boot that came before", marker.ActionRebootUpdate, []change{booted(v1)}, ""},
		{"what another process activates after the boot is not it", marker.ActionRebootUpdate, []change{booted(v1), with(func(v *next.View) { v.Host.State, v.Host.Staged = next.HostReady, v2 })}, ""},
		{"for an intent before", marker.ActionRebootUpdate, []change{booted(v1), with(func(v *next.View) { v.Report.ActivatedID = "6" })}, ""},
		{"the attempt is over", marker.ActionStabilize, []change{remembered, active}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			assert.Equal(t, next.FactsOf(view(tc.action, tc.changes...), "build").ActivatedID, tc.want)
		})
	}
}

// What is written is what changes: an answer by its intent and state at least, facts without any word of an answer, and
// nothing where it stands already, but for a busy that this process hasn't had accepted.
func TestChanges(t *testing.T) {
	stands := map[string]string{}
	for k, v := range marker.EncodeReport(marker.Report{ActiveID: "6", State: marker.StateError, Message: "x", Available: v2, Current: v1, BootID: "b1",
		Protocol: marker.Protocol, OperatorVersion: "build"}) {
		stands[string(k)] = v
	}
	write := func(diff map[marker.Key]*string) {
		for k, v := range diff {
			if delete(stands, string(k)); v != nil {
				stands[string(k)] = *v
			}
		}
	}
	v := view(marker.ActionPrepareUpdate)
	facts, answer := next.Step{Kind: next.StepFacts}, next.Step{Kind: next.StepReport, State: marker.StateBusy}
	assert.Equal(t, len(next.Changes(v, facts, stands, "build")), 0, "no fact has changed")
	v.Host.BootID = "b2"
	diff := next.Changes(v, facts, stands, "build")
	assert.Assert(t, len(diff) == 1 && *diff[marker.KeyBootID] == "b2", "%v", diff)
	write(diff)
	diff = next.Changes(v, answer, stands, "build")
	assert.Assert(t, *diff[marker.KeyActiveID] == id && *diff[marker.KeyActionState] == "busy" && diff[marker.KeyMessage] == nil, "%v", diff)
	write(diff)
	diff = next.Changes(v, answer, stands, "build")
	assert.Assert(t, len(diff) == 2 && *diff[marker.KeyActiveID] == id && *diff[marker.KeyActionState] == "busy", "%v", diff)
	v.Affirmed = id
	assert.Equal(t, len(next.Changes(v, answer, stands, "build")), 0)
	v.Affirmed, answer.State = "", marker.StateReady
	write(next.Changes(v, answer, stands, "build"))
	assert.Equal(t, len(next.Changes(v, answer, stands, "build")), 0)
}
