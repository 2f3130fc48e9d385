package hostsim

import (
	"bytes"
	"encoding/json"
	"time"
)

// Command is a command of thar-be-updates.
type Command string

// The commands of the Update API.
const (
	Refresh    Command = "refresh"
	Prepare    Command = "prepare"
	Activate   Command = "activate"
	Deactivate Command = "deactivate"
)

// UpdateState is the state in the status record.
type UpdateState string

// The states of the Update API.
const (
	Idle      UpdateState = "Idle"
	Available UpdateState = "Available"
	Staged    UpdateState = "Staged"
	Ready     UpdateState = "Ready"
)

// The types below are the status record; field order is part of the API's bytes.

type record struct {
	State     UpdateState    `json:"update_state"`
	Available []string       `json:"available_updates"`
	Chosen    *image         `json:"chosen_update"`
	Active    *partition     `json:"active_partition"`
	Staging   *partition     `json:"staging_partition"`
	Last      *commandRecord `json:"most_recent_command"`
}

type image struct {
	Arch    string `json:"arch"`
	Version string `json:"version"`
	Variant string `json:"variant"`
}

type partition struct {
	Image      image `json:"image"`
	NextToBoot bool  `json:"next_to_boot"`
}

type commandRecord struct {
	Type      Command `json:"cmd_type"`
	Status    string  `json:"cmd_status"`
	Timestamp string  `json:"timestamp"`
	Exit      int32   `json:"exit_status"`
	Stderr    string  `json:"stderr"`
}

// timestamp writes t as the host does: UTC with none, 3, 6 or 9 fraction digits, whichever is enough.
func timestamp(t time.Time) string {
	t = t.UTC()
	const seconds = "2006-01-02T15:04:05"
	switch ns := t.Nanosecond(); {
	case ns == 0:
		return t.Format(seconds + "Z")
	case ns%1_000_000 == 0:
		return t.Format(seconds + ".000Z")
	case ns%1_000 == 0:
		return t.Format(seconds + ".000000Z")
	}
	return t.Format(seconds + ".000000000Z")
}

// encode writes compact JSON without the escapes that only Go makes.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
