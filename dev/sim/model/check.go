package model

import (
	"fmt"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent/next"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// wrong checks what holds for one node whatever happened.
func (m *Model) wrong(from, to *column) string {
	if from.cur == to.cur || !to.cur.exists {
		return ""
	}
	d := m.decodings.of(to.cur.marks)
	if len(d.problems) > 0 {
		return "S8: marks that can't be read: " + d.problems[0].String()
	}
	return ""
}

// mayGoDown checks a reboot by our command as it happens (S2).
func (m *Model) mayGoDown(c *column) string {
	switch {
	case c.host.leavingFor != "" && c.host.leavingFor == c.went:
		return "S3: a second reboot for one intent"
	case c.taken || !c.cur.exists:
		return ""
	case !c.cur.unschedulable:
		return "S2: the host goes down by our command and its node is not cordoned"
	case c.pod:
		return "S2: the host goes down by our command and a pod is left on it"
	}
	return ""
}

// mayReport checks a write that the proxy let through (S3, S4).
func mayReport(stands *decoded, diff map[marker.Key]*string, after map[string]string, answered bool) string {
	for k := range diff {
		if !marker.Owns(marker.WriterAgent, string(k)) {
			return "S4: the agent writes " + string(k)
		}
	}
	i := stands.marks.Intent
	if answered && (after[string(marker.KeyActiveID)] != i.ID || i.ID == "") {
		return fmt.Sprintf("S4: the agent answers %q while %q stands", after[string(marker.KeyActiveID)], i.ID)
	}
	if i.Action == marker.ActionRebootUpdate && answered && after[string(marker.KeyActionState)] == string(marker.StateBusy) {
		switch {
		case !now.Before(i.Until):
			return "S3: a reboot begins after intent-until"
		case stands.marks.Paused:
			return "S6: a reboot begins on a paused node"
		case stands.marks.Report.Answer(i.ID) == marker.StateError:
			return "S3: a reboot begins after it was answered error"
		}
	}
	return ""
}

// mayCommand checks what an agent asks its host for (S3).
func mayCommand(c *column, v next.View, command next.Command) string {
	switch command {
	case next.CommandPrepare:
		if v.Intent.Action != marker.ActionPrepareUpdate || c.agent.affirmed != v.Intent.ID {
			return "S3: prepare without busy for the intent accepted from this process"
		}
	case next.CommandActivate, next.CommandReboot:
		switch {
		case v.Intent.Action != marker.ActionRebootUpdate || c.agent.affirmed != v.Intent.ID || v.Intent.ID == "":
			return fmt.Sprintf("S3: %s without busy for the intent accepted from this process", command)
		case c.host.boot != v.Intent.RebootFrom:
			return fmt.Sprintf("S3: %s in another boot than the one to be left behind", command)
		case command == next.CommandReboot && c.agent.asked == v.Intent.ID:
			return "S3: a process asks twice for the reboot of one intent"
		}
	case next.CommandDeactivate:
		if a := v.Intent.Action; a != marker.ActionResetState && a != marker.ActionPrepareUpdate {
			return "S3: deactivate without an intent that asks for it"
		}
	case next.CommandLock:
		return "S5: a lock, which nothing here wishes for"
	case next.CommandRefresh:
	}
	return ""
}

// mayWrite checks what a controller writes to a node.
func (m *Model) mayWrite(from, to *column, step plan.Step) string {
	before, after := m.decodings.of(from.cur.marks), m.decodings.of(to.cur.marks)
	c := step.Change
	b, a := before.marks, after.marks
	if u := c.Unschedulable; u != nil && !*u && from.theirs {
		return "S5: a cordon is taken away that is not the operator's"
	}
	if b.Disruption != nil && a.Disruption == nil && to.cur.unschedulable != from.theirs {
		return fmt.Sprintf("S5: a disruption ends with unschedulable=%v, a user's cordon: %v", to.cur.unschedulable, from.theirs)
	}
	if u := c.Unschedulable; u != nil && *u && a.Disruption == nil {
		return "S5: a cordon without a record"
	}
	if b.Intent.Action == marker.ActionRebootUpdate && b.Report.Answer(b.Intent.ID) == marker.StateBusy && a.Intent.ID != b.Intent.ID &&
		from.cur.boot == b.Intent.RebootFrom && !c.RemoveAll {
		return "S3: an intent is taken back although its agent said busy"
	}
	if b.Intent.Action == marker.ActionRebootUpdate && c.RemoveAll && b.Report.Answer(b.Intent.ID) == marker.StateBusy &&
		from.cur.boot == b.Intent.RebootFrom && !from.overdue {
		return "S3: a node is left although its agent said busy"
	}
	if len(c.Marks.History) > 0 && step.Act != intent.ActLeave {
		if h := c.Marks.History[len(c.Marks.History)-1]; h.Outcome == marker.OutcomeUpdated && step.Act == intent.ActFinish {
			if bad := finishedWell(from.cur, b); bad != "" {
				return bad
			}
		}
	}
	if r := from.cur; step.Act == intent.ActReturn &&
		(!r.ready || r.boot == b.Intent.RebootFrom || r.boot != b.Report.BootID || r.os != b.Report.Current) {
		return "S7: a node counts as back before agent and kubelet name the same new boot"
	}
	if step.Act == intent.ActFinish && b.Intent.Target != "" && step.Reason != plan.ReasonUpdated {
		return "S7: an attempt ends without a word on it"
	}
	return ""
}

// finishedWell checks a claim of success (S7).
func finishedWell(r record, b marker.Marks) string {
	switch {
	case b.Report.Current != b.Intent.Target || r.os != b.Intent.Target:
		return fmt.Sprintf("S7: success is claimed for %s; the agent says %s, the kubelet %s", b.Intent.Target, b.Report.Current, r.os)
	case r.boot != b.Report.BootID || r.boot == b.Intent.RebootFrom:
		return fmt.Sprintf("S7: success is claimed in boot %s; the agent says %s, left behind was %s", r.boot, b.Report.BootID, b.Intent.RebootFrom)
	case !r.ready:
		return "S7: success is claimed for a node that is not Ready"
	case b.Disruption == nil || b.Disruption.Soak == nil || b.Disruption.Soak.Equal(now) || b.Disruption.Ready != r.readySince:
		return "S7: success is claimed before the soak was over"
	}
	return ""
}

// counts reports whether a step counts a failure, which nothing but a fault explains.
func (m *Model) countsFailure(from *column, step plan.Step) bool {
	b := m.decodings.of(from.cur.marks).marks
	f := step.Change.Marks.Failure
	return f != nil && (b.Failure == nil || f.Count > b.Failure.Count)
}

// finished reports whether nothing is left to do for a node.
func (m *Model) finished(c column) bool {
	if !c.cur.exists || !c.host.up || c.host.leaving || c.host.running != "" || c.agent.sent != (report{}) || c.orphan != (report{}) {
		return false
	}
	d := m.decodings.of(c.cur.marks)
	if d.marks.Disruption != nil || c.cur.unschedulable != c.theirs || len(d.problems) > 0 {
		return false
	}
	switch {
	case !c.cur.labelled:
		return d.marks.Intent.ID == "" && d.marks.Report.Protocol == 0 && !c.agent.up
	case d.marks.Paused:
		return true
	case c.adrift && d.marks.Report.State == marker.StateError && (d.marks.Report.Reason == marker.ReasonAnotherUpdater || d.marks.Report.Reason == marker.ReasonUnrequestedActivation):
		return true
	}
	// A failure may stand on: the update that was given up can still have come about, by a reboot.
	return intent.PhaseOf(d.marks) == intent.PhaseWaiting &&
		c.host.version == newVersion && d.marks.Report.Current == newVersion && c.cur.os == newVersion
}
