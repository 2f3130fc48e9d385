package next

import (
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// FactsOf turns what a host says into the facts of a report; the last report's offer stands while the
// host gives no word on it, so that a failed refresh doesn't withdraw an update.
func FactsOf(v View, operatorVersion string) marker.Report {
	r, h := v.Report, v.Host
	r.ActivatedID = activatedID(v)
	r.Current, r.BootID = h.Version, h.BootID
	r.Protocol, r.OperatorVersion = marker.Protocol, operatorVersion
	switch {
	case h.ChosenKnown:
		r.Available = h.Chosen
	case h.State == HostIdle && h.Last.Command == CommandRefresh && h.Last.Success && !h.SawNothing:
		// It looked, and nothing is offered: what was offered before is withdrawn.
		r.Available = ""
	}
	if r.Available == h.Version {
		r.Available = ""
	}
	return r
}

// Changes returns what s changes of the agent's annotations, given those that stand: the answer with the facts for a
// StepReport, the facts alone for any other step; none if all of that stands already.
func Changes(v View, s Step, stands map[string]string, operatorVersion string) map[marker.Key]*string {
	r := FactsOf(v, operatorVersion)
	if s.Kind != StepReport {
		diff := marker.Diff(stands, marker.EncodeReport(r), marker.WriterAgent)
		for _, k := range marker.AnswerKeys() {
			delete(diff, k)
		}
		return diff
	}
	r.ActiveID, r.State, r.Reason, r.Message = v.Intent.ID, s.State, s.Reason, s.Message
	diff := marker.Diff(stands, marker.EncodeReport(r), marker.WriterAgent)
	// Busy counts for this process only once it was accepted from this process, also if it stands there.
	if diff == nil && (s.State != marker.StateBusy || v.Affirmed == v.Intent.ID) {
		return nil
	}
	if diff == nil {
		diff = map[marker.Key]*string{}
	}
	// An answer always names intent and state, so that it can be judged by itself.
	id, state := r.ActiveID, string(r.State)
	diff[marker.KeyActiveID], diff[marker.KeyActionState] = &id, &state
	return diff
}

// activatedID is the intent that stands if the host was ready to boot its target when it was last seen in the boot that
// is to be left behind. It stays after that boot, where it tells a rollback from a loss of power, unless the host comes
// back with a version that it neither ran before nor was to boot: then something else was activated last.
func activatedID(v View) string {
	i, h, known := v.Intent, v.Host, v.Report.ActivatedID == v.Intent.ID
	first := h.BootID != i.RebootFrom && v.Report.BootID == i.RebootFrom
	switch {
	case i.Action != marker.ActionRebootUpdate:
	case h.BootID == i.RebootFrom && !h.Locked:
		if h.State == HostReady && h.Staged == i.Target {
			return i.ID
		}
	case known && first && h.Version != i.Target && h.Version != v.Report.Current:
	case known:
		return i.ID
	}
	return ""
}
