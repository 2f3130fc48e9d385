package hostsim

import (
	"strconv"
	"strings"
	"time"

	"github.com/pkg/errors"
)

// The bodies of handler verdicts on updates.
const (
	bodyUninitialized = "Update status is uninitialized, refresh-updates to initialize it"
	bodyStatusLocked  = "Unable to obtain shared lock for reading update status: Resource temporarily unavailable (os error 11)"
	bodyLocked        = "Update lock held"
	bodyDisallowed    = "Update action not allowed according to update state"
	bodyChosenGone    = "Previously chosen Update no longer exists"
	bodyNothingStaged = "No update image applied to staging partition"
	bodyDispatcher    = "Update dispatcher failed"
	bodyNoDispatcher  = "Unable to start the update dispatcher: No such file or directory (os error 2) "
	bodyNoMemory      = "Unable to start the update dispatcher: Cannot allocate memory (os error 12) "
)

// What updog prints.
const (
	stderrAlreadyMarked = "Could not mark inactive partition for boot: Inactive partition /dev/nvme0n1 is already marked for upgrade\n"
	stderrNotValid      = "Could not mark inactive partition for boot: Inactive partition /dev/nvme0n1 has not been marked valid for upgrade\n"
	stderrNoUpdate      = "No update required\n"
	// The cause stands last, after hundreds of bytes.
	stderrNoRepository = "Metadata error: Failed to fetch https://updates.bottlerocket.aws/2020-07-07/aws-k8s-1.36/x86_64/2.root.json: " +
		"Transport 'other' error fetching 'https://updates.bottlerocket.aws/2020-07-07/aws-k8s-1.36/x86_64/2.root.json': " +
		"error sending request for url (https://updates.bottlerocket.aws/2020-07-07/aws-k8s-1.36/x86_64/2.root.json): " +
		"error trying to connect: tcp connect error: Connection refused (os error 111)\n"
	stderrSeedRange = "thread 'main' panicked at 'range start is greater than range end in BTreeMap'\n"
)

func stderrStarting(version string) string { return "Starting update to " + version + "\n" }

// exitPanic is the exit status of a Rust program that panicked.
const exitPanic = 101

// pending is a command that was started, with its outcome.
type pending struct {
	command Command
	end     time.Time
	outcome outcome
}

// outcome is how a command ends, decided when it starts.
type outcome struct {
	// silent: the child dies and records nothing.
	silent bool
	exit   int32
	stderr string
	// found is what a successful refresh saw.
	found choice
	// written is the version that a prepare wrote; empty when it wrote none.
	written string
	// flip: an activate or deactivate changed the partition flags.
	flip bool
}

// locked reports whether the update lock is held. A foreign command of F1 takes it here, just before
// the command that asks.
func (h *Host) locked(now time.Time) bool {
	if h.pending == nil && !h.holds(F2, now, lockIsLost) {
		if f, ok := h.strike(F1, now, nil); ok {
			takes := foreignTakes
			if f.Delay > 0 {
				takes = time.Duration(f.Delay)
			} else if !f.Until.IsZero() {
				takes = f.Until.Sub(now)
			}
			if _, why := h.judge(Command(f.Variant)); why == "" {
				h.start(Command(f.Variant), now, takes)
			}
		}
	}
	return h.pending != nil || h.holds(F2, now, lockIsLost)
}

// initialize makes the status record if the boot has none yet.
func (h *Host) initialize() {
	if h.record != nil {
		return
	}
	h.record = &record{
		State:     Idle,
		Available: []string{},
		Active: &partition{
			Image:      h.image(h.disk.running().Version),
			NextToBoot: h.disk.next() == h.disk.active,
		},
	}
}

func (h *Host) image(version string) image {
	return image{Arch: h.cfg.Arch, Version: version, Variant: h.cfg.Variant}
}

// judge is the dispatcher's check of a command against the state: the status and body of its no, or
// an empty body for a yes. It makes the record, which a rejected command does as well.
func (h *Host) judge(c Command) (status int, body string) {
	h.initialize()
	state := h.record.State
	switch c {
	case Refresh:
		return 0, ""
	case Prepare:
		if state != Available && state != Staged {
			return 409, bodyDisallowed
		}
		if h.record.Chosen == nil {
			return 404, bodyChosenGone
		}
	case Activate:
		if state != Staged {
			return 409, bodyDisallowed
		}
		if h.record.Staging == nil {
			return 404, bodyNothingStaged
		}
	case Deactivate:
		if state != Ready {
			return 409, bodyDisallowed
		}
		if h.record.Staging == nil {
			return 404, bodyNothingStaged
		}
	}
	return 0, ""
}

// action answers a POST of one of the four commands.
func (h *Host) action(c Command, path string, now time.Time) Answer {
	if _, ok := h.strike(F25, now, isDispatcher); ok {
		return textAnswer(500, bodyNoDispatcher)
	}
	if _, ok := h.strike(F33, now, onCommand(c)); ok {
		return textAnswer(500, bodyNoMemory)
	}
	if h.locked(now) {
		return textAnswer(423, bodyLocked)
	}
	if _, ok := h.strike(F13, now, func(f Fault) bool { return f.corruptFor(path) }); ok {
		return textAnswer(500, bodyDispatcher)
	}
	if status, body := h.judge(c); body != "" {
		return textAnswer(status, body)
	}
	h.counters.Commands[c]++
	h.start(c, now, h.latency(c))
	return Answer{Status: 204}
}

func (h *Host) latency(c Command) time.Duration {
	switch c {
	case Refresh:
		return h.cfg.Latencies.Refresh
	case Prepare:
		return h.cfg.Latencies.Prepare
	case Activate:
		return h.cfg.Latencies.Activate
	default:
		return h.cfg.Latencies.Deactivate
	}
}

// start decides how a legal command will end and takes the lock until then.
func (h *Host) start(c Command, now time.Time, takes time.Duration) {
	var o outcome
	var slow Duration
	switch c {
	case Refresh:
		o, slow = h.runRefresh(now)
	case Prepare:
		o, slow = h.runPrepare(now)
	case Activate, Deactivate:
		o, slow = h.runFlip(c, now)
	}
	if f, ok := h.strike(F10, now, onCommand(c)); ok {
		o, slow = outcome{silent: true}, max(slow, f.Delay)
	} else if f, ok := h.strike(F30, now, onCommand(c)); ok {
		// What updog had printed by then stays; what it was to do isn't done.
		signal, _ := strconv.Atoi(f.Variant)
		o, slow = outcome{exit: int32(signal), stderr: firstLine(o.stderr)}, max(slow, f.Delay)
	}
	if _, ok := h.strike(F35, now, onCommand(c)); ok {
		o.stderr += strings.Repeat("a line of a log that was left on\n", 1<<16)
	}
	if slow > 0 {
		takes = time.Duration(slow)
	}
	h.pending = &pending{command: c, end: now.Add(takes), outcome: o}
}

// look is updog's look at the repository; a broken one comes back as the outcome of the command.
func (h *Host) look(now time.Time, ids ...FaultID) (choice, *outcome) {
	running, err := h.runningVersion()
	if err != nil {
		return choice{}, &outcome{exit: 1, stderr: err.Error() + "\n"}
	}
	entries := h.cfg.Repo.entries(h.cfg.Variant, h.cfg.Arch)
	for _, id := range ids {
		if f, ok := h.strike(id, now, nil); ok {
			entries = hide(entries, f.Version, running)
		}
	}
	found, err := choose(entries, h.effective, running, h.clock(now))
	switch {
	case errors.Is(err, errSeedRange):
		return choice{}, &outcome{exit: exitPanic, stderr: stderrSeedRange}
	case err != nil:
		return choice{}, &outcome{exit: 1, stderr: "Failed to parse config file /etc/updog.toml: " + err.Error() + "\n"}
	}
	return found, nil
}

func (h *Host) runRefresh(now time.Time) (outcome, Duration) {
	if f, ok := h.strike(F3, now, nil); ok {
		return outcome{exit: 1, stderr: "Metadata error: Failed to fetch " + h.effective.MetadataBaseURL +
			"timestamp.json: error sending request\n"}, f.Delay
	}
	if f, ok := h.strike(F27, now, nil); ok {
		if f.Variant == variantPanic {
			return outcome{exit: exitPanic, stderr: stderrSeedRange}, f.Delay
		}
		return outcome{exit: 1, stderr: "Failed to parse config file /etc/updog.toml: expected an equals, found an identifier at line 3\n"}, f.Delay
	}
	if _, ok := h.strike(F34, now, nil); ok {
		// What it found before stands, and on the first refresh of a boot there is nothing.
		was := choice{available: h.record.Available}
		if h.record.Chosen != nil {
			was.chosen = h.record.Chosen.Version
		}
		return outcome{found: was}, 0
	}
	found, broken := h.look(now, F6)
	if broken != nil {
		return *broken, 0
	}
	return outcome{found: found}, 0
}

func (h *Host) runPrepare(now time.Time) (outcome, Duration) {
	found, broken := h.look(now, F6, F7)
	if broken != nil {
		return *broken, 0
	}
	version := found.chosen
	if f, ok := h.strike(F9, now, nil); ok {
		version = f.Version
	}
	if version == "" {
		// The disk isn't touched, and yet the dispatcher will record a stage.
		return outcome{stderr: stderrNoUpdate}, 0
	}
	for _, id := range []FaultID{F4, F5} {
		f, ok := h.strike(id, now, nil)
		if !ok {
			continue
		}
		o := outcome{exit: 1, stderr: stderrStarting(version) + prepareFailures[f.Variant] + "\n"}
		switch f.Variant {
		case variantMetadata:
			o.stderr = prepareFailures[f.Variant] + "\n"
		case variantManifest:
		default:
			h.disk.clearInactive()
		}
		return o, f.Delay
	}
	h.disk.clearInactive()
	return outcome{stderr: stderrStarting(version), written: version}, 0
}

func (h *Host) runFlip(c Command, now time.Time) (outcome, Duration) {
	if f, ok := h.strike(F31, now, onCommand(c)); ok {
		return outcome{exit: 1, stderr: stderrNoRepository}, f.Delay
	}
	if c == Deactivate {
		return outcome{flip: true}, 0
	}
	if f, ok := h.strike(F8, now, nil); ok {
		if f.Variant == variantMarked {
			return outcome{exit: 1, stderr: stderrAlreadyMarked}, f.Delay
		}
		return outcome{exit: 1, stderr: stderrNotValid}, f.Delay
	}
	return outcome{flip: true}, 0
}

// finish applies the pending command, at the time of its end.
func (h *Host) finish() {
	c, end, o := h.pending.command, h.pending.end, h.pending.outcome
	h.pending = nil
	if o.silent {
		return
	}
	if o.flip {
		if c == Deactivate {
			h.disk.deactivate()
		} else if complaint := h.disk.activate(); complaint != "" {
			o.exit, o.stderr, o.flip = 1, complaint, false
		}
	}
	if o.written != "" {
		h.disk.write(o.written)
	}
	ok := o.exit == 0
	switch r := h.record; c {
	case Refresh:
		if ok {
			r.Available, r.Chosen = o.found.available, nil
			if o.found.chosen != "" {
				chosen := h.image(o.found.chosen)
				r.Chosen = &chosen
			}
		}
		// A failed refresh leaves the old choice behind, next to Idle.
		if r.State == Idle || r.State == Available {
			r.State = Idle
			if ok && r.Chosen != nil {
				r.State = Available
			}
		}
	case Prepare:
		if ok {
			// The dispatcher records what it had chosen, whatever updog wrote.
			r.State, r.Staging = Staged, &partition{Image: *r.Chosen}
		}
	case Activate, Deactivate:
		if ok {
			r.State = Ready
			if c == Deactivate {
				r.State = Staged
			}
			r.Active.NextToBoot = c == Deactivate
			r.Staging.NextToBoot = c == Activate
		}
	}
	h.record.Last = &commandRecord{Type: c, Status: "Success", Timestamp: h.stamp(end), Exit: o.exit, Stderr: o.stderr}
	if !ok {
		h.record.Last.Status = "Failed"
	}
}

// stamp is the host's clock at t. Two commands never end in the same nanosecond of a real clock, so
// that mustn't happen on a virtual one either.
func (h *Host) stamp(t time.Time) string {
	t = h.clock(t)
	if t.Equal(h.stamped) {
		h.repeats++
	} else {
		h.stamped, h.repeats = t, 0
	}
	return timestamp(t.Add(h.repeats))
}

// clock is what the host takes the time to be at t.
func (h *Host) clock(t time.Time) time.Time {
	for _, f := range h.faults {
		if f.ID == F29 && f.inForce(t) {
			t = t.Add(time.Duration(f.Delay))
		}
	}
	return t
}

// Foreign starts a command as another program on the host would, past every fault of the API. The text
// of a refusal comes back as the error.
func (h *Host) Foreign(c Command) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.advance()
	switch {
	case h.off:
		return errors.New("start foreign command: the machine is off")
	case h.pending != nil || h.holds(F2, now, lockIsLost):
		return errors.Errorf("start foreign %s: %s", c, bodyLocked)
	}
	if _, body := h.judge(c); body != "" {
		return errors.Errorf("start foreign %s: %s", c, body)
	}
	h.start(c, now, h.latency(c))
	return nil
}

// ApplyOutside writes version to the inactive set and makes it the next to boot, as updog does when
// a user runs it in a root shell: no record tells of it.
func (h *Host) ApplyOutside(version string) error {
	if _, err := parseVersion(version); err != nil {
		return errors.WithMessage(err, "apply update outside of the update api")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.advance()
	h.disk.clearInactive()
	h.disk.write(version)
	if complaint := h.disk.activate(); complaint != "" {
		return errors.Errorf("apply update outside of the update api: %s", complaint)
	}
	return nil
}
