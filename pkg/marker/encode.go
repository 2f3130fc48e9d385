package marker

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
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
		out[KeyWaitingFor] = Clip(m.Waiting.Reason+": "+m.Waiting.Message, maxHistory)
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
	set(KeyCurrentVersion, r.Current)
	set(KeyBootID, r.BootID)
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

// Clip makes s one line of at most limit bytes, cut between characters.
func Clip(s string, limit int) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "?")), " ")
	if len(s) <= limit {
		return s
	}
	cut := limit - len("...")
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "..."
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// encodeHistory keeps the newest attempts that fit.
func encodeHistory(h []Attempt) string {
	if len(h) > HistoryLength {
		h = h[len(h)-HistoryLength:]
	}
	for ; len(h) > 0; h = h[1:] {
		out, err := json.Marshal(h)
		if err != nil {
			panic("marker: " + err.Error())
		}
		if len(out) <= maxHistory {
			return string(out)
		}
	}
	return "[]"
}
