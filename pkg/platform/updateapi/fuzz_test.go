package updateapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent/next"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/platform"
)

// maxError bounds an error about a host's answer, in bytes: it ends up in a log at every look.
const maxError = 1024

// Whatever a host sends, the decoder returns an error or a host that keeps its promises, and never panics.
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
		if s := oneLine(string(body)); len(s) > maxLine || s != printable(s) {
			t.Errorf("text %q", s)
		}
		_, _ = decodeCutStatus(body)
		h, err := decodeStatus(body)
		if err != nil {
			if h != (next.Host{}) {
				t.Errorf("an error with a host: %+v", h)
			}
			return
		}
		if h.State == next.HostUninitialized || h.Locked {
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
		if h.ChosenKnown && (h.State == next.HostIdle || h.Last.Command != next.CommandRefresh || !h.Last.Success) {
			t.Errorf("a choice that isn't known: %+v", h)
		}
	})
}

// arbitrary is a host with arbitrary answers, which counts what is read of them.
type arbitrary struct {
	status map[string]int
	body   map[string][]byte
	read   int
	sent   []string
}

func (a *arbitrary) RoundTrip(r *http.Request) (*http.Response, error) {
	a.sent = append(a.sent, r.Method+" "+r.URL.Path)
	body := a.body[r.URL.Path]
	return &http.Response{StatusCode: a.status[r.URL.Path], ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Location": {"/elsewhere"}},
		Body: io.NopCloser(&counted{bytes.NewReader(body), &a.read}), Request: r}, nil
}

// counted counts what is read.
type counted struct {
	io.Reader
	n *int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	*c.n += n
	return n, err
}

func (a *arbitrary) client(bootID string) *Client {
	return New(Config{Transport: a, BootID: func() (string, error) { return bootID, nil }})
}

// anError asserts that err is fit for a log.
func anError(t *testing.T, err error) {
	t.Helper()
	s := err.Error()
	assert.Assert(t, s != "" && len(s) <= maxError, "%d bytes", len(s))
	assert.Assert(t, utf8.ValidString(s) && strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, s) == s, "%q", s)
}

// FuzzObserve: whatever a host answers to a look, the result is an error that is fit for a log, or a host that keeps
// every promise of next.Host and whose facts an agent can report.
func FuzzObserve(f *testing.F) {
	const id = "8f1f4a3e-6f0c-4c39-9a55-0d7a4c7d2b11"
	staged := `{"update_state":"Staged","available_updates":["1.27.0"],"chosen_update":{"arch":"x86_64","version":"1.27.0","variant":"v"},"active_partition":{"image":{"arch":"x86_64","version":"1.26.1","variant":"v"},"next_to_boot":false},"staging_partition":{"image":{"arch":"x86_64","version":"1.27.0","variant":"v"},"next_to_boot":false},"most_recent_command":{"cmd_type":"prepare","cmd_status":"Failed","timestamp":"2026-09-20T10:08:58.766493367Z","exit_status":1,"stderr":"Starting update to 1.27.0\nFailed writing update data to disk: x\n"}}`
	refreshed := `{"update_state":"Available","available_updates":["1.27.0"],"chosen_update":{"arch":"x86_64","version":"1.27.0","variant":"v"},"active_partition":null,"staging_partition":null,"most_recent_command":{"cmd_type":"refresh","cmd_status":"Success","timestamp":"2026-09-20T10:08:58Z","exit_status":0,"stderr":""}}`
	for _, seed := range []struct {
		os, status int
		release    string
		record     string
		id         string
	}{
		{200, 200, goodOS, staged, id},
		{200, 200, goodOS, refreshed, id},
		{200, 200, goodOS, strings.Replace(refreshed, "Available", "Idle", 1), id},
		{200, 200, goodOS, `{"update_state":"Idle","most_recent_command":null}`, id},
		{200, 404, goodOS, "Update status is uninitialized, refresh-updates to initialize it", id},
		{200, 423, goodOS, "Unable to obtain shared lock for reading update status: x", id},
		{200, 500, goodOS, "Update dispatcher failed\x1b[31m", id},
		{404, 404, "", "", id},
		{200, 302, goodOS, "", id},
		{200, 200, `{"version_id":"1.2.99999999999999999999"}`, refreshed, id},
		{200, 200, `{"version_id":` + strings.Repeat("1", 2000) + `}`, refreshed, id},
		{200, 200, goodOS, `{"update_state":` + strings.Repeat("1", 2000) + `}`, id},
		{200, 200, strings.Replace(goodOS, "{", `{"updates":{"version-lock":"v1.26.1","seed":7},`, 1), staged, id},
		{200, 200, strings.Replace(goodOS, "{", `{"updates":{"version-lock":"x","seed":-7},`, 1), staged, id},
		{200, 200, goodOS, staged, ""},
		{200, 200, goodOS, staged, "a b"},
		{200, 204, goodOS, staged, id + "\n"},
	} {
		f.Add(seed.os, []byte(seed.release), seed.status, []byte(seed.record), seed.id)
	}
	f.Fuzz(func(t *testing.T, os int, release []byte, status int, record []byte, id string) {
		// Its settings are in the release.
		a := &arbitrary{status: map[string]int{pathOS: os, pathStatus: status, "/settings": 200},
			body: map[string][]byte{pathOS: release, pathStatus: record, "/settings": release}}
		h, err := a.client(id).Observe(context.Background())
		assert.Assert(t, len(a.sent) <= 3 && a.read <= 3*(maxBody+1))
		for i, want := range []string{"GET /os", "GET /updates/status", "GET /settings"}[:len(a.sent)] {
			assert.Equal(t, a.sent[i], want)
		}
		if err != nil {
			assert.Equal(t, h, next.Host{})
			anError(t, err)
			return
		}
		assert.Equal(t, h.BootID, id)
		assert.Assert(t, os == 200 && (len(a.sent) == 3 || h.Locked))
		assert.Assert(t, (h.VersionLock == "" || marker.ValidLock(h.VersionLock)) && (h.WaveSeed == "" || marker.ValidSeed(h.WaveSeed)), "%+v", h)
		assert.Assert(t, marker.ValidToken(h.BootID) && marker.ValidVersion(h.Version), "%+v", h)
		for _, v := range []string{h.Chosen, h.Staged, h.Last.Started} {
			assert.Assert(t, v == "" || marker.ValidVersion(v), "%q", v)
		}
		for _, s := range []string{h.Variant, h.Arch, h.Last.Timestamp, h.Last.Problem} {
			assert.Assert(t, len(s) <= maxLine && s == printable(s), "%q", s)
		}
		switch h.State {
		case next.HostUninitialized:
			assert.Assert(t, h.Locked == (status == 423) && h.Locked != (status == 404))
			assert.Equal(t, h, next.Host{BootID: h.BootID, Version: h.Version, Variant: h.Variant, Arch: h.Arch, Locked: h.Locked,
				VersionLock: h.VersionLock, WaveSeed: h.WaveSeed})
		case next.HostIdle, next.HostAvailable, next.HostStaged, next.HostReady:
			assert.Assert(t, status == 200 && !h.Locked)
		default:
			t.Fatalf("state %q", h.State)
		}
		switch h.Last.Command {
		case "", next.CommandRefresh, next.CommandPrepare, next.CommandActivate, next.CommandDeactivate:
		default:
			t.Fatalf("command %q", h.Last.Command)
		}
		assert.Assert(t, !h.ChosenKnown || h.Last.Command == next.CommandRefresh && h.Last.Success && h.State != next.HostIdle)
		assert.Assert(t, !h.Last.Success || h.Last.Command != "" && h.Last.Problem == "")
		assert.Assert(t, h.Last.Started == "" || h.Last.Command == next.CommandPrepare)
		assert.Assert(t, !h.ForeignBoot || h.State != next.HostReady && h.State != next.HostUninitialized)
		// Another process reads these facts from a Node.
		encoded := map[string]string{}
		for k, v := range marker.EncodeReport(next.FactsOf(next.View{Host: h}, "v1")) {
			encoded[string(k)] = v
		}
		r, problems := marker.DecodeReport(encoded)
		assert.Equal(t, len(problems), 0, "%v", problems)
		assert.Equal(t, r.Current, h.Version)
	})
}

// FuzzStart: nil means accepted, a refusal certainly not accepted; any other error, and any of a reboot, leaves that
// open.
func FuzzStart(f *testing.F) {
	f.Add(byte(0), 204, []byte(nil))
	f.Add(byte(1), 423, []byte("Update lock held"))
	f.Add(byte(1), 409, []byte("Update action not allowed according to update state"))
	f.Add(byte(2), 404, []byte("No update image applied to staging partition"))
	f.Add(byte(3), 404, []byte(" \n"))
	f.Add(byte(0), 500, []byte("Unable to start the update dispatcher: No such file or directory (os error 2) "))
	f.Add(byte(0), 500, []byte("Unable to start the update dispatcher: Cannot allocate memory (os error 12)"))
	f.Add(byte(1), 408, []byte(nil))
	f.Add(byte(4), 500, []byte("Failed to reboot, exit code: 1, stderr: \x00"))
	f.Add(byte(4), 404, []byte(nil))
	f.Add(byte(2), 302, []byte(strings.Repeat("x", 300)))
	f.Add(byte(5), 200, []byte("{}"))
	commands := []next.Command{next.CommandRefresh, next.CommandPrepare, next.CommandActivate, next.CommandDeactivate, next.CommandReboot, "defragment"}
	paths := []string{"refresh-updates", "prepare-update", "activate-update", "deactivate-update", "reboot"}
	f.Fuzz(func(t *testing.T, which byte, status int, body []byte) {
		n := int(which) % len(commands)
		a := &arbitrary{status: map[string]int{}, body: map[string][]byte{}}
		if n < len(paths) {
			a.status["/actions/"+paths[n]], a.body["/actions/"+paths[n]] = status, body
		}
		err := a.client("b").Start(context.Background(), commands[n])
		if n == len(paths) {
			assert.Assert(t, err != nil && len(a.sent) == 0)
			return
		}
		assert.DeepEqual(t, a.sent, []string{"POST /actions/" + paths[n]})
		assert.Assert(t, a.read <= maxBody+1)
		assert.Equal(t, err == nil, status == 204)
		if err == nil {
			return
		}
		anError(t, err)
		blank := strings.TrimSpace(string(body)) == ""
		var unheard *platform.NotStartedError
		if errors.As(err, &unheard) {
			assert.Assert(t, status == 408 && blank && unheard.Command == commands[n], "%v", err)
			return
		}
		var refused *platform.RefusedError
		if !errors.As(err, &refused) {
			assert.Assert(t, commands[n] == next.CommandReboot || status < 300 || len(body) > maxBody, "%v", err)
			return
		}
		assert.Assert(t, commands[n] != next.CommandReboot && status >= 300)
		assert.Equal(t, refused.Command, commands[n])
		assert.Assert(t, len(refused.Body) <= maxLine && refused.Body == printable(refused.Body))
		said := strings.TrimSpace(string(body))
		want := map[int]next.Refusal{423: next.RefusedLocked, 409: next.RefusedState, 404: next.RefusedMissing}[status]
		switch {
		case status == 404 && blank,
			// Only a program that isn't there is missing for good.
			status == 500 && strings.HasPrefix(string(body), "Unable to start the update dispatcher: ") && strings.HasSuffix(said, "(os error 2)"):
			want = next.RefusedUnsupported
		case want == "":
			want = next.RefusedFailed
		}
		assert.Equal(t, refused.Why, want)
	})
}

// FuzzBootID: a boot ID, the proof of a reboot, is one printable word that an annotation can hold.
func FuzzBootID(f *testing.F) {
	f.Add("8f1f4a3e-6f0c-4c39-9a55-0d7a4c7d2b11")
	f.Add("a\n")
	f.Add(strings.Repeat("a", 65))
	f.Add("\xff")
	f.Fuzz(func(t *testing.T, id string) {
		err := checkBootID(id)
		if err != nil {
			anError(t, err)
			return
		}
		assert.Assert(t, marker.ValidToken(id) && len(id) <= 64)
	})
}
