package next

import (
	"cmp"
	"maps"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// FactsOf returns the report with the facts that the host shows. The last report's offer stays while the host shows
// none, so that a failed refresh doesn't withdraw an update; so does what else the host doesn't say now.
func FactsOf(v View, operatorVersion string) marker.Report {
	r, h := v.Report, v.Host
	r.ActivatedID = activatedID(v)
	r.Current, r.BootID = h.Version, h.BootID
	r.Protocol, r.OperatorVersion = marker.Protocol, operatorVersion
	switch {
	case h.ChosenKnown:
		r.Available = h.Chosen
	case h.State == HostIdle && h.Last.Command == CommandRefresh && h.Last.Success && !h.SawNothing:
		// The host looked, and nothing is offered: an earlier offer is withdrawn.
		r.Available = ""
	}
	if r.Available == h.Version {
		r.Available = ""
	}
	r.Offered = cmp.Or(h.Offered, r.Offered)
	r.VersionLock, r.WaveSeed = cmp.Or(h.VersionLock, r.VersionLock), cmp.Or(h.WaveSeed, r.WaveSeed)
	return r
}

// Changes returns what s changes of the node's annotations: the answer with the facts for a StepReport, the facts alone
// for any other step. It is empty if the node has all of that already.
func Changes(v View, s Step, annotations map[string]string, operatorVersion string) map[marker.Key]*string {
	r := FactsOf(v, operatorVersion)
	if s.Kind != StepReport {
		diff := changes(v, r, annotations)
		for _, k := range marker.AnswerKeys() {
			delete(diff, k)
		}
		return diff
	}
	r.ActiveID, r.State, r.Reason, r.Message = v.Intent.ID, s.State, s.Reason, s.Message
	diff := changes(v, r, annotations)
	// A busy of an earlier process doesn't count for this one: it writes its own, and has it accepted.
	if diff == nil && (s.State != marker.StateBusy || v.Affirmed == v.Intent.ID) {
		return nil
	}
	if diff == nil {
		diff = map[marker.Key]*string{}
	}
	// An answer always names its intent and its state, so that it can be judged by itself.
	id, state := r.ActiveID, string(r.State)
	diff[marker.KeyActiveID], diff[marker.KeyActionState] = &id, &state
	return diff
}

// changes returns what the report changes of the node's annotations; nil if nothing. An optional fact that is left out
// is neither set nor removed: both would be refused.
func changes(v View, r marker.Report, annotations map[string]string) map[marker.Key]*string {
	diff := marker.Diff(annotations, marker.EncodeReport(r), marker.WriterAgent)
	if !v.Now.Before(v.LeaveOut) {
		return diff
	}
	if diff, _ = WithoutOptional(diff); len(diff) == 0 {
		return nil
	}
	return diff
}

// WithoutOptional returns what is left of a patch without the optional facts, and whether any of those is in it.
func WithoutOptional(diff map[marker.Key]*string) (map[marker.Key]*string, bool) {
	rest := maps.Clone(diff)
	for _, k := range marker.OptionalKeys() {
		delete(rest, k)
	}
	return rest, len(rest) < len(diff)
}

// activatedID returns the intent's ID if the host was ready to boot the target at the last look in the boot that is to
// be left behind. It stays after the reboot, where it distinguishes a rollback from a loss of power. It is removed if
// the host comes back with a version that is neither the target nor the previous one: then something else was activated
// last.
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
