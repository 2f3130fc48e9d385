package updateapi

import (
	"testing"
	"unicode/utf8"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
)

// Whatever a host sends, the decoder either refuses it or makes a host of it that is fit to be passed
// on, and never panics.
func FuzzDecodeStatus(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `{}`, `[]`, `<html>`, `{"update_state":"Idle"}`, `{"update_state":7}`, "\xff\xfe",
		`{"update_state":"Idle","available_updates":[],"chosen_update":null,"active_partition":{"image":{"arch":"x86_64","version":"1.26.1","variant":"aws-k8s-1.31"},"next_to_boot":true},"staging_partition":null,"most_recent_command":null}`,
		`{"update_state":"Staged","available_updates":["1.27.0"],"chosen_update":{"arch":"x86_64","version":"1.27.0","variant":"v"},"active_partition":{"image":{"arch":"x86_64","version":"1.26.1","variant":"v"},"next_to_boot":true},"staging_partition":{"image":{"arch":"x86_64","version":"1.27.0","variant":"v"},"next_to_boot":false},"most_recent_command":{"cmd_type":"prepare","cmd_status":"Success","timestamp":"2026-09-20T10:08:58.766493367Z","exit_status":0,"stderr":"Starting update to 1.27.0\n"}}`,
		`{"update_state":"Ready","most_recent_command":{"cmd_type":null,"cmd_status":"Failed","timestamp":null,"exit_status":9,"stderr":"Starting update to \u0000\nx"}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		_ = firstLine(string(body))
		h, err := decodeStatus(body)
		if err != nil {
			if h != (intent.Host{}) {
				t.Errorf("an error with a host: %+v", h)
			}
			return
		}
		if h.State == intent.HostUninitialized || h.Locked {
			t.Errorf("a status that none can be: %+v", h)
		}
		for _, v := range []string{h.Chosen, h.Staged, h.Last.Started} {
			if v != "" && checkVersion(v) != nil {
				t.Errorf("version %q", v)
			}
		}
		for _, s := range []string{h.Last.Timestamp, h.Last.Problem} {
			if len(s) > maxLine || !utf8.ValidString(s) || s != printable(s) {
				t.Errorf("text %q", s)
			}
		}
		if h.ChosenKnown && (h.State == intent.HostIdle || h.Last.Command != intent.CommandRefresh || !h.Last.Success) {
			t.Errorf("a choice that isn't known: %+v", h)
		}
	})
}
