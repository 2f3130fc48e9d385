package hostsim

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/util/version"
)

// Config is what a host is made of. Only Version is needed.
type Config struct {
	// Name seeds the boot IDs, so hosts that run together need different ones.
	Name string
	// Version is the release that the host runs at first: plain semver.
	Version string
	// Variant defaults to aws-k8s-1.31, Arch to x86_64.
	Variant, Arch string
	// Settings are the update settings at first; see Settings for the defaults.
	Settings Settings
	// Repo is where the host looks for updates; nil is an empty repository of its own.
	Repo *Repo
	// Now is the clock; nil is time.Now. It is called with the host locked, so it must not look at it,
	// and under a Server from many goroutines.
	Now func() time.Time
	// BootID makes the next kernel's boot ID; nil makes UUIDs from Name and the number of the boot.
	// It is called with the host locked.
	BootID func() string
	// BuildID gives the build_id of a version; nil makes one from a hash of the version.
	BuildID func(version string) string
	// Latencies are how long things take.
	Latencies Latencies
	// OnReboot is called when the machine is to go down because of an accepted POST /actions/reboot. It
	// is called without the host locked, in the goroutine that looked: by Server after the answer was
	// written, by Transport before the answer is returned, and by Settle. It may do PowerOff, Boot and
	// Server.Close itself, or only take a note. nil: the machine never goes down.
	OnReboot func()
}

// Latencies are how long a host takes. All default to 0: done at the next look.
type Latencies struct {
	Refresh, Prepare, Activate, Deactivate time.Duration
	// Settings is how long committed settings take to reach the configuration files of the updater.
	Settings time.Duration
}

// Host is one Bottlerocket machine. It is safe for concurrent use.
type Host struct {
	mu  sync.Mutex
	cfg Config

	// Persistent.
	disk     sets
	settings Settings
	bootID   string
	faults   []Fault
	counters Counters
	log      []LoggedRequest

	// os is the answer of the last version that was asked for.
	os struct {
		version string
		answer  Answer
	}

	// Wiped when the machine goes down.
	volatile
	off bool
}

// volatile is what lives in memory and on tmpfs.
type volatile struct {
	// record is nil until the first POST of a boot.
	record *record
	// pending is the command that holds the update lock.
	pending *pending
	// effective are the settings in the updater's configuration files.
	effective Settings
	// renderAt is when they become what the data store holds; zero: they are.
	renderAt time.Time
	// transactions are the settings staged by name, not committed.
	transactions map[string]map[string]any
	// rebootAt is when the machine goes down; zero: no reboot was asked for.
	rebootAt time.Time
	// stamped is the time of the last record, repeats counts the records before it at the same time.
	stamped time.Time
	repeats time.Duration
}

// New returns a host that has just booted the factory image.
func New(cfg Config) (*Host, error) {
	if _, err := parseVersion(cfg.Version); err != nil {
		return nil, errors.WithMessage(err, "new host")
	}
	if cfg.Variant == "" {
		cfg.Variant = "aws-k8s-1.31"
	}
	if cfg.Arch == "" {
		cfg.Arch = "x86_64"
	}
	if cfg.Repo == nil {
		cfg.Repo = &Repo{}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.BuildID == nil {
		cfg.BuildID = func(version string) string { return hash("build", version)[:8] }
	}
	cfg.Settings.fill(cfg.Variant, cfg.Arch)
	if err := cfg.Settings.validate(); err != nil {
		return nil, errors.WithMessage(err, "new host")
	}
	h := &Host{cfg: cfg, settings: cfg.Settings}
	if h.cfg.BootID == nil {
		made := 0
		h.cfg.BootID = func() string { made++; return uuid(cfg.Name, made) }
	}
	h.counters.Commands = map[Command]int{}
	h.disk.set[0] = Set{Version: cfg.Version, Priority: 1, Successful: true, Good: true}
	h.bootID = h.cfg.BootID()
	h.effective = h.settings
	return h, nil
}

func hash(parts ...string) string {
	s := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(s, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(s.Sum(nil))
}

// uuid shapes a hash like the kernel's boot IDs.
func uuid(name string, n int) string {
	h := hash("boot", name, fmt.Sprint(n))
	return h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-a" + h[17:20] + "-" + h[20:32]
}

// PrettyName is the PRETTY_NAME of os-release, which a kubelet publishes as its OS image:
// Bottlerocket OS 1.26.1 (aws-k8s-1.31).
func PrettyName(version, variant string) string {
	return fmt.Sprintf("Bottlerocket OS %s (%s)", version, variant)
}

// Snapshot is a host as a debugger would show it.
type Snapshot struct {
	BootID  string `json:"boot_id"`
	Version string `json:"version"`
	// PrettyName is that of the running set.
	PrettyName string `json:"pretty_name"`
	// Sets are A and B, Active the index of the running one, Next of the one that boots next.
	Sets   [2]Set `json:"sets"`
	Active int    `json:"active"`
	Next   int    `json:"next"`
	// State is empty while the host keeps no status record.
	State UpdateState `json:"state"`
	// Running is the command that holds the update lock, empty when none does.
	Running Command `json:"running"`
	// Settings are those of the data store.
	Settings Settings `json:"settings"`
	Counters Counters `json:"counters"`
	// Off: the machine is down.
	Off bool `json:"off"`
}

// Snapshot looks at the host from outside of the Update API. It isn't logged and triggers no fault.
func (h *Host) Snapshot() Snapshot {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.advance()
	s := Snapshot{
		BootID:     h.bootID,
		Version:    h.disk.running().Version,
		PrettyName: PrettyName(h.disk.running().Version, h.cfg.Variant),
		Sets:       h.disk.set,
		Active:     h.disk.active,
		Next:       h.disk.next(),
		Settings:   h.settings,
		Counters:   h.counters.clone(),
		Off:        h.off,
	}
	if h.record != nil {
		s.State = h.record.State
	}
	if h.pending != nil {
		s.Running = h.pending.command
	}
	return s
}

// BootID is the running kernel's, as /proc/sys/kernel/random/boot_id shows it.
func (h *Host) BootID() string { return h.Snapshot().BootID }

// advance applies what the clock has passed and returns the time. Every look starts with it.
func (h *Host) advance() time.Time {
	now := h.cfg.Now()
	if h.off {
		return now
	}
	if h.pending != nil && !now.Before(h.pending.end) && !h.hangs(now) {
		h.finish()
	}
	if !h.renderAt.IsZero() && !now.Before(h.renderAt) {
		h.effective, h.renderAt = h.settings, time.Time{}
	}
	return now
}

// NextEvent is the earliest time at which something that is already under way will happen: a command
// ends, settings take effect or the machine goes down. It may be past; false: nothing is under way.
func (h *Host) NextEvent() (time.Time, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.advance()
	var first time.Time
	consider := func(t time.Time) {
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	if h.off {
		return first, false
	}
	if h.pending != nil && !h.hangs(now) {
		consider(h.pending.end)
	}
	consider(h.renderAt)
	consider(h.rebootAt)
	return first, !first.IsZero()
}

// runningVersion is parsed at each use; what runs has passed New, Release or ApplyOutside.
func (h *Host) runningVersion() (*version.Version, error) {
	return parseVersion(h.disk.running().Version)
}
