package lifecycle

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// maxFailedVersions bounds what a failure remembers.
const maxFailedVersions = 10

// change is one that is being made, for the node that v is of.
type change struct {
	plan.Change
	v *View
}

// newID is unique for each intent: a patch that carries it is only accepted on the resourceVersion
// that it names, and the time keeps it apart after an etcd restore.
func (v *View) newID() string {
	return v.ResourceVersion + "-" + strconv.FormatInt(v.Now.UnixMilli(), 36)
}

// keep returns a change that changes nothing yet. What it points to is copied, so that nothing done
// to it shows in the snapshot.
func (v *View) keep() *change {
	c := &change{plan.Change{ResourceVersion: v.ResourceVersion, Marks: v.Marks}, v}
	if d := v.Marks.Disruption; d != nil {
		copied := *d
		copied.Before, copied.Workloads = maps.Clone(d.Before), maps.Clone(d.Workloads)
		c.Marks.Disruption = &copied
	}
	if f := v.Marks.Failure; f != nil {
		copied := *f
		copied.Versions, copied.Broken = slices.Clone(f.Versions), slices.Clone(f.Broken)
		c.Marks.Failure = &copied
	}
	c.Marks.History = slices.Clone(v.Marks.History)
	c.Marks.PlanDone = maps.Clone(v.Marks.PlanDone)
	return c
}

// begin returns a change that issues a new intent.
func (v *View) begin(a marker.Action, until time.Duration, waiting plan.Reason, message string) *change {
	c := v.keep()
	i := &c.Marks.Intent
	i.ID, i.Action = v.newID(), a
	i.Time = v.Now.Truncate(time.Second)
	i.Until = i.Time.Add(until)
	i.Template = ""
	if l := c.Marks.Lock; l != nil && a == marker.ActionStabilize {
		// The wish is another intent's now, whose agent may find the host locked by this one.
		c.Marks.Lock = l.Changed(l.Want, l.GiveBack)
		c.Marks.Lock.Failures = l.Failures
	}
	c.wait(waiting, message)
	return c
}

// stabilize ends an attempt that changed nothing, or begins the first intent.
func (v *View) stabilize() *change {
	c := v.begin(marker.ActionStabilize, v.Settings.Deadlines.Staging, "", "")
	c.endTarget()
	c.Marks.Waiting = nil
	return c
}

const resettingMessage = "the agent undoes what is activated"

// reset asks the agent to undo what is activated.
func (v *View) reset() *change {
	return v.begin(marker.ActionResetState, v.Settings.Deadlines.Staging, plan.ReasonResetting, resettingMessage)
}

// leave removes all that is the operator's. It undoes what the operator did to the node if the record of that can be
// read.
func (v *View) leave(undo bool) *change {
	c := v.keep()
	if undo {
		c.uncordon()
		c.endProtection()
	}
	// Else it would stand for another attempt once the label is there again.
	c.DropCycle = v.Marks.Cycle != ""
	c.unlock()
	c.DropFresh = v.FreshTaint
	c.Marks = marker.Marks{}
	c.RemoveAll = true
	return c
}

// moment is now, as it is written to a Node.
func (v *View) moment() *time.Time { return new(v.Now.Truncate(time.Millisecond)) }

// wait writes what the node waits for.
func (c *change) wait(r plan.Reason, message string) {
	c.Marks.Waiting = &marker.Waiting{Reason: string(r), Message: marker.Clip(message, marker.MaxMessage)}
}

// cordon takes the node out of service, with a record of what stood there before in the same patch.
func (c *change) cordon(workloads map[string]int) {
	c.Marks.Intent.RebootFrom = c.v.BootID
	c.Marks.Disruption = &marker.Disruption{Since: *c.v.moment(), WasUnschedulable: c.v.Unschedulable, Workloads: workloads,
		From: c.v.from(), Fresh: c.v.Fresh()}
	if c.v.Marks.Cycles() {
		c.Marks.Disruption.Cycle = c.v.Marks.Cycle
	}
	c.protect()
	if c.v.cordons() {
		c.takeOut()
	}
}

// takeOut keeps new pods and load balancers away from the node.
func (c *change) takeOut() {
	c.exclude()
	if !c.v.Unschedulable {
		c.Unschedulable = new(true)
	}
}

// endTarget removes what the attempt was about.
func (c *change) endTarget() {
	i := &c.Marks.Intent
	i.Target, i.RebootFrom, i.Template = "", "", ""
	c.Marks.Plan = nil
}

// uncordon takes the operator's own cordon back and leaves every other. While the soak runs the operator's is taken
// back already, so one that stands then is another's. Load balancers may have the node back too.
func (c *change) uncordon() {
	c.include()
	if d := c.v.Marks.Disruption; d != nil && !d.WasUnschedulable && d.Soak == nil && c.v.Unschedulable && c.v.cordons() {
		c.Unschedulable = new(false)
	}
}

// fail counts a failure of this attempt against the node, and one after the version was booted against the version
// (S10): before that only the old version ran, and what failed was the host's repository, disk or lock, or its power.
// A cycle that failed stands in the history alone: it is not tried again, and says nothing of a version.
func (c *change) fail(r plan.Reason, message string, blamed bool) {
	v := c.v
	if v.Marks.Cycles() {
		c.end(marker.OutcomeFailed, r)
		return
	}
	f := c.Marks.Failure
	if f == nil {
		f = &marker.Failure{}
		c.Marks.Failure = f
	}
	version := v.Marks.Intent.Target
	f.Count++
	f.Reason, f.Message = string(r), marker.Clip(message, marker.MaxMessage)
	f.At = v.Now.Truncate(time.Second)
	f.RetryAfter = f.At.Add(v.Settings.BackOff(f.Count))
	f.Versions = remembered(f.Versions, version)
	if blamed {
		// Nothing starts for a version that too many nodes blame.
		f.Broken = remembered(f.Broken, version)
	}
	c.end(marker.OutcomeFailed, r)
}

// succeed ends the node's failures. What other versions are to blame for stays: nodes that are offered no better one
// yet must not be led into it.
func (c *change) succeed(r plan.Reason) {
	version := c.v.Marks.Intent.Target
	if f := c.Marks.Failure; f != nil {
		f.Broken = slices.DeleteFunc(f.Broken, func(v string) bool { return v == version })
		if len(f.Broken) == 0 {
			c.Marks.Failure = nil
		} else {
			f.Versions, f.Count, f.RetryAfter, f.Message = slices.Clone(f.Broken), 0, f.At, ""
		}
	}
	c.end(marker.OutcomeUpdated, r)
}

// remembered returns the versions with one more, which comes last wherever it was.
func remembered(versions []string, version string) []string {
	if version == "" {
		return versions
	}
	versions = append(slices.DeleteFunc(versions, func(v string) bool { return v == version }), version)
	return versions[max(0, len(versions)-maxFailedVersions):]
}

// end adds the end of the attempt to the node's history. The user's request ends with it, in the same patch: so there
// is at most one attempt for each, whatever crashes.
func (c *change) end(o marker.Outcome, r plan.Reason) {
	m := &c.v.Marks
	a := marker.Attempt{Version: m.Intent.Target, Outcome: o, Reason: string(r), Started: m.Intent.Time, Ended: c.v.Now.Truncate(time.Second), From: c.v.from()}
	if d := m.Disruption; d != nil {
		a.Started, a.From = d.Since, d.From
		a.Out, a.Pods = c.v.outOfService(), pods(d.Workloads)
	}
	a.Cycle = c.v.request()
	c.DropCycle = a.Cycle != "" && a.Cycle == m.Cycle
	c.Marks.History = remember(c.Marks.History, a)
	c.EndsAttempt = true
}

// outOfService is for how many seconds the operator has kept the node out of service. A second that has begun counts.
func (v *View) outOfService() int {
	d, until := v.Marks.Disruption, v.Now
	if d.Soak != nil {
		until = *d.Soak
	}
	if !v.cordons() {
		return 0
	}
	return max(0, int((until.Sub(d.Since)+time.Second-1)/time.Second))
}

func pods(workloads map[string]int) (all int) {
	for _, ready := range workloads {
		all += ready
	}
	return all
}

// from is the version of Bottlerocket that the node runs before the reboot; empty in an attempt of a plan.
func (v *View) from() string {
	if marker.PlanOf(v.Marks.Intent.Target) != "" {
		return ""
	}
	return v.OSVersion
}

// remember adds an attempt, for which the oldest is forgotten. A success before cycles is kept: by it is known since
// when the node runs its version.
func remember(h []marker.Attempt, a marker.Attempt) []marker.Attempt {
	h = append(h, a)
	oldest := len(h) - marker.HistoryLength
	if oldest <= 0 {
		return h
	}
	kept := h[oldest:]
	last := func(a marker.Attempt) bool { return a.Outcome == marker.OutcomeUpdated }
	if slices.ContainsFunc(kept, func(a marker.Attempt) bool { return a.Cycle != "" }) && !slices.ContainsFunc(kept, last) && last(h[oldest-1]) {
		kept[0] = h[oldest-1]
	}
	return kept
}

// retry forgets the node's failure, and lets its attempts so far hold up none, by the user's wish.
func (c *change) retry() {
	c.Marks.Failure, c.DropRetry = nil, true
	for i := len(c.Marks.History) - 1; i >= 0; i-- {
		if a := &c.Marks.History[i]; !a.Outcome.Succeeded() {
			a.Retried = true
			return
		}
	}
}

// failedIf returns the outcome of an attempt that is counted as a failure if that is true, and else is abandoned.
func failedIf(counted bool) marker.Outcome {
	if counted {
		return marker.OutcomeFailed
	}
	return marker.OutcomeAbandoned
}

// abandon undoes what was done to the node and asks for a reset. An attempt that failed is counted.
func (v *View) abandon(r plan.Reason, message string, o marker.Outcome) Next {
	c := v.reset()
	if o == marker.OutcomeFailed {
		c.fail(r, message, false)
	} else {
		c.end(o, r)
	}
	c.uncordon()
	c.endProtection()
	c.endHooks()
	c.endTarget()
	c.Marks.Disruption = nil
	return v.do(intent.ActAbandon, r, message, c).freeing(v.Disrupted() || v.Slot)
}

// exclude asks load balancers to send nothing to the node any more. Where the label stands already they don't.
func (c *change) exclude() {
	if _, stands := c.v.Labels[marker.LabelExcluded]; c.v.Rules.Balancers.Exclude && !stands {
		c.mark(c.v.Labels, &c.Labels, marker.LabelExcluded)
	}
}

// include takes that back.
func (c *change) include() { c.unmark(c.v.Labels, &c.Labels, marker.LabelExcluded) }

// protect asks autoscalers to leave the node alone.
func (c *change) protect() {
	if !c.v.Rules.Protect {
		return
	}
	for _, k := range marker.AutoscalerMarks() {
		c.mark(c.v.Autoscalers, &c.Annotations, k)
	}
}

// endProtection takes that back.
func (c *change) endProtection() {
	for _, k := range marker.AutoscalerMarks() {
		c.unmark(c.v.Autoscalers, &c.Annotations, k)
	}
}

// mark writes a mark for others and notes what stood there, in one patch. What couldn't be put back as it was, and
// what says the same already, is left alone.
func (c *change) mark(stands map[string]string, write *map[string]*string, key string) {
	var before *string
	if value, stood := stands[key]; stood {
		if value == marker.OthersValue || !marker.CanStandBefore(value) {
			return
		}
		before = &value
	}
	d := c.Marks.Disruption
	if d.Before == nil {
		d.Before = map[string]*string{}
	}
	d.Before[key] = before
	put(write, key, new(marker.OthersValue))
}

// unmark puts back what stood there before the operator's mark, if that still stands.
func (c *change) unmark(stands map[string]string, write *map[string]*string, key string) {
	if !c.v.Disrupted() {
		return
	}
	before, ours := c.v.Marks.Disruption.Before[key]
	if !ours {
		return
	}
	delete(c.Marks.Disruption.Before, key)
	if value, still := stands[key]; still && value == marker.OthersValue {
		put(write, key, before)
	}
}

func put(write *map[string]*string, key string, value *string) {
	if *write == nil {
		*write = map[string]*string{}
	}
	(*write)[key] = value
}
