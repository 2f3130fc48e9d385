package marker

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"gotest.tools/v3/assert"
)

func decode(t *testing.T, annotations map[string]string) Marks {
	t.Helper()
	m, problems := Decode(annotations)
	assert.Equal(t, len(problems), 0, "%v", problems)
	return m
}

func asRead(encoded map[Key]string) map[string]string {
	out := make(map[string]string, len(encoded))
	for k, v := range encoded {
		out[string(k)] = v
	}
	return out
}

// What is read and written again is what stood there, so that nothing is written at rest (L4).
func TestEncodeChangesNothing(t *testing.T) {
	a := disrupted()
	assert.Equal(t, len(Diff(a, Encode(decode(t, a)), WriterController)), 0)
}

// A newer build's fields survive a write of this build.
func TestUnknownFieldsAreKept(t *testing.T) {
	for _, tc := range []struct {
		name, value string
		key         Key
		kept        string
	}{
		{"in disruption", `{"since":"2026-09-20T10:05:00Z","wasUnschedulable":true,"aNew":{"b":[1,2]},"label":"x"}`, KeyDisruption, `"aNew":{"b":[1,2]},"label":"x"`},
		{"in disruption, in a name that differs in case", `{"since":"2026-09-20T10:05:00Z","wasUnschedulable":false,"Since":"x","SOAK":7}`, KeyDisruption, `"SOAK":7,"Since":"x"`},
		{"in failure", `{"versions":["1.2.3"],"count":2,"reason":"X","at":"2026-09-20T10:05:00Z","retryAfter":"2026-09-20T10:05:00Z","wave":3}`, KeyFailure, `"wave":3`},
		{"in failure, under the empty name", `{"":7}`, KeyFailure, `"":7`},
		{"in history", `[{"version":"1.2.3","outcome":"failed","started":"2026-09-20T10:05:00Z","ended":"2026-09-20T10:05:00Z","by":"x"}]`, KeyHistory, `"by":"x"`},
		{"in history, as many as fields are missing", `[{"started":"2026-09-20T10:05:00Z","ended":"2026-09-20T10:05:00Z","by":"x","in":"y"}]`, KeyHistory, `"by":"x","in":"y"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := disrupted()
			a[string(tc.key)] = tc.value
			m := decode(t, a)
			diff := Diff(a, Encode(m), WriterController)
			if tc.key == KeyDisruption {
				m.Disruption.Ready = "then"
				assert.Assert(t, strings.Contains(Encode(m)[KeyDisruption], `"ready":"then"`))
			}
			assert.Assert(t, strings.Contains(Encode(m)[tc.key], tc.kept), Encode(m)[tc.key])
			for _, change := range diff {
				// The order of fields is this build's; nothing else may differ.
				assert.Assert(t, change != nil)
			}
			again := decode(t, asRead(Encode(decode(t, a))))
			assert.Assert(t, reflect.DeepEqual(decode(t, a).Disruption, again.Disruption))
			assert.Assert(t, reflect.DeepEqual(decode(t, a).Failure, again.Failure))
			assert.Assert(t, reflect.DeepEqual(decode(t, a).History, again.History))
		})
	}
}

func TestDiff(t *testing.T) {
	text := func(s string) *string { return &s }
	current := map[string]string{
		string(KeyIntentID):     "1",
		string(KeyDisruption):   "{}",
		string(KeyActiveID):     "1",
		string(KeyPaused):       "",
		"example.com/unrelated": "x",
	}
	for _, tc := range []struct {
		name string
		want map[Key]string
		by   Writer
		diff map[Key]*string
	}{
		{"nothing changes", map[Key]string{KeyIntentID: "1", KeyDisruption: "{}"}, WriterController, nil},
		{"a value is set", map[Key]string{KeyIntentID: "2", KeyDisruption: "{}"}, WriterController, map[Key]*string{KeyIntentID: text("2")}},
		{"a key is new", map[Key]string{KeyIntentID: "1", KeyDisruption: "{}", KeyFailure: "{}"}, WriterController, map[Key]*string{KeyFailure: text("{}")}},
		{"an empty value is a value", map[Key]string{KeyIntentID: "", KeyDisruption: "{}"}, WriterController, map[Key]*string{KeyIntentID: text("")}},
		{"what isn't wanted goes", map[Key]string{KeyIntentID: "1"}, WriterController, map[Key]*string{KeyDisruption: nil}},
		{"all goes but what others write", nil, WriterController, map[Key]*string{KeyIntentID: nil, KeyDisruption: nil}},
		{"an agent touches its own alone", map[Key]string{KeyIntentID: "7", KeyBootID: "b"}, WriterAgent, map[Key]*string{KeyActiveID: nil, KeyBootID: text("b")}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			assert.DeepEqual(t, Diff(current, tc.want, tc.by), tc.diff)
		})
	}
}

// That a node was labelled by autoLabel is kept as it stands through every write of the controller's, whatever was written
// there: it must not be labelled again.
func TestAutoLabelledIsKept(t *testing.T) {
	for _, value := range []string{"2026-09-20T10:05:00Z", "", strings.Repeat("long ", 100), "two\nlines"} {
		stands := map[string]string{string(KeyAutoLabelled): value}
		m, problems := Decode(stands)
		assert.Equal(t, len(problems), 0)
		assert.Assert(t, m.AutoLabelled != nil)
		assert.Equal(t, len(Diff(stands, Encode(m), WriterController)), 0)
	}
	m, _ := Decode(nil)
	assert.Assert(t, m.AutoLabelled == nil)
}

// Nothing is written of marks that say nothing.
func TestEncodeNothing(t *testing.T) {
	assert.Equal(t, len(Encode(Marks{})), 0)
	assert.Equal(t, len(EncodeReport(Report{})), 0)
}

func TestEncodeReport(t *testing.T) {
	r := Report{ActiveID: "1", State: StateBusy, Available: "1.10.0", Current: "1.9.0", BootID: "b", ActivatedID: "1", Protocol: 1, OperatorVersion: "x",
		Offered: "1.10.0,1.9.0", VersionLock: "1.10.0", WaveSeed: "0"}
	a := EncodeReport(r)
	assert.Equal(t, decode(t, asRead(a)).Report, r)
	assert.Equal(t, a[KeyActivatedID], "1")
	assert.Equal(t, a[KeyUpdateAvailable], "true")
	assert.Equal(t, a[KeyActionActive], "true")
	r.Available = "1.8.0"
	assert.Equal(t, EncodeReport(r)[KeyUpdateAvailable], "false", "a lower version is no update")
	r.Available = r.Current
	assert.Equal(t, EncodeReport(r)[KeyUpdateAvailable], "false", "what runs is no update")
	r.State = StateNone
	_, ok := EncodeReport(r)[KeyActiveID]
	assert.Assert(t, !ok, "an id without an answer is not an answer")
	for _, reason := range []ReportReason{ReasonAnotherUpdater, ReasonUnrequestedActivation, ReasonInterfaceUnsupported, ReasonRepositoryUnavailable} {
		r = Report{ActiveID: "1", State: StateError, Reason: reason}
		assert.Assert(t, r.Says("1", StateError, reason) && !r.Says("2", StateError, reason) && !r.Says("1", StateBusy, reason))
		assert.Equal(t, EncodeReport(r)[KeyReason], string(reason))
		r.Current, r.BootID, r.Protocol = "1.9.0", "b", Protocol
		assert.Equal(t, decode(t, asRead(EncodeReport(r))).Report.Reason, reason)
	}
	r = Report{ActiveID: "1", State: StateError, Message: "one\n two\x1b[31m " + strings.Repeat("é", 300)}
	message := EncodeReport(r)[KeyMessage]
	assert.Assert(t, len(message) <= MaxMessage && utf8.ValidString(message))
	assert.Assert(t, strings.HasPrefix(message, "one two?[31m éé"), message)
}

func TestClip(t *testing.T) {
	for _, tc := range []struct{ in, out string }{
		{"", ""},
		{" a \t\n b ", "a b"},
		{"0123456789", "0123456789"},
		{"0123456789a", "0123456..."},
		{"ééééééé", "ééé..."},
		{"a\xff\x00b\u200b", "a??b?"},
	} {
		assert.Equal(t, Clip(tc.in, 10), tc.out)
	}
}

// A history stays within its limits, and keeps what is newest.
func TestHistoryIsBounded(t *testing.T) {
	var m Marks
	at := time.Date(2026, 9, 20, 10, 0, 0, 0, time.UTC)
	for i := range 9 {
		m.History = append(m.History, Attempt{Version: fmt.Sprintf("1.%d.0", i), Outcome: OutcomeUpdated, Started: at, Ended: at})
	}
	got := decode(t, asRead(Encode(m))).History
	assert.Equal(t, len(got), 5)
	assert.Equal(t, got[4].Version, "1.8.0")
	// One that fills it to the last byte but that of a comma is kept, and a longer one isn't.
	for have, want := range map[int]int{2047: 5, 2048: 4} {
		m.History[4].Reason = "x"
		m.History[4].Reason += strings.Repeat("x", have-len(Encode(m)[KeyHistory]))
		got = decode(t, asRead(Encode(m))).History
		assert.Equal(t, len(got), want)
	}
	m.History[6].Reason = strings.Repeat("x", maxHistory)
	got = decode(t, asRead(Encode(m))).History
	assert.Equal(t, len(got), 2)
	assert.Equal(t, got[0].Version, "1.7.0")
	for i := range m.History {
		a := &m.History[i]
		a.Version, a.Reason, a.Cycle, a.From = "1.53.0-rc.1+abcdef", "VerificationFailed", strings.Repeat("c", maxCycle), "1.52.0-rc.1+abcdef"
	}
	assert.Equal(t, len(decode(t, asRead(Encode(m))).History), 5, "versions as long as these leave room for all")
}
