package marker

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"math/big"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"gotest.tools/v3/assert"
)

// fuzzed are the annotations of FuzzDecode, in the order of its arguments.
var fuzzed = []Key{
	KeyActionWanted, KeyIntentID, KeyIntentTime, KeyIntentUntil, KeyTargetVersion, KeyRebootFrom, KeyDisruption, KeyFailure,
	KeyHistory, KeyWaitingFor, KeyActiveID, KeyActionState, KeyMessage, KeyAvailableVersion, KeyCurrentVersion, KeyBootID,
	KeyProtocol, KeyOperatorVersion, KeyPaused, KeyRetry,
}

// all has a bit for each of them.
const all = 1<<20 - 1

// withHook puts the intent's id, whatever it is, into hook-id too, withReason the message into reason, and withHost the
// versions and the protocol into what the host lists and its settings.
const (
	withHook   = 1 << 20
	withReason = 1 << 21
	withHost   = 1 << 22
)

// FuzzDecode: whatever stands on a node, Decode doesn't panic; what it can't read it names, shortly; what
// it could read keeps the promises of its type, and is written and read again as the same.
func FuzzDecode(f *testing.F) {
	add := f.Add // vet counts arguments, but not those of a slice
	seed := func(present uint32, changes ...string) {
		a := disrupted()
		a[string(KeyPaused)], a[string(KeyRetry)], a[string(KeyMessage)] = "maintenance", "", "staging 1.27.0: no space"
		for i := 0; i < len(changes); i += 2 {
			a[changes[i]] = changes[i+1]
		}
		args := []any{present}
		for _, k := range fuzzed {
			args = append(args, a[string(k)])
		}
		add(args...)
	}
	seed(all)
	seed(all&^(1<<6), string(KeyActionWanted), "stabilize")
	seed(all, string(KeyActionWanted), "reboot-update", string(KeyActionState), "busy")
	seed(all, string(KeyIntentUntil), "9999-12-31T23:59:59-01:00", string(KeyTargetVersion), "1.2.3 ", string(KeyProtocol), "+1")
	seed(all, string(KeyDisruption), `{"since":"9999-12-31T23:59:59-01:00","Since":1,"x":"<"}`, string(KeyFailure), `{"versions":null}`)
	seed(all, string(KeyDisruption), `{"since":"2026-09-20T10:05:00Z","wasUnschedulable":true,"soak":"2026-09-20T10:09:00Z","new":[{}]}`,
		string(KeyHistory), `[null]`, string(KeyWaitingFor), ": ", string(KeyMessage), "a\nb")
	seed(all|withHook, string(KeyDisruption), `{"since":"2026-09-20T10:05:00Z","before":{"a":null,"b":"<\u2028>"},"workloads":{"Deployment/a/b":-1},"drained":"2026-09-20T10:09:00Z","asked":"2026-09-20T10:09:00Z","notEmpty":"2026-09-20T10:08:00Z"}`)
	seed(all, string(KeyDisruption), "{\"since\":\"2026-09-20T10:05:00Z\",\"before\":{\"a\":\"\u009b\u202e\U0001F980\U000e0001\"},\"\u00ad\":\"\u2029\"}",
		string(KeyHistory), "[{\"version\":\"\u0085\",\"outcome\":\"\ue000\",\"started\":\"2026-09-20T10:05:00Z\",\"ended\":\"2026-09-20T10:05:00Z\"}]",
		string(KeyWaitingFor), "\x1b[31m:\nlike\u202e: \u2028")
	seed(all|withHook, string(KeyDisruption), `{"since":"2026-09-20T10:05:00Z","before":{},"workloads":{}}`, string(KeyIntentID), "")
	seed(all, string(KeyFailure), `{"count":`+strings.Repeat("9", 300)+`}`)
	seed(all, string(KeyMessage), "a\u202eb\x1b[2J", string(KeyWaitingFor), "A:\u2028B: \u009b", string(KeyOperatorVersion), "v\u200b", string(KeyPaused), "\x00",
		string(KeyFailure), `{"versions":["1.2.3"],"count":1,"reason":"\u001b","message":"\u202e"}`, string(KeyHistory), `[{"version":"\u000a","outcome":"\u2066","reason":"\u0085"}]`)
	seed(all, string(KeyFailure), `{"versions":["\u001b[2J"],"broken":["1.2.3","x"]}`)
	seed(all|withReason, string(KeyMessage), "AnotherUpdater", string(KeyActionState), "error")
	seed(all|withHost, string(KeyAvailableVersion), "1.27.0,1.26.1,more")
	seed(1<<10|1<<11|1<<14, string(KeyActionState), "error")
	f.Fuzz(func(t *testing.T, present uint32, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, b0, b1, b2, b3, b4, b5, b6, b7, b8, b9 string) {
		values := []string{a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, b0, b1, b2, b3, b4, b5, b6, b7, b8, b9}
		a := map[string]string{}
		for i, k := range fuzzed {
			if present&(1<<i) != 0 {
				a[string(k)] = values[i]
			}
		}
		if present&withHook != 0 {
			a[string(KeyHookID)] = a1
		}
		if present&withReason != 0 {
			a[string(KeyReason)] = b2
		}
		if present&withHost != 0 {
			a[string(KeyOfferedVersions)], a[string(KeyVersionLock)], a[string(KeyWaveSeed)] = b3, b4, b6
		}
		m, problems := Decode(a)
		for _, p := range problems {
			assert.Assert(t, Owns(WriterController, string(p.Key)) || Owns(WriterAgent, string(p.Key)), p.Key)
			assert.Assert(t, p.Why != "" && len(p.Why) <= MaxMessage && p.Why == Clip(p.Why, MaxMessage), "%q", p.Why)
		}
		_, paused := a[string(KeyPaused)]
		assert.Equal(t, m.Paused, paused, "a pause counts whatever its reason")
		assert.Assert(t, len(m.PausedReason) <= MaxMessage && m.PausedReason == Clip(m.PausedReason, MaxMessage))
		assert.Assert(t, m.Report.Message == Clip(m.Report.Message, MaxMessage) && m.Report.OperatorVersion == Clip(m.Report.OperatorVersion, maxToken))
		if w := m.Waiting; w != nil {
			assert.Assert(t, w.Reason == Clip(w.Reason, maxToken) && w.Message == Clip(w.Message, MaxMessage), "%q", w)
		}
		if f := m.Failure; f != nil {
			assert.Assert(t, f.Reason == Clip(f.Reason, maxToken) && f.Message == Clip(f.Message, MaxMessage), "%q", f)
			for _, v := range append(f.Versions, f.Broken...) {
				assert.Assert(t, aVersion.MatchString(v), "%q", v)
			}
		}
		for _, h := range m.History {
			assert.Assert(t, h.Version == Clip(h.Version, maxToken) && string(h.Outcome) == Clip(string(h.Outcome), maxToken) && h.Reason == Clip(h.Reason, maxToken), "%q", h)
		}
		_, disrupted := a[string(KeyDisruption)]
		assert.Equal(t, m.Disruption != nil, disrupted, "an unreadable disruption is one")

		// The agent and the proxy read the same as the controller.
		i, problemsOfIntent := DecodeIntent(a)
		assert.Assert(t, sameIntent(i, m.Intent), "%+v is not %+v", i, m.Intent)
		r, problemsOfReport := DecodeReport(a)
		assert.Equal(t, r, m.Report)
		assert.Assert(t, len(problems) >= len(problemsOfIntent)+len(problemsOfReport))

		// Unknown keys change nothing.
		a[Prefix+"brand-new"], a["example.com/"+a0] = a6, a7
		again, problemsAgain := Decode(a)
		assert.Assert(t, reflect.DeepEqual(again, m))
		assert.DeepEqual(t, problemsAgain, problems)

		if len(problemsOfReport) == 0 {
			reportPromises(t, r)
		}
		if len(problemsOfIntent) == 0 && i.ID != "" {
			intentPromises(t, i)
		}
		if len(problems) > 0 {
			return
		}
		if m.Intent.Action == ActionRebootUpdate {
			assert.Assert(t, m.Disruption != nil)
		}
		if m.Disruption != nil {
			assert.Assert(t, !m.Disruption.Since.IsZero() && m.Intent.ID != "")
		}
		written := Encode(m)
		for k, v := range written {
			assert.Assert(t, Owns(WriterController, string(k)), k)
			// Admission refuses others.
			assert.Assert(t, !strings.ContainsFunc(v, func(r rune) bool { return !unicode.IsPrint(r) }), "%s: %q", k, v)
		}
		assert.Assert(t, len(written[KeyHistory]) <= maxHistory)
		back, problems := Decode(asRead(written))
		assert.Equal(t, len(problems), 0, "%v from %v", problems, written)
		assert.DeepEqual(t, Encode(back), written)
		thrice, _ := Decode(asRead(Encode(back)))
		assert.Assert(t, reflect.DeepEqual(thrice, back))
	})
}

func sameIntent(a, b Intent) bool {
	if !a.Time.Equal(b.Time) || !a.Until.Equal(b.Until) {
		return false
	}
	a.Time, a.Until, b.Time, b.Until = time.Time{}, time.Time{}, time.Time{}, time.Time{}
	return a == b
}

// aWord is what an id may be, told apart from the code under test.
var aWord = regexp.MustCompile(`^[!-~]{1,128}$`)

// aReason is the closed list, told apart from the code under test.
var aReason = regexp.MustCompile(`^(|AnotherUpdater|UnrequestedActivation|InterfaceUnsupported|RepositoryUnavailable)$`)

func intentPromises(t *testing.T, i Intent) {
	t.Helper()
	assert.Assert(t, aWord.MatchString(i.ID), "%q", i.ID)
	assert.Assert(t, i.RebootFrom == "" || aWord.MatchString(i.RebootFrom), "%q", i.RebootFrom)
	assert.Assert(t, i.Target == "" || aVersion.MatchString(i.Target), "%q", i.Target)
	switch i.Action {
	case "stabilize", "reset-state":
	case "prepare-update":
		assert.Assert(t, i.Target != "")
	case "reboot-update":
		assert.Assert(t, i.Target != "" && i.RebootFrom != "")
	default:
		t.Fatalf("action %q", i.Action)
	}
}

func reportPromises(t *testing.T, r Report) {
	t.Helper()
	for _, v := range []string{r.Available, r.Current} {
		assert.Assert(t, v == "" || aVersion.MatchString(v), "%q", v)
	}
	assert.Assert(t, r.BootID == "" || aWord.MatchString(r.BootID), "%q", r.BootID)
	assert.Assert(t, r.Protocol >= 0 && len(r.Message) <= 256 && len(r.OperatorVersion) <= 128)
	if r.ActiveID == "" {
		assert.Assert(t, r.State == "" && r.Reason == "" && r.Message == "")
	} else {
		assert.Assert(t, aWord.MatchString(r.ActiveID), "%q", r.ActiveID)
		assert.Assert(t, r.State == "busy" || r.State == "ready" || r.State == "error", "%q", r.State)
		assert.Assert(t, aReason.MatchString(string(r.Reason)), "%q", r.Reason)
	}
	written := EncodeReport(r)
	for k := range written {
		assert.Assert(t, Owns(WriterAgent, string(k)), k)
	}
	again, problems := DecodeReport(asRead(written))
	assert.Equal(t, len(problems), 0, "%v", problems)
	assert.Equal(t, again, r)
}

// FuzzUnknownFields: what a newer build wrote into our JSON values is still there, and the same, after
// this build changed what it knows.
func FuzzUnknownFields(f *testing.F) {
	f.Add("aNew", `{"b":[1,2]}`)
	f.Add("Since", `"x"`)
	f.Add("SOAK", `1e400`)
	f.Add("<\u2028>&", `"<\u2028>&"`)
	f.Add("", `12345678901234567890.0`)
	f.Add("\"", `{"a":1,"a":2}`)
	f.Fuzz(func(t *testing.T, name, value string) {
		if !utf8.ValidString(name) || !utf8.ValidString(value) || !json.Valid([]byte(value)) || len(name)+len(value) > 700 || known[name] {
			return
		}
		var field bytes.Buffer
		assert.NilError(t, json.Compact(&field, []byte(quoted(t, name) + ":" + value)[len(quoted(t, name))+1:]))
		extra := "," + quoted(t, name) + ":" + field.String() + "}"
		a := disrupted()
		for k, v := range map[Key]string{
			KeyDisruption: `{"since":"2026-09-20T10:05:00Z","wasUnschedulable":true` + extra,
			KeyFailure:    `{"versions":["1.2.3"],"count":2,"reason":"X","at":"2026-09-20T10:05:00Z","retryAfter":"2026-09-20T10:05:00Z"` + extra,
			KeyHistory:    `[{"version":"1.2.3","outcome":"failed","started":"2026-09-20T10:05:00Z","ended":"2026-09-20T10:05:00Z"` + extra + `]`,
		} {
			a[string(k)] = v
		}
		m, problems := Decode(a)
		assert.Equal(t, len(problems), 0, "%v", problems)
		assert.Equal(t, len(m.History), 1)
		m.Disruption.Ready, m.Failure.Count, m.History[0].Reason = "then", 3, "Y"
		written := Encode(m)
		for k, want := range map[Key]string{KeyDisruption: `"ready":"then"`, KeyFailure: `"count":3`, KeyHistory: `"reason":"Y"`} {
			assert.Assert(t, strings.Contains(written[k], want), written[k])
			object := strings.TrimSuffix(strings.TrimPrefix(written[k], "["), "]")
			var fields map[string]json.RawMessage
			assert.NilError(t, json.Unmarshal([]byte(object), &fields))
			assert.DeepEqual(t, exactly(t, fields[name]), exactly(t, []byte(value)))
		}
	})
}

// known are the fields of this build.
var known = map[string]bool{"since": true, "wasUnschedulable": true, "ready": true, "soak": true, "returned": true,
	"before": true, "workloads": true, "drained": true, "asked": true, "notEmpty": true, "late": true,
	"versions": true, "count": true, "reason": true, "message": true, "at": true, "retryAfter": true,
	"version": true, "outcome": true, "started": true, "ended": true}

func quoted(t *testing.T, s string) string {
	t.Helper()
	out, err := json.Marshal(s)
	assert.NilError(t, err)
	return string(out)
}

// exactly decodes JSON without rounding its numbers.
func exactly(t *testing.T, value []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	var v any
	assert.NilError(t, d.Decode(&v))
	return v
}

// FuzzDiff: a diff, applied as a merge patch, makes the writer's keys what they should be and leaves all
// others alone; it holds no change that is none.
func FuzzDiff(f *testing.F) {
	f.Add(uint32(0), uint32(0), "", "", byte(0))
	f.Add(uint32(1<<24-1), uint32(0), "a", "b", byte(1))
	f.Add(uint32(0x00ff00), uint32(0xff0ff0), "x", "x", byte(2))
	f.Add(uint32(0xaaaaaa), uint32(0x555555), "x", "y", byte(2))
	f.Fuzz(func(t *testing.T, stands, wanted uint32, old, value string, writer byte) {
		w := []Writer{WriterUser, WriterController, WriterAgent}[writer%3]
		current, want := map[string]string{"example.com/theirs": old}, map[Key]string{}
		for i, e := range Table() {
			if stands&(1<<i) != 0 {
				current[string(e.Key)] = old
			}
			if wanted&(1<<i) != 0 {
				want[e.Key] = value
			}
		}
		diff := Diff(current, want, w)
		after := maps.Clone(current)
		for k, v := range diff {
			assert.Assert(t, Owns(w, string(k)), k)
			have, stood := current[string(k)]
			if v == nil {
				assert.Assert(t, stood, "%s is deleted and isn't there", k)
				delete(after, string(k))
			} else {
				assert.Assert(t, !stood || have != *v, "%s is set to what it is", k)
				after[string(k)] = *v
			}
		}
		for _, e := range Table() {
			v, there := after[string(e.Key)]
			if Owns(w, string(e.Key)) {
				wantValue, isWanted := want[e.Key]
				assert.Equal(t, there, isWanted, "%s", e.Key)
				assert.Equal(t, v, wantValue, "%s", e.Key)
			} else {
				was, stood := current[string(e.Key)]
				assert.Assert(t, there == stood && v == was, "%s is another's", e.Key)
			}
		}
		assert.Equal(t, after["example.com/theirs"], old)
		assert.Assert(t, Diff(after, want, w) == nil)
	})
}

// aVersion is the expression of semver.org.
var aVersion = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)` +
	`(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?(?:\+([0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*))?$`)

// FuzzVersions: what is valid is a semantic version; the order is the one of semver.org, and a version that
// isn't valid is never newer.
func FuzzVersions(f *testing.F) {
	f.Add("1.26.1", "1.27.0")
	f.Add("1.2.3-rc.1", "1.2.3-rc.1.0")
	f.Add("1.2.3-1", "1.2.3-a")
	f.Add("1.2.3+a", "1.2.3+b")
	f.Add("1.2.3-99999999999999999999", "1.2.3-9")
	f.Add("1.2.3-0123", "v1.2.3")
	f.Add("1.99999999999999999999.0", " 1.2.3")
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, v := range []string{a, b} {
			if ValidVersion(v) {
				assert.Assert(t, aVersion.MatchString(v) && len(v) <= 128, "%q", v)
			}
		}
		got := CompareVersions(a, b)
		assert.Equal(t, CompareVersions(b, a), -got)
		assert.Equal(t, CompareVersions(a, a), 0)
		switch {
		case ValidVersion(a) && ValidVersion(b):
			assert.Equal(t, got, precedence(a, b), "%s and %s", a, b)
		case ValidVersion(a) != ValidVersion(b):
			assert.Equal(t, got == 1, ValidVersion(a))
		default:
			assert.Equal(t, got, 0)
		}
	})
}

// precedence is rule 11 of semver.org.
func precedence(a, b string) int {
	x, y := aVersion.FindStringSubmatch(a), aVersion.FindStringSubmatch(b)
	for i := 1; i <= 3; i++ {
		if c := number(x[i]).Cmp(number(y[i])); c != 0 {
			return c
		}
	}
	switch {
	case x[4] == y[4]:
		return 0
	case x[4] == "":
		return 1
	case y[4] == "":
		return -1
	}
	p, q := strings.Split(x[4], "."), strings.Split(y[4], ".")
	for i := range min(len(p), len(q)) {
		m, n := number(p[i]), number(q[i])
		c := strings.Compare(p[i], q[i])
		switch {
		case m != nil && n != nil:
			c = m.Cmp(n)
		case m != nil:
			c = -1
		case n != nil:
			c = 1
		}
		if c != 0 {
			return c
		}
	}
	return cmp.Compare(len(p), len(q))
}

// number is nil for what isn't digits only.
func number(s string) *big.Int {
	if strings.Trim(s, "0123456789") != "" {
		return nil
	}
	n, ok := new(big.Int).SetString(s, 10)
	if !ok {
		return nil
	}
	return n
}
