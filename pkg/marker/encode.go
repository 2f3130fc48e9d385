package marker

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plain"
)

// Encode returns the annotations that m's controller-owned part stands for.
func Encode(m Marks) map[Key]string {
	out := map[Key]string{}
	if i := m.Intent; i.ID != "" {
		out[KeyIntentID] = i.ID
		out[KeyActionWanted] = string(i.Action)
		out[KeyIntentTime] = formatTime(i.Time)
		out[KeyIntentUntil] = formatTime(i.Until)
		if i.Target != "" {
			out[KeyTargetVersion] = i.Target
		}
		if i.RebootFrom != "" {
			out[KeyRebootFrom] = i.RebootFrom
		}
		if i.Template != "" {
			out[KeyPlanTemplate] = i.Template
		}
	}
	if m.Plan != nil {
		out[KeyPlan] = marshal(m.Plan, m.Plan.extra)
	}
	if len(m.PlanDone) > 0 {
		out[KeyPlanDone] = marshal(m.PlanDone, nil)
	}
	if m.Disruption != nil {
		out[KeyDisruption] = marshal(m.Disruption, m.Disruption.extra)
	}
	if m.Failure != nil {
		out[KeyFailure] = marshal(m.Failure, m.Failure.extra)
	}
	if len(m.History) > 0 {
		out[KeyHistory] = encodeHistory(m.History)
	}
	if m.Waiting != nil {
		out[KeyWaitingFor] = m.Waiting.Reason
		if m.Waiting.Message != "" {
			out[KeyWaitingFor] += ": " + Clip(m.Waiting.Message, MaxMessage)
		}
	}
	if m.HookID != "" {
		out[KeyHookID] = m.HookID
	}
	if m.Lock != nil {
		out[KeyLock] = marshal(m.Lock, m.Lock.extra)
	}
	if m.Fresh != nil {
		out[KeyFresh] = marshal(m.Fresh, m.Fresh.extra)
	}
	if m.AutoLabelled != nil {
		out[KeyAutoLabelled] = *m.AutoLabelled
	}
	return out
}

// EncodeReport returns the annotations that an agent's report stands for.
func EncodeReport(r Report) map[Key]string {
	out := map[Key]string{}
	set := func(k Key, v string) {
		if v != "" {
			out[k] = v
		}
	}
	set(KeyAvailableVersion, r.Available)
	set(KeyOfferedVersions, string(r.Offered))
	set(KeyCurrentVersion, r.Current)
	set(KeyVersionLock, r.VersionLock)
	set(KeyWaveSeed, r.WaveSeed)
	set(KeyBootID, r.BootID)
	set(KeyActivatedID, r.ActivatedID)
	set(KeyOperatorVersion, r.OperatorVersion)
	if r.Protocol > 0 {
		out[KeyProtocol] = strconv.Itoa(r.Protocol)
	}
	if r.Current != "" {
		out[KeyUpdateAvailable] = strconv.FormatBool(CompareVersions(r.Available, r.Current) > 0)
		out[KeyActionActive] = strconv.FormatBool(r.State == StateBusy)
	}
	if r.ActiveID != "" && r.State != StateNone {
		out[KeyActiveID] = r.ActiveID
		out[KeyActionState] = string(r.State)
		set(KeyReason, string(r.Reason))
		set(KeyMessage, Clip(r.Message, MaxMessage))
	}
	return out
}

// Diff returns the smallest change that makes w's annotations in current equal to want: a value to
// set, or nil to delete. It is nil when nothing changes. Keys of other writers are never in it.
func Diff(current map[string]string, want map[Key]string, w Writer) map[Key]*string {
	var diff map[Key]*string
	put := func(k Key, v *string) {
		if diff == nil {
			diff = map[Key]*string{}
		}
		diff[k] = v
	}
	for _, k := range Keys(w) {
		have, stands := current[string(k)]
		value, wanted := want[k]
		switch {
		case wanted && (!stands || have != value):
			put(k, &value)
		case stands && !wanted:
			put(k, nil)
		}
	}
	return diff
}

// Clip makes s a value that can be read on a Node: one printable line of at most limit bytes.
func Clip(s string, limit int) string { return plain.Line(s, limit) }

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// decodeHistory returns nil for what can't be read.
func decodeHistory(value string) []Attempt {
	var raw []json.RawMessage
	if len(value) > maxHistory || json.Unmarshal([]byte(value), &raw) != nil {
		return nil
	}
	var h []Attempt
	for _, r := range raw {
		var a Attempt
		var err error
		if a.extra, err = unmarshal(r, &a); err != nil {
			return nil
		}
		a.Version, a.Outcome, a.Reason = Clip(a.Version, maxToken), Outcome(Clip(string(a.Outcome), maxToken)), Clip(a.Reason, maxToken)
		a.Cycle, a.From = Clip(a.Cycle, maxCycle), Clip(a.From, maxToken)
		if a.Outcome == "given-back" {
			a.Outcome = OutcomeAbandoned
			if a.Reason == "CordonTaken" {
				a.Outcome = OutcomeUncordoned
			}
		}
		h = append(h, a)
	}
	return h
}

// encodeHistory keeps the newest attempts that fit.
func encodeHistory(h []Attempt) string {
	size := len("[]")
	var out []string
	for i := len(h) - 1; i >= 0 && len(out) < HistoryLength; i-- {
		line := marshal(h[i], h[i].extra)
		if size += len(line) + len(","); size > maxHistory {
			break
		}
		out = append(out, line)
	}
	slices.Reverse(out)
	return "[" + strings.Join(out, ",") + "]"
}
