package hostsim

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/util/version"
)

// FaultID names a fault. The list is closed; an unknown one is an error wherever it is read.
type FaultID string

// The faults. Where nothing else is said, Delay replaces the command's latency.
const (
	// F1: a foreign command (Variant: refresh, prepare, activate, deactivate) takes the lock just
	// before the next request that needs it, for Delay, else up to Until, else for 30 s. It runs like
	// any other, and leaves its record; one that the state doesn't allow isn't started.
	F1 FaultID = "F1"
	// F2: the lock is never released, until the machine goes down. With Command it is held by that command, which
	// doesn't end while the fault is there; with Version too, by a prepare that writes that version.
	F2 FaultID = "F2"
	// F3: a refresh fails to fetch the metadata.
	F3 FaultID = "F3"
	// F4: a prepare fails (Variant: write, metadata, target, manifest): while it downloads, at the metadata before it
	// announces its version and clears the inactive set, or at the migrations before it clears it.
	F4 FaultID = "F4"
	// F5: a prepare fails on the disk (Variant: open, table, single-bank).
	F5 FaultID = "F5"
	// F6: Version, or everything above the running one, is hidden from this host.
	F6 FaultID = "F6"
	// F7: like F6, but only prepare doesn't see it: the phantom stage.
	F7 FaultID = "F7"
	// F8: an activate fails (Variant: invalid, marked).
	F8 FaultID = "F8"
	// F9: a prepare writes Version instead of the recorded choice.
	F9 FaultID = "F9"
	// F10: the child of Command (any if empty) dies without a record.
	F10 FaultID = "F10"
	// F11: the API server is restarted. Not a fault of a host: Server.Close and Server.Serve.
	F11 FaultID = "F11"
	// F12: the socket hangs (Variant: silent, headers, truncated), for path On, or method and path, or for all.
	F12 FaultID = "F12"
	// F13: an answer to GET On (/updates/status if empty, or /os) is malformed (Variant: see
	// malformed). Variant dispatcher may also be On a POST of an update command, which isn't started.
	F13 FaultID = "F13"
	// F14: a reboot is refused (Variant: inhibited, start).
	F14 FaultID = "F14"
	// F15: a reboot is accepted and the machine goes down after Delay, but the answer is lost (Variant:
	// eof, reset) or only early (Variant: delay).
	F15 FaultID = "F15"
	// F16: a reboot is accepted and never happens.
	F16 FaultID = "F16"
	// F17: a set that never came up (of Version, if given) doesn't come up at the next boot either.
	F17 FaultID = "F17"
	// F18: the node never gets Ready after the boot, of Version if that is given. No answer of the host shows it: it
	// is set here for what plays the host's kubelet.
	F18 FaultID = "F18"
	// F19, F20: a reboot from outside while Ready or Staged. Call Boot.
	F19 FaultID = "F19"
	F20 FaultID = "F20"
	// F21, F22: another program deactivates, or refreshes, out of turn. Call Foreign.
	F21 FaultID = "F21"
	F22 FaultID = "F22"
	// F23: the wave isn't open. Give the release waves.
	F23 FaultID = "F23"
	// F24: the running version is withdrawn. Call Repo.Withdraw.
	F24 FaultID = "F24"
	// F25: no in-place updates (Variant: dispatcher), or an API with none of these routes (routes).
	F25 FaultID = "F25"
	// F26: the data store is locked down: settings answer 500, those of path On, or method and path, or all.
	F26 FaultID = "F26"
	// F27: a refresh fails on its configuration (Variant: panic, config).
	F27 FaultID = "F27"
	// F28: no client may connect. Server heeds it when it starts to serve, as the mode of the socket.
	F28 FaultID = "F28"
	// F29: the host's clock is off by Delay, which may be negative.
	F29 FaultID = "F29"
	// F30: updog is killed in Command (any if empty) by a signal (Variant: 9, 15).
	F30 FaultID = "F30"
	// F31: an activate or deactivate (Command; both if empty) can't load the repository, and fails after Delay.
	F31 FaultID = "F31"
	// F32: the API's one worker was blocked for long: a request of path On, or method and path (any if empty), comes too
	// late and isn't executed. The answer says so (Variant: late), or the connection is reset (reset).
	F32 FaultID = "F32"
	// F33: the dispatcher can't be started for Command (any if empty), for want of memory.
	F33 FaultID = "F33"
	// F34: a refresh is recorded as a success without having looked.
	F34 FaultID = "F34"
	// F35: Command (any if empty) prints more than a client should read.
	F35 FaultID = "F35"
)

// The variants that code asks for.
const (
	variantDispatcher = "dispatcher"
	variantMarked     = "marked"
	variantPanic      = "panic"
	variantRoutes     = "routes"
	variantStart      = "start"
	variantEOF        = "eof"
	variantReset      = "reset"
	variantLate       = "late"
	variantMetadata   = "metadata"
	variantManifest   = "manifest"
)

// foreignTakes is how long the foreign command of an F1 takes that doesn't say.
const foreignTakes = 30 * time.Second

// prepareFailures are the complaints behind "Starting update to V"; what follows the first colon is
// an illustration.
var prepareFailures = map[string]string{
	"write":       "Failed writing update data to disk: Failed to read from HTTP response: error decoding response body",
	"metadata":    "Metadata error: timestamp metadata is expired",
	"target":      "Target not found: bottlerocket-boot.ext4.lz4",
	"manifest":    "Failed to store manifest and migrations: Metadata error: Failed to verify signature threshold for role targets",
	"open":        "Failed to open partition /dev/nvme0n1p8: Input/output error (os error 5)",
	"table":       "Failed to modify OS disk partition table: Failed to write GPT to /dev/nvme0n1: Input/output error (os error 5)",
	"single-bank": "Could not find inactive partition set",
}

// Fault is one fault to inject.
type Fault struct {
	ID FaultID `json:"id"`
	// Variant is one of the fault's; empty is the first that its comment names.
	Variant string `json:"variant,omitempty"`
	// Count is how often it strikes before it is gone; 0: always.
	Count int `json:"count,omitempty"`
	// Until is when it is over on the host's injected clock; zero: never.
	Until time.Time `json:"until,omitzero"`
	// Delay is described with each fault.
	Delay Duration `json:"delay,omitempty"`
	// Version, Command and On narrow some faults down.
	Version string  `json:"version,omitempty"`
	Command Command `json:"command,omitempty"`
	On      string  `json:"on,omitempty"`
}

// Duration is a time.Duration that JSON writes like "1m30s".
type Duration time.Duration

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	*d = Duration(v)
	return errors.Wrap(err, "parse duration")
}

// trait is what a fault takes.
type trait struct {
	// elsewhere says how to get the fault, when it isn't one to set.
	elsewhere string
	variants  []string
	// steady faults are a condition and don't strike, so they take no Count.
	steady               bool
	version, command, on bool
}

var traits = map[FaultID]trait{
	F1:  {variants: []string{"refresh", "prepare", "activate", "deactivate"}},
	F2:  {steady: true, version: true, command: true},
	F3:  {},
	F4:  {variants: []string{"write", variantMetadata, "target", variantManifest}},
	F5:  {variants: []string{"open", "table", "single-bank"}},
	F6:  {version: true},
	F7:  {version: true},
	F8:  {variants: []string{"invalid", variantMarked}},
	F9:  {version: true},
	F10: {command: true},
	F11: {elsewhere: "close and serve again"},
	F12: {variants: []string{"silent", "headers", "truncated"}, on: true},
	F13: {variants: malformedVariants(), on: true},
	F14: {variants: []string{"inhibited", variantStart}},
	F15: {variants: []string{variantEOF, variantReset, "delay"}},
	F16: {},
	F17: {version: true},
	F18: {steady: true, version: true},
	F19: {elsewhere: "boot the host"},
	F20: {elsewhere: "boot the host"},
	F21: {elsewhere: "start a foreign deactivate"},
	F22: {elsewhere: "start a foreign refresh"},
	F23: {elsewhere: "give the release waves"},
	F24: {elsewhere: "withdraw the release"},
	F25: {variants: []string{variantDispatcher, variantRoutes}},
	F26: {on: true},
	F27: {variants: []string{variantPanic, "config"}},
	F28: {steady: true},
	F29: {steady: true},
	F30: {variants: []string{"9", "15"}, command: true},
	F31: {command: true},
	F32: {variants: []string{variantLate, variantReset}, on: true},
	F33: {command: true},
	F34: {},
	F35: {command: true},
}

// Variants lists those of a fault; the first is the default. It is empty for a fault that has none.
func Variants(id FaultID) []string { return slices.Clone(traits[id].variants) }

// UnmarshalText implements encoding.TextUnmarshaler; it knows the listed faults only.
func (id *FaultID) UnmarshalText(b []byte) error {
	if _, ok := traits[FaultID(b)]; !ok {
		return errors.Errorf("unknown fault %q", b)
	}
	*id = FaultID(b)
	return nil
}

// check validates f and fills in its variant.
func (f *Fault) check() error {
	t, known := traits[f.ID]
	switch {
	case !known:
		return errors.Errorf("unknown fault %q", f.ID)
	case t.elsewhere != "":
		return errors.Errorf("fault %s isn't set on a host: %s", f.ID, t.elsewhere)
	case f.Count < 0:
		return errors.Errorf("fault %s: count %d is negative", f.ID, f.Count)
	case f.Count != 0 && t.steady:
		return errors.Errorf("fault %s is a condition and takes no count", f.ID)
	case f.Delay < 0 && f.ID != F29:
		return errors.Errorf("fault %s: delay is negative", f.ID)
	case f.Version != "" && !t.version:
		return errors.Errorf("fault %s takes no version", f.ID)
	case f.Version == "" && f.ID == F9:
		return errors.Errorf("fault %s needs a version", f.ID)
	case f.Version != "" && f.ID == F2 && f.Command != Prepare:
		return errors.Errorf("fault %s with a version needs the command %s", f.ID, Prepare)
	case f.Command != "" && !t.command:
		return errors.Errorf("fault %s takes no command", f.ID)
	case f.On != "" && !t.on:
		return errors.Errorf("fault %s takes no path", f.ID)
	case f.ID == F13 && !slices.Contains([]string{"", pathOS, pathStatus}, f.On) && !f.corruptFor(f.On):
		return errors.Errorf("fault %s isn't for path %q", f.ID, f.On)
	}
	if f.Version != "" {
		if _, err := parseVersion(f.Version); err != nil {
			return errors.WithMessagef(err, "fault %s", f.ID)
		}
	}
	switch f.Command {
	case "", Refresh, Prepare, Activate, Deactivate:
	default:
		return errors.Errorf("fault %s: unknown command %q", f.ID, f.Command)
	}
	if f.Variant == "" && len(t.variants) > 0 {
		f.Variant = t.variants[0]
	}
	if f.Variant != "" && !slices.Contains(t.variants, f.Variant) {
		return errors.Errorf("fault %s has no variant %q (it has: %s)", f.ID, f.Variant, strings.Join(t.variants, ", "))
	}
	return nil
}

// corruptFor tells whether f is a corrupt status file that a command of path trips over.
func (f Fault) corruptFor(path string) bool {
	_, isCommand := commandOf(path)
	return isCommand && f.ID == F13 && f.Variant == variantDispatcher && f.On == path
}

// isFor reports whether f is for the request, by its path, or by its method and path: `PATCH /settings`.
func (f Fault) isFor(r Request) bool {
	return f.On == "" || f.On == r.Path || f.On == r.Method+" "+r.Path
}

func (f Fault) inForce(now time.Time) bool { return f.Until.IsZero() || now.Before(f.Until) }

// ParseFaults reads a JSON array of faults. Unknown fields and unknown faults are errors.
func ParseFaults(b []byte) ([]Fault, error) {
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.DisallowUnknownFields()
	var out []Fault
	if err := d.Decode(&out); err != nil {
		return nil, errors.Wrap(err, "parse faults")
	}
	for i := range out {
		if err := out[i].check(); err != nil {
			return nil, errors.WithMessage(err, "parse faults")
		}
	}
	return out, nil
}

// SetFaults replaces all faults of the host.
func (h *Host) SetFaults(faults ...Fault) error {
	faults = slices.Clone(faults)
	for i := range faults {
		if err := faults[i].check(); err != nil {
			return errors.WithMessage(err, "set faults")
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.advance()
	h.faults = faults
	return nil
}

// AddFault adds one. Of several with the same ID, the first that fits strikes.
func (h *Host) AddFault(f Fault) error {
	if err := f.check(); err != nil {
		return errors.WithMessage(err, "add fault")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.advance()
	h.faults = append(h.faults, f)
	return nil
}

// Faults returns the faults that are left, with the strikes that are left to them.
func (h *Host) Faults() []Fault {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.advance()
	return slices.DeleteFunc(slices.Clone(h.faults), func(f Fault) bool { return !f.inForce(now) })
}

// strike finds a fault in force that fits, and counts it.
func (h *Host) strike(id FaultID, now time.Time, fits func(Fault) bool) (Fault, bool) {
	for i, f := range h.faults {
		if f.ID != id || !f.inForce(now) || fits != nil && !fits(f) {
			continue
		}
		switch f.Count {
		case 0:
		case 1:
			h.faults = slices.Delete(slices.Clone(h.faults), i, i+1)
		default:
			h.faults[i].Count--
		}
		return f, true
	}
	return Fault{}, false
}

// holds is strike for steady faults.
func (h *Host) holds(id FaultID, now time.Time, fits func(Fault) bool) bool {
	return slices.ContainsFunc(h.faults, func(f Fault) bool { return f.ID == id && f.inForce(now) && (fits == nil || fits(f)) })
}

// lockIsLost fits an F2 that needs no command to hold the lock.
func lockIsLost(f Fault) bool { return f.ID == F2 && f.Command == "" }

// hangs reports whether the pending command doesn't end because of an F2.
func (h *Host) hangs(now time.Time) bool {
	return h.holds(F2, now, func(f Fault) bool {
		return f.Command == h.pending.command && (f.Version == "" || f.Version == h.pending.outcome.written)
	})
}

// onCommand fits faults that are for c or for any command.
func onCommand(c Command) func(Fault) bool {
	return func(f Fault) bool { return f.Command == "" || f.Command == c }
}

// hide takes a release, or all above the running one, out of a host's sight.
func hide(entries []entry, name string, running *version.Version) []entry {
	return slices.DeleteFunc(slices.Clone(entries), func(e entry) bool {
		if name != "" {
			return e.name == name
		}
		return running.LessThan(e.version)
	})
}

func firstLine(s string) string {
	line, _, found := strings.Cut(s, "\n")
	if found {
		line += "\n"
	}
	return line
}
