package marker

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
)

// disrupted is a node in the middle of its drain, with everything on it that can be.
func disrupted() map[string]string {
	return map[string]string{
		"bottlerocket.aws/action-wanted":     "prepare-update",
		"bottlerocket.aws/intent-id":         "17-abc",
		"bottlerocket.aws/intent-time":       "2026-09-20T10:00:00Z",
		"bottlerocket.aws/intent-until":      "2026-09-20T10:45:00Z",
		"bottlerocket.aws/target-version":    "1.27.0",
		"bottlerocket.aws/reboot-from":       "boot-1",
		"bottlerocket.aws/disruption":        `{"since":"2026-09-20T10:05:00.25Z","wasUnschedulable":false}`,
		"bottlerocket.aws/failure":           `{"versions":["1.26.2"],"count":1,"reason":"RolledBack","at":"2026-09-19T10:00:00Z","retryAfter":"2026-09-19T10:10:00Z"}`,
		"bottlerocket.aws/history":           `[{"version":"1.26.2","outcome":"failed","reason":"RolledBack","started":"2026-09-19T09:00:00Z","ended":"2026-09-19T10:00:00Z"}]`,
		"bottlerocket.aws/waiting-for":       "Draining: pod default/a is shutting down",
		"bottlerocket.aws/active-id":         "17-abc",
		"bottlerocket.aws/action-state":      "ready",
		"bottlerocket.aws/message":           "prepared",
		"bottlerocket.aws/available-version": "1.27.0",
		"bottlerocket.aws/offered-versions":  "1.27.0,1.26.1,more",
		"bottlerocket.aws/current-version":   "1.26.1",
		"bottlerocket.aws/version-lock":      "v1.27.0",
		"bottlerocket.aws/wave-seed":         "1487",
		"bottlerocket.aws/boot-id":           "boot-1",
		"bottlerocket.aws/protocol":          "1",
		"bottlerocket.aws/operator-version":  "v1.0.0",
	}
}

func TestDecode(t *testing.T) {
	m, problems := Decode(disrupted())
	assert.Equal(t, len(problems), 0, "%v", problems)
	assert.Equal(t, m.Intent, Intent{ID: "17-abc", Action: ActionPrepareUpdate,
		Time: time.Date(2026, 9, 20, 10, 0, 0, 0, time.UTC), Until: time.Date(2026, 9, 20, 10, 45, 0, 0, time.UTC),
		Target: "1.27.0", RebootFrom: "boot-1"})
	assert.Equal(t, m.Report, Report{ActiveID: "17-abc", State: StateReady, Message: "prepared", Available: "1.27.0", Current: "1.26.1",
		Offered: "1.27.0,1.26.1,more", VersionLock: "v1.27.0", WaveSeed: "1487",
		BootID: "boot-1", Protocol: 1, OperatorVersion: "v1.0.0"})
	assert.Equal(t, m.Report.Answer("17-abc"), StateReady)
	assert.Equal(t, m.Report.Answer("17-abd"), StateNone, "an answer to another intent is none")
	assert.Equal(t, m.Report.Answer(""), StateNone)
	assert.Assert(t, m.Disruption.Since.Equal(time.Date(2026, 9, 20, 10, 5, 0, 250e6, time.UTC)))
	assert.Equal(t, m.Failure.Count, 1)
	assert.Equal(t, len(m.History), 1)
	assert.Equal(t, *m.Waiting, Waiting{Reason: "Draining", Message: "pod default/a is shutting down"})
}

// Each value that can't be read names its own key and no other.
func TestDecodeProblems(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for _, tc := range []struct {
		name  string
		key   Key
		value string
	}{
		{"an action that is none", KeyActionWanted, "perform-update"},
		{"an empty action", KeyActionWanted, ""},
		{"an id with a space", KeyIntentID, "a b"},
		{"an empty id", KeyIntentID, ""},
		{"an id that is too long", KeyIntentID, long},
		{"a time without zone", KeyIntentTime, "2026-09-20T10:00:00"},
		{"a time that UTC moves out of four digits", KeyIntentUntil, "9999-12-31T23:59:59-01:00"},
		{"a target with a leading v", KeyTargetVersion, "v1.27.0"},
		{"a target with white space behind it", KeyTargetVersion, "1.27.0 "},
		{"an empty boot to be left behind", KeyRebootFrom, ""},
		{"a disruption that isn't JSON", KeyDisruption, "{"},
		{"a disruption that is null", KeyDisruption, "null"},
		{"a disruption that is a list", KeyDisruption, "[]"},
		{"a disruption without its time", KeyDisruption, "{}"},
		{"a disruption with its time in a name that is almost right", KeyDisruption, `{"Since":"2026-09-20T10:05:00Z"}`},
		{"a disruption with a field of another type", KeyDisruption, `{"since":"2026-09-20T10:05:00Z","wasUnschedulable":"no"}`},
		{"an empty disruption", KeyDisruption, ""},
		{"a failure that is too long", KeyFailure, long},
		{"a disruption that is too long", KeyDisruption, long},
		{"an empty failure", KeyFailure, ""},
		{"a failure that is null", KeyFailure, "null"},
		{"a failure that isn't JSON", KeyFailure, "{"},
		{"a failure with a field of another type, from a newer build", KeyFailure, `{"count":"1","new":1}`},
		{"a failure of a version that isn't one", KeyFailure, `{"versions":["1.2.3","latest"],"count":1}`},
		{"a failure with a number that its complaint would repeat", KeyFailure, `{"count":` + strings.Repeat("9", 3000) + `}`},
		{"a failure with a negative count", KeyFailure, `{"count":-1}`},
		{"an answer that isn't one", KeyActionState, "done"},
		{"an answered id that is empty", KeyActiveID, ""},
		{"a message that is too long", KeyMessage, long},
		{"a message that isn't UTF-8", KeyMessage, "\xff"},
		{"a disruption that isn't UTF-8", KeyDisruption, "\xff"},
		{"a running version that isn't one", KeyCurrentVersion, "latest"},
		{"a list of offers that is empty", KeyOfferedVersions, ""},
		{"a list of offers with one that is no version", KeyOfferedVersions, "1.27.0,latest"},
		{"a list of offers that says more of nothing", KeyOfferedVersions, "more"},
		{"a list of offers with more than may be", KeyOfferedVersions, strings.Repeat("1.2.3,", 20) + "1.2.3"},
		{"a list of offers that is too long", KeyOfferedVersions, "1.2.3-" + strings.Repeat("x", 507)},
		{"a lock that is none", KeyVersionLock, "newest"},
		{"a lock to two versions", KeyVersionLock, "1.26.1,1.27.0"},
		{"a seed that is negative", KeyWaveSeed, "-1"},
		{"a seed that is too high", KeyWaveSeed, "4294967296"},
		{"a seed with a sign", KeyWaveSeed, "+7"},
		{"an offer that isn't UTF-8", KeyAvailableVersion, "1.2.3\xff"},
		{"a boot id with a line break", KeyBootID, "a\nb"},
		{"a protocol of zero", KeyProtocol, "0"},
		{"a protocol that isn't a number", KeyProtocol, "one"},
		{"a build that is too long", KeyOperatorVersion, long},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := disrupted()
			a[string(tc.key)] = tc.value
			m, problems := Decode(a)
			assert.Assert(t, len(problems) > 0)
			assert.Assert(t, m.Disruption != nil, "an unreadable disruption is one")
			for _, p := range problems {
				assert.Equal(t, p.Key, tc.key, "%s", p)
				assert.Equal(t, p.String(), string(tc.key)+": "+p.Why)
				assert.Assert(t, p.Why != "" && len(p.Why) <= MaxMessage, "%s", p)
			}
		})
	}
}

// What is missing can make a node unreadable too.
func TestDecodeMissing(t *testing.T) {
	for _, tc := range []struct {
		name    string
		without []Key
		problem Key
	}{
		{"a disrupted node without an intent", []Key{KeyIntentID}, KeyIntentID},
		{"a disrupted node without the boot to be left behind", []Key{KeyRebootFrom}, KeyRebootFrom},
		{"a prepare without a target", []Key{KeyTargetVersion}, KeyTargetVersion},
		{"an intent without its time", []Key{KeyIntentTime}, KeyIntentTime},
		{"an intent without its end", []Key{KeyIntentUntil}, KeyIntentUntil},
		{"an intent without an action", []Key{KeyActionWanted}, KeyActionWanted},
		{"an answered id without the answer", []Key{KeyActionState}, KeyActionState},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := disrupted()
			for _, k := range tc.without {
				delete(a, string(k))
			}
			_, problems := Decode(a)
			assert.Assert(t, len(problems) > 0)
			assert.Equal(t, problems[0].Key, tc.problem, "%v", problems)
		})
	}
	reboot := disrupted()
	reboot[string(KeyActionWanted)] = string(ActionRebootUpdate)
	delete(reboot, string(KeyDisruption))
	_, problems := Decode(reboot)
	assert.Equal(t, len(problems), 1, "a reboot is only ever asked of a disrupted node")
	assert.Equal(t, problems[0].Key, KeyDisruption)
}

// The part of an intent that the agent reads says by itself what is missing of it, and nothing else is.
func TestDecodeIntentMissing(t *testing.T) {
	for action, needs := range map[Action][]Key{
		ActionStabilize:     nil,
		ActionResetState:    nil,
		ActionPrepareUpdate: {KeyTargetVersion},
		ActionConfirmUpdate: {KeyTargetVersion},
		ActionRebootUpdate:  {KeyTargetVersion, KeyRebootFrom},
	} {
		assert.Equal(t, action.Stages(), len(needs) == 1)
		a := disrupted()
		a[string(KeyActionWanted)] = string(action)
		delete(a, string(KeyTargetVersion))
		delete(a, string(KeyRebootFrom))
		_, problems := DecodeIntent(a)
		var missing []Key
		for _, p := range problems {
			missing = append(missing, p.Key)
		}
		assert.DeepEqual(t, missing, needs)
	}
}

// A value of the length that its limit allows is read, and one that is a byte longer isn't.
func TestDecodeLimits(t *testing.T) {
	for key, value := range map[Key]func(length int) string{
		KeyIntentID:       func(n int) string { return strings.Repeat("~", n) },
		KeyTargetVersion:  func(n int) string { return "1.2.3-" + strings.Repeat("x", n-6) },
		KeyCurrentVersion: func(n int) string { return "1.2.3+" + strings.Repeat("x", n-6) },
	} {
		a := disrupted()
		a[string(key)] = value(128)
		_, problems := Decode(a)
		assert.Equal(t, len(problems), 0, "%v", problems)
		a[string(key)] = value(129)
		_, problems = Decode(a)
		assert.Assert(t, len(problems) > 0, "%s", key)
		assert.Assert(t, ValidToken(value(128)) && !ValidToken(value(129)))
	}
	for key, limit := range map[Key]int{KeyMessage: 256, KeyDisruption: 4096, KeyFailure: 4096} {
		a := disrupted()
		a[string(key)] += strings.Repeat(" ", limit-len(a[string(key)]))
		_, problems := Decode(a)
		assert.Equal(t, len(problems), 0, "%v", problems)
		a[string(key)] += " "
		_, problems = Decode(a)
		assert.Assert(t, len(problems) > 0 && problems[0].Key == key, "%v", problems)
	}
	a := disrupted()
	a[string(KeyHistory)] += strings.Repeat(" ", 2048-len(a[string(KeyHistory)]))
	assert.Equal(t, len(decode(t, a).History), 1)
	a[string(KeyHistory)] += " "
	assert.Equal(t, len(decode(t, a).History), 0)
	a[string(KeyWaitingFor)] = strings.Repeat("R", 128) + ": " + strings.Repeat("m", 256)
	assert.Equal(t, *decode(t, a).Waiting, Waiting{Reason: strings.Repeat("R", 128), Message: strings.Repeat("m", 256)})
	assert.Assert(t, ValidToken("!") && !ValidToken(" ") && !ValidToken("\x7f"))
}

// Every year that can be written again is read.
func TestDecodeTimes(t *testing.T) {
	for text, problem := range map[string]bool{
		"0000-12-31T00:00:00Z": true, "0001-01-01T00:00:00Z": false, "0002-01-01T00:00:00Z": false,
		"9999-12-31T23:59:59Z": false, "9999-12-31T23:59:59-01:00": true,
	} {
		a := disrupted()
		a[string(KeyIntentUntil)] = text
		_, problems := Decode(a)
		assert.Equal(t, len(problems) > 0, problem, "%s: %v", text, problems)
	}
}

// Of marks with problems what can be read is there to be shown, and what can't isn't.
func TestDecodeWhatCanBeRead(t *testing.T) {
	a := disrupted()
	a[string(KeyActionWanted)], a[string(KeyActionState)] = "perform-update", "done"
	a[string(KeyFailure)] = `{"versions":["latest","1.2.3"],"count":0}`
	m, problems := Decode(a)
	assert.Equal(t, len(problems), 3, "%v", problems)
	assert.Equal(t, m.Intent.Action, Action(""))
	assert.Equal(t, m.Report.State, StateNone)
	assert.DeepEqual(t, m.Failure.Versions, []string{"1.2.3"})
	_, problems = DecodeReport(a)
	assert.Equal(t, len(problems), 1)
}

// What isn't for the machine doesn't stop it.
func TestDecodeLenient(t *testing.T) {
	const gone = "this annotation isn't there"
	for _, tc := range []struct {
		name  string
		key   Key
		value string
	}{
		{"a history that isn't JSON", KeyHistory, "["},
		{"a history that is too long", KeyHistory, strings.Repeat("x", 5000)},
		{"a history with a line that can't be read", KeyHistory, `[{"ended":7}]`},
		{"a reason for a pause that is long", KeyPaused, strings.Repeat("because ", 1000)},
		{"a reason for a pause with line breaks", KeyPaused, "a\nb\n"},
		{"a pause without a reason", KeyPaused, ""},
		{"a reason of a newer agent", KeyReason, "SomethingNew"},
		{"a reason that is long", KeyReason, strings.Repeat("x", 5000)},
		{"waiting for nothing known", KeyWaitingFor, "what"},
		{"a retry that was asked for", KeyRetry, ""},
		{"a request for a cycle", KeyCycle, "try-1"},
		{"no request: without an id", KeyCycle, ""},
		{"no request: what is no id", KeyCycle, "try 1"},
		{"no request: too long an id", KeyCycle, strings.Repeat("x", 64)},
		{"a failure that doesn't count any more", KeyFailure, `{"versions":["1.2.3"],"count":0}`},
		{"an agent that was asked nothing yet", KeyActiveID, gone},
		{"a key of a newer build", Prefix + "brand-new", "{"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := disrupted()
			a[string(tc.key)] = tc.value
			maps.DeleteFunc(a, func(_, v string) bool { return v == gone })
			m, problems := Decode(a)
			assert.Equal(t, len(problems), 0, "%v", problems)
			assert.Equal(t, m.Paused, tc.key == KeyPaused)
			assert.Equal(t, m.Retry, tc.key == KeyRetry)
			assert.Equal(t, m.Cycle, map[bool]string{true: "try-1"}[tc.value == "try-1"])
			assert.Equal(t, m.Report.Current, "1.26.1")
			assert.Equal(t, m.Report.Reason, ReportReasonNone)
			assert.Assert(t, len(m.PausedReason) <= MaxMessage && !strings.Contains(m.PausedReason, "\n"))
		})
	}
}

// Marks of an older operator have no intent-id and read as nothing.
func TestDecodeOlderOperator(t *testing.T) {
	m, problems := Decode(map[string]string{
		"bottlerocket.aws/action-wanted":    "perform-update",
		"bottlerocket.aws/action-state":     "unknown",
		"bottlerocket.aws/action-active":    "maybe",
		"bottlerocket.aws/update-available": "true",
	})
	assert.Equal(t, len(problems), 0, "%v", problems)
	assert.DeepEqual(t, m, Marks{})
	i, problems := DecodeIntent(map[string]string{"bottlerocket.aws/action-wanted": "perform-update"})
	assert.Equal(t, len(problems), 0)
	assert.Equal(t, i, Intent{})
}

// Names that older controllers wrote are read, and written as they are now.
func TestDecodeOlderNames(t *testing.T) {
	a := disrupted()
	a[string(KeyDisruption)] = `{"since":"2026-09-20T10:05:00Z","wasUnschedulable":false,"late":"2026-09-20T10:06:30Z"}`
	attempt := `{"version":"1.2.0","outcome":"%s","reason":"%s","started":"2026-09-20T10:00:00Z","ended":"2026-09-20T10:01:00Z"}`
	history := func(paused, uncordoned string) string {
		return "[" + fmt.Sprintf(attempt, paused, "Paused") + "," + fmt.Sprintf(attempt, uncordoned, "CordonTaken") + "]"
	}
	a[string(KeyHistory)] = history("given-back", "given-back")
	written := Encode(decode(t, a))
	assert.Equal(t, written[KeyDisruption], strings.Replace(a[string(KeyDisruption)], "late", "notEmpty", 1))
	assert.Equal(t, written[KeyHistory], history("abandoned", "uncordoned"))
	a[string(KeyDisruption)] = `{"since":"2026-09-20T10:05:00Z","late":"soon"}`
	_, problems := Decode(a)
	assert.Equal(t, len(problems), 1)
}

// The parts read as in the whole.
func TestDecodeParts(t *testing.T) {
	whole, _ := Decode(disrupted())
	i, problems := DecodeIntent(disrupted())
	assert.Equal(t, len(problems), 0)
	assert.Equal(t, i, whole.Intent)
	r, problems := DecodeReport(disrupted())
	assert.Equal(t, len(problems), 0)
	assert.Equal(t, r, whole.Report)
	broken := maps.Clone(disrupted())
	broken[string(KeyDisruption)] = "{"
	_, problems = DecodeIntent(broken)
	assert.Equal(t, len(problems), 0, "an agent's part is not held up by the controller's")
}

// What the record says of marks for others, of workloads and of waits is read as it was written, "nothing stood there"
// among it, and so is what hooks answer with.
func TestDecodeWhatADisruptionNotes(t *testing.T) {
	a := disrupted()
	record := `{"since":"2026-09-20T10:05:00Z","wasUnschedulable":false,` +
		`"before":{"karpenter.sh/do-not-disrupt":"false","node.kubernetes.io/exclude-from-external-load-balancers":null},` +
		`"workloads":{"Deployment/default/web":2},"drained":"2026-09-20T10:06:00Z","asked":"2026-09-20T10:07:00Z","notEmpty":"2026-09-20T10:06:30Z"}`
	a[string(KeyDisruption)], a[string(KeyHookID)] = record, "after-drain.17-abc"
	m, problems := Decode(a)
	assert.Equal(t, len(problems), 0, "%v", problems)
	before, ours := m.Disruption.Before[LabelExcluded]
	assert.Assert(t, ours && before == nil && *m.Disruption.Before[AnnotationDisrupt] == "false")
	assert.Assert(t, m.Disruption.Workloads["Deployment/default/web"] == 2 && m.Disruption.Asked.After(*m.Disruption.Drained) && m.Disruption.NotEmpty.Before(*m.Disruption.Asked))
	assert.Equal(t, m.HookID, "after-drain.17-abc")
	written := Encode(m)
	assert.Equal(t, written[KeyDisruption], record)
	assert.Equal(t, written[KeyHookID], "after-drain.17-abc")
}

// However much stood there before, a record can be read again.
func TestALongRecordCanBeRead(t *testing.T) {
	worst := strings.Repeat("\u2028", maxToken/3)
	assert.Assert(t, CanStandBefore(strings.Repeat("x", 128)) && !CanStandBefore(strings.Repeat("x", 129)) && !CanStandBefore("\xff"))
	at := time.Date(2026, 9, 20, 10, 5, 0, 123e6, time.UTC)
	d := &Disruption{Since: at, Ready: "2026-09-20T10:05:00Z", Soak: &at, Returned: &at, Drained: &at, Asked: &at, NotEmpty: &at,
		Before: map[string]*string{LabelExcluded: nil, AnnotationScaleDown: &worst, AnnotationDisrupt: &worst}, Workloads: map[string]int{}}
	for i := range 20 {
		d.Workloads[fmt.Sprintf("%02d%s", i, strings.Repeat("x", 1536/20-2))] = 1000
	}
	m := decode(t, disrupted())
	m.Disruption = d
	_, problems := Decode(asRead(Encode(m)))
	assert.Equal(t, len(problems), 0, "%v", problems)
}
