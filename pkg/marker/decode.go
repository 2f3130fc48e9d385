package marker

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Problem is one key that could not be read.
type Problem struct {
	Key Key
	// Why is a sentence: what is wrong with the value. It is one printable line of at most
	// MaxMessage bytes, also where it quotes the value.
	Why string
}

func (p Problem) String() string { return fmt.Sprintf("%s: %s", p.Key, p.Why) }

// Decode reads the operator's annotations of one node. A node with problems is to be left alone: the
// Marks hold what could be read, for display only. Without an intent-id the other marks of an intent
// come from an older operator and are not looked at.
func Decode(annotations map[string]string) (Marks, []Problem) {
	d := decoder{from: annotations, whole: true}
	var m Marks
	// What counts of a pause is that it is there, so no reason is too long or too odd for it.
	m.PausedReason, m.Paused = annotations[string(KeyPaused)]
	m.PausedReason = Clip(m.PausedReason, MaxMessage)
	_, m.Retry = annotations[string(KeyRetry)]
	if id := annotations[string(KeyCycle)]; ValidCycle(id) {
		m.Cycle = id
	}
	m.Plan = d.plan()
	m.Lock = d.lock()
	m.Report = d.report()
	if v, ok := d.text(KeyFresh, maxJSON); ok {
		m.Fresh = &Fresh{}
		d.object(KeyFresh, v, m.Fresh, &m.Fresh.extra)
		m.Fresh.Why = Clip(m.Fresh.Why, maxToken)
	}
	if v, ok := d.text(KeyPlanDone, maxJSON); ok {
		// What can't be read is not done: its plans run once more, which costs a run and no promise.
		_ = json.Unmarshal([]byte(v), &m.PlanDone)
	}
	if _, ok := annotations[string(KeyIntentID)]; ok {
		m.Intent = d.intent()
	}
	if v, ok := d.text(KeyDisruption, maxJSON); ok {
		m.Disruption = &Disruption{}
		d.object(KeyDisruption, v, m.Disruption, &m.Disruption.extra)
		// An older name of notEmpty.
		if late, has := m.Disruption.extra["late"]; has && m.Disruption.NotEmpty == nil {
			delete(m.Disruption.extra, "late")
			if err := json.Unmarshal(late, &m.Disruption.NotEmpty); err != nil {
				d.problem(KeyDisruption, "%v", err)
			}
		}
		if m.Disruption.Since.IsZero() {
			d.problem(KeyDisruption, "has no time in \"since\"")
		}
		if m.Intent.ID == "" {
			d.problem(KeyIntentID, "is missing while the node is out of service")
		} else if m.Intent.RebootFrom == "" && m.Intent.Action != ActionStabilize {
			d.problem(KeyRebootFrom, "is missing while the node is out of service")
		}
	} else if m.Intent.Action == ActionRebootUpdate {
		d.problem(KeyDisruption, "is missing while a reboot is asked for")
	}
	if v, ok := d.text(KeyFailure, maxJSON); ok {
		m.Failure = &Failure{}
		d.object(KeyFailure, v, m.Failure, &m.Failure.extra)
		if m.Failure.Count < 0 {
			d.problem(KeyFailure, "has a negative count")
		}
		m.Failure.Versions = d.versions(KeyFailure, m.Failure.Versions)
		m.Failure.Broken = d.versions(KeyFailure, m.Failure.Broken)
		m.Failure.Reason, m.Failure.Message = Clip(m.Failure.Reason, maxToken), Clip(m.Failure.Message, MaxMessage)
	}
	// No promise depends on the history: a broken one is dropped, not a reason to stop.
	m.History = decodeHistory(annotations[string(KeyHistory)])
	if v, ok := annotations[string(KeyWaitingFor)]; ok {
		reason, message, _ := strings.Cut(Clip(v, maxToken+len(": ")+MaxMessage), ": ")
		m.Waiting = &Waiting{Reason: Clip(reason, maxToken), Message: Clip(message, MaxMessage)}
	}
	m.HookID = d.token2(KeyHookID)
	if v, ok := annotations[string(KeyAutoLabelled)]; ok {
		m.AutoLabelled = &v
	}
	return m, d.problems
}

// DecodeReport reads the agent's part alone.
func DecodeReport(annotations map[string]string) (Report, []Problem) {
	d := decoder{from: annotations}
	return d.report(), d.problems
}

// DecodeIntent reads the intent alone; no intent-id means no intent and no problem.
func DecodeIntent(annotations map[string]string) (Intent, []Problem) {
	if _, ok := annotations[string(KeyIntentID)]; !ok {
		return Intent{}, nil
	}
	d := decoder{from: annotations}
	return d.intent(), d.problems
}

// DecodePlan reads what the attempt of a plan does, alone; nil and no problem where the node has none.
func DecodePlan(annotations map[string]string) (*Plan, []Problem) {
	d := decoder{from: annotations}
	return d.plan(), d.problems
}

// DecodeLock reads the wish to lock the host, alone; nil and no problem where the node has none.
func DecodeLock(annotations map[string]string) (*Lock, []Problem) {
	d := decoder{from: annotations}
	return d.lock(), d.problems
}

type decoder struct {
	from map[string]string
	// whole: all marks of a Node are read, as the controller reads them, and not one writer's alone.
	whole    bool
	problems []Problem
}

func (d *decoder) problem(k Key, format string, args ...any) {
	d.problems = append(d.problems, Problem{Key: k, Why: Clip(fmt.Sprintf(format, args...), MaxMessage)})
}

// text returns a value that is present and within its limit.
func (d *decoder) text(k Key, limit int) (string, bool) {
	v, ok := d.from[string(k)]
	if !ok {
		return "", false
	}
	if len(v) > limit {
		d.problem(k, "is %d bytes long, more than %d", len(v), limit)
		return "", true
	}
	if !utf8.ValidString(v) {
		d.problem(k, "is not valid UTF-8")
		return "", true
	}
	return v, true
}

// token returns a short value without white space or control characters.
func (d *decoder) token(k Key) string {
	v, ok := d.text(k, maxToken)
	if ok && !ValidToken(v) {
		d.problem(k, "is empty or has characters that do not belong there")
		return ""
	}
	return v
}

// ValidToken reports whether s can be an id: 1 to 128 printable ASCII characters without space.
func ValidToken(s string) bool {
	if s == "" || len(s) > maxToken {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// ValidCycle reports whether s can be the id of a request for a cycle: 1 to 63 letters, digits, dots, underscores and
// hyphens.
func ValidCycle(s string) bool {
	return s != "" && len(s) <= maxCycle && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == ""
}

func (d *decoder) version(k Key) string {
	v, ok := d.text(k, maxToken)
	// An agent of the Update API says nothing of plans.
	_, plan := d.from[string(KeyPlan)]
	if ok && !ValidVersion(v) && !(plan && ValidPlanVersion(v)) {
		d.problem(k, "%.40q is not a version", v)
		return ""
	}
	return v
}

// versions are those of a list that are versions.
func (d *decoder) versions(k Key, list []string) []string {
	for _, v := range list {
		if !ValidVersion(v) && !ValidPlanVersion(v) {
			d.problem(k, "has %.40q, which is not a version", v)
			return slices.DeleteFunc(list, func(v string) bool { return !ValidVersion(v) && !ValidPlanVersion(v) })
		}
	}
	return list
}

func (d *decoder) time(k Key) time.Time {
	v, ok := d.text(k, maxToken)
	if !ok {
		d.problem(k, "is missing")
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, v)
	if err != nil || t.UTC().Year() < 1 || t.UTC().Year() > 9999 {
		// A year that UTC moves out of four digits could not be written again.
		d.problem(k, "%.40q is not an RFC 3339 time", v)
		return time.Time{}
	}
	return t
}

func (d *decoder) intent() Intent {
	i := Intent{
		ID:         d.token(KeyIntentID),
		Action:     Action(d.from[string(KeyActionWanted)]),
		Time:       d.time(KeyIntentTime),
		Until:      d.time(KeyIntentUntil),
		Target:     d.version(KeyTargetVersion),
		RebootFrom: d.token2(KeyRebootFrom),
		Template:   d.token2(KeyPlanTemplate),
	}
	if !slices.Contains(Actions(), i.Action) {
		d.problem(KeyActionWanted, "%.40q is not an action", i.Action)
		i.Action = ""
	}
	if i.Target == "" && (i.Action.Stages() || i.Action == ActionRebootUpdate) {
		d.problem(KeyTargetVersion, "is missing or unreadable")
	}
	if i.RebootFrom == "" && i.Action == ActionRebootUpdate {
		d.problem(KeyRebootFrom, "is missing or unreadable")
	}
	return i
}

// current returns the version that the host runs. That of a plan stands on the Node for a moment longer than the plan,
// which the controller removes at the end of the attempt, and says nothing any more.
func (d *decoder) current() string {
	_, plan := d.from[string(KeyPlan)]
	if v := d.from[string(KeyCurrentVersion)]; d.whole && !plan && ValidPlanVersion(v) {
		return ""
	}
	return d.version(KeyCurrentVersion)
}

// plan returns what an attempt of a plan does. It is fixed for the attempt, so one that can't be read leaves the node
// alone.
func (d *decoder) plan() *Plan {
	v, ok := d.text(KeyPlan, maxJSON)
	if !ok {
		return nil
	}
	p := &Plan{}
	d.object(KeyPlan, v, p, &p.extra)
	if why := p.wrong(); why != "" {
		d.problem(KeyPlan, "%s", why)
	}
	return p
}

// lock returns the wish to lock the host. What stood there before can't be put back where it can't be read.
func (d *decoder) lock() *Lock {
	v, ok := d.text(KeyLock, maxJSON)
	if !ok {
		return nil
	}
	l := &Lock{}
	d.object(KeyLock, v, l, &l.extra)
	for _, lock := range append([]string{l.Want, l.Before}, l.Asked...) {
		if !ValidLock(lock) {
			d.problem(KeyLock, "has %.40q, which is neither latest nor a version", lock)
			break
		}
	}
	return l
}

// token2 is token for a key that may be absent.
func (d *decoder) token2(k Key) string {
	if _, ok := d.from[string(k)]; !ok {
		return ""
	}
	return d.token(k)
}

// valid returns a value that may be absent, and must be what is said of it.
func (d *decoder) valid(k Key, is func(string) bool, what string) string {
	v, ok := d.text(k, maxOfferedBytes)
	if ok && !is(v) {
		d.problem(k, "%.40q is not %s", v, what)
		return ""
	}
	return v
}

func (d *decoder) report() Report {
	r := Report{
		Available: d.version(KeyAvailableVersion),
		Current:   d.current(),
		BootID:    d.token2(KeyBootID),

		ActivatedID: d.token2(KeyActivatedID),

		Offered:     Offers(d.valid(KeyOfferedVersions, func(s string) bool { return Offers(s).valid() }, "a list of versions")),
		VersionLock: d.valid(KeyVersionLock, ValidLock, "latest or a version"),
		WaveSeed:    d.valid(KeyWaveSeed, ValidSeed, "a number of 32 bits"),
	}
	// What is only shown is made printable; nothing is decided on it.
	build, _ := d.text(KeyOperatorVersion, maxToken)
	r.OperatorVersion = Clip(build, maxToken)
	if v, ok := d.text(KeyProtocol, maxToken); ok {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 {
			d.problem(KeyProtocol, "%.40q is not a positive integer", v)
		}
		r.Protocol = n
	}
	r.ActiveID = d.token2(KeyActiveID)
	if r.ActiveID == "" {
		return r
	}
	message, _ := d.text(KeyMessage, MaxMessage)
	r.Message = Clip(message, MaxMessage)
	// A newer agent's reason is no reason to stop, and none that this build could act on.
	if reason := ReportReason(d.from[string(KeyReason)]); slices.Contains(ReportReasons(), reason) {
		r.Reason = reason
	}
	r.State = State(d.from[string(KeyActionState)])
	if !slices.Contains(States(), r.State) {
		d.problem(KeyActionState, "%.40q is not a state", r.State)
		r.State = StateNone
	}
	return r
}

func (d *decoder) object(k Key, value string, into any, unknown *extra) {
	if value == "" {
		d.problem(k, "is empty")
		return
	}
	var err error
	if *unknown, err = unmarshal([]byte(value), into); err != nil {
		d.problem(k, "%v", err)
	}
}
