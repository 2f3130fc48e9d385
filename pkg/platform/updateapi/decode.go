package updateapi

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent/next"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// osRelease is the body of GET /os.
type osRelease struct {
	Variant string `json:"variant_id"`
	Version string `json:"version_id"`
	Arch    string `json:"arch"`
}

// status is the body of GET /updates/status. What may be null is a pointer.
type status struct {
	State     *string    `json:"update_state"`
	Available []string   `json:"available_updates"`
	Chosen    *image     `json:"chosen_update"`
	Active    *partition `json:"active_partition"`
	Staging   *partition `json:"staging_partition"`
	Last      *command   `json:"most_recent_command"`
}

type image struct {
	Arch    string `json:"arch"`
	Version string `json:"version"`
	Variant string `json:"variant"`
}

type partition struct {
	Image      *image `json:"image"`
	NextToBoot *bool  `json:"next_to_boot"`
}

type command struct {
	Type      *string `json:"cmd_type"`
	Status    *string `json:"cmd_status"`
	Timestamp *string `json:"timestamp"`
	Exit      *int32  `json:"exit_status"`
	Stderr    *string `json:"stderr"`
}

// maxWord bounds names and timestamps, in bytes.
const maxWord = 128

// checkVersion returns an error for what is no semantic version: the agent reports versions on its Node.
func checkVersion(s string) error {
	if !marker.ValidVersion(s) {
		return errors.Errorf("version %q is not a semantic version", printable(s))
	}
	return nil
}

// checkWord returns an error for what is too long, or can't be printed, for a log or an annotation. Empty is fine.
func checkWord(s string) error {
	if len(s) > maxWord || s != printable(s) {
		return errors.Errorf("%q is too long or can't be printed", printable(s))
	}
	return nil
}

// decodeOS reads the body of GET /os.
func decodeOS(body []byte) (osRelease, error) {
	var o osRelease
	if err := decode(body, &o); err != nil {
		return osRelease{}, err
	}
	if err := checkVersion(o.Version); err != nil {
		return osRelease{}, errors.WithMessage(err, "version_id")
	}
	if err := checkWord(o.Variant); err != nil {
		return osRelease{}, errors.WithMessage(err, "variant_id")
	}
	return o, errors.WithMessage(checkWord(o.Arch), "arch")
}

// decodeStatus reads the body of GET /updates/status into the fields of a host that are in it.
func decodeStatus(body []byte) (next.Host, error) {
	var s status
	if err := decode(body, &s); err != nil {
		return next.Host{}, err
	}
	var h next.Host
	var err error
	if h.State, err = s.state(); err != nil {
		return next.Host{}, err
	}
	for _, v := range s.Available {
		if err := checkVersion(v); err != nil {
			return next.Host{}, errors.WithMessage(err, "available_updates")
		}
	}
	h.Offered = marker.OffersOf(s.Available)
	if s.Chosen != nil {
		if err := checkVersion(s.Chosen.Version); err != nil {
			return next.Host{}, errors.WithMessage(err, "chosen_update")
		}
		h.Chosen = s.Chosen.Version
	}
	if h.Staged, _, err = s.Staging.read(); err != nil {
		return next.Host{}, errors.WithMessage(err, "staging_partition")
	}
	_, bootsNext, err := s.Active.read()
	if err != nil {
		return next.Host{}, errors.WithMessage(err, "active_partition")
	}
	h.ForeignBoot = s.Active != nil && !bootsNext && h.State != next.HostReady
	if h.Last, err = s.Last.read(); err != nil {
		return next.Host{}, errors.WithMessage(err, "most_recent_command")
	}
	// A failed refresh leaves the old choice, with the state Idle, Staged or Ready.
	refreshed := h.Last.Command == next.CommandRefresh && h.Last.Success
	h.ChosenKnown = refreshed && h.State != next.HostIdle
	h.SawNothing = refreshed && h.State == next.HostIdle && len(s.Available) == 0
	return h, nil
}

// settings is the body of GET /settings, as far as it is asked for. A setting that isn't there is left out.
type settings struct {
	Updates struct {
		VersionLock string       `json:"version-lock"`
		Seed        *json.Number `json:"seed"`
	} `json:"updates"`
}

// decodeSettings reads the body of GET /settings. What isn't as it should be is not known.
func decodeSettings(body []byte) (lock, seed string) {
	var s settings
	if decode(body, &s) != nil {
		return "", ""
	}
	if marker.ValidLock(s.Updates.VersionLock) {
		lock = s.Updates.VersionLock
	}
	if n := s.Updates.Seed; n != nil && marker.ValidSeed(n.String()) {
		seed = n.String()
	}
	return lock, seed
}

// decodeCutStatus reads the beginning of a status that is too long because a command printed megabytes. The command's
// output is last: all else comes before it, and the version that a prepare writes is at its beginning.
func decodeCutStatus(body []byte) (next.Host, error) {
	// A character that was cut, escaped or not, is dropped.
	for left := range min(6, len(body)) {
		closed := append(bytes.Clone(body[:len(body)-left]), `"}}`...)
		if !json.Valid(closed) {
			continue
		}
		h, err := decodeStatus(closed)
		if h.Last.Problem != "" {
			h.Last.Problem = oneLine("more than 1 MiB of output, and of that: " + h.Last.Problem)
		}
		return h, err
	}
	return next.Host{}, errors.Errorf("it is longer than %d bytes", maxBody)
}

// decode reads a JSON object, and returns an error for null, which encoding/json takes for an empty one.
func decode(body []byte, into any) error {
	if !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) {
		return errors.New("body is not a json object")
	}
	if err := json.Unmarshal(body, into); err != nil {
		// The error repeats what the host sent, at any length.
		return errors.Errorf("decode body: %s", printable(err.Error()))
	}
	return nil
}

func (s *status) state() (next.HostState, error) {
	if s.State == nil {
		return "", errors.New("update_state is missing")
	}
	switch state := next.HostState(*s.State); state {
	case next.HostIdle, next.HostAvailable, next.HostStaged, next.HostReady:
		return state, nil
	default:
		return "", errors.Errorf("unknown update_state %q", printable(*s.State))
	}
}

// read returns the version of a partition set and whether it boots next; a missing set has neither.
func (p *partition) read() (version string, bootsNext bool, err error) {
	if p == nil {
		return "", false, nil
	}
	if p.Image == nil {
		return "", false, errors.New("image is missing")
	}
	if p.NextToBoot == nil {
		return "", false, errors.New("next_to_boot is missing")
	}
	return p.Image.Version, *p.NextToBoot, checkVersion(p.Image.Version)
}

// read returns the host's record of its last command. Any of its fields may be null.
func (c *command) read() (next.LastCommand, error) {
	var last next.LastCommand
	if c == nil {
		return last, nil
	}
	if c.Type != nil {
		switch last.Command = next.Command(*c.Type); last.Command {
		case next.CommandRefresh, next.CommandPrepare, next.CommandActivate, next.CommandDeactivate:
		default:
			return next.LastCommand{}, errors.Errorf("unknown cmd_type %q", printable(*c.Type))
		}
	}
	if c.Status != nil {
		switch *c.Status {
		case "Success":
			// A success of no known command is none.
			last.Success = c.Type != nil
		case "Failed", "Unknown":
		default:
			return next.LastCommand{}, errors.Errorf("unknown cmd_status %q", printable(*c.Status))
		}
	}
	if c.Timestamp != nil {
		if err := checkWord(*c.Timestamp); err != nil {
			return next.LastCommand{}, errors.WithMessage(err, "timestamp")
		}
		last.Timestamp = *c.Timestamp
	}
	var stderr string
	if c.Stderr != nil {
		stderr = *c.Stderr
	}
	if last.Command == next.CommandPrepare {
		last.Started = started(stderr)
	}
	if !last.Success {
		last.Problem = problem(stderr)
		last.OfRepository = strings.HasPrefix(last.Problem, repositoryFailed)
	}
	return last, nil
}

// repositoryFailed begins the output of a command that could not load the repository (docs/host-api.md: F3, F31): it
// can't be reached, or its metadata is expired or not signed well.
const repositoryFailed = "Metadata error: "

// starting begins the line in a prepare's output that names the version which is really written.
const starting = "Starting update to "

// started returns that version; it is empty if the line isn't there or names something else.
func started(stderr string) string {
	for line := range strings.Lines(stderr) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), starting); ok {
			if checkVersion(v) != nil {
				return ""
			}
			return v
		}
	}
	return ""
}

// problem returns what a failed command printed, in one line. The line with which a prepare names its version is left
// out: it says nothing about the failure.
func problem(stderr string) string {
	var out strings.Builder
	for line := range strings.Lines(stderr) {
		if !strings.HasPrefix(strings.TrimSpace(line)+" ", starting) {
			out.WriteString(line)
		}
	}
	return oneLine(out.String())
}
