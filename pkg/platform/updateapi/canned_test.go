package updateapi

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent/next"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/platform"
)

// canned is a server on a unix socket that gives the same answer to every request but GET /os.
type canned struct {
	status int
	body   string
	// os is the answer to GET /os.
	os string
}

const goodOS = `{"arch":"x86_64","build_id":"943d9a41","pretty_name":"Bottlerocket OS 1.26.1 (aws-k8s-1.31)","variant_id":"aws-k8s-1.31","version_id":"1.26.1"}`

func (c canned) client(t *testing.T) *Client {
	t.Helper()
	dir, err := os.MkdirTemp("", "updateapi")
	assert.NilError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "api.sock")
	l, err := net.Listen("unix", socket)
	assert.NilError(t, err)
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == pathOS {
			_, _ = w.Write([]byte(c.os))
			return
		}
		w.Header().Set("Location", "http://localhost/elsewhere")
		w.WriteHeader(c.status)
		_, _ = w.Write([]byte(c.body))
	})}
	done := make(chan struct{})
	go func() { _ = srv.Serve(l); close(done) }()
	t.Cleanup(func() { _ = srv.Close(); <-done })
	bootID := filepath.Join(dir, "boot_id")
	assert.NilError(t, os.WriteFile(bootID, []byte("8f1f4a3e-6f0c-4c39-9a55-0d7a4c7d2b11\n"), 0o600))
	return New(Config{Socket: socket, BootIDPath: bootID, Timeout: 20 * time.Second})
}

func TestCannedStatus(t *testing.T) {
	record := func(fields string) string { return `{"update_state":"Staged","most_recent_command":{` + fields + `}}` }
	for _, c := range []struct {
		name   string
		status int
		body   string
		err    string
		want   next.Host
	}{
		{name: "no such route", status: 404, err: "the api has no such route"},
		{name: "blank 404", status: 404, body: " \n", err: "the api has no such route"},
		{name: "uninitialized", status: 404, body: "Update status is uninitialized, refresh-updates to initialize it"},
		{name: "locked", status: 423, want: next.Host{Locked: true}},
		{name: "no content", status: 204, err: "unexpected answer 204"},
		{name: "redirect", status: 302, err: "unexpected answer 302"},
		{name: "server error", status: 500, body: "Unable to open update lock file: \x1b[31mx\nmore", err: "unexpected answer 500: Unable to open update lock file: ?[31mx more"},
		{name: "null", status: 200, body: "null", err: "not a json object"},
		{name: "array", status: 200, body: "[]", err: "not a json object"},
		{name: "blank", status: 200, body: "  ", err: "not a json object"},
		{name: "two objects", status: 200, body: `{"update_state":"Idle"}{}`, err: "decode body"},
		{name: "nothing in it", status: 200, body: "{}", err: "update_state is missing"},
		{name: "null state", status: 200, body: `{"update_state":null}`, err: "update_state is missing"},
		{name: "empty state", status: 200, body: `{"update_state":""}`, err: `unknown update_state ""`},
		{name: "list of numbers", status: 200, body: `{"update_state":"Idle","available_updates":[1]}`, err: "decode body"},
		{name: "garbage in the list", status: 200, body: `{"update_state":"Idle","available_updates":["1.2"]}`, err: "available_updates: version"},
		{name: "leading v", status: 200, body: `{"update_state":"Available","chosen_update":{"version":"v1.27.0"}}`, err: "chosen_update: version"},
		{name: "no image", status: 200, body: `{"update_state":"Staged","staging_partition":{"next_to_boot":true}}`, err: "staging_partition: image is missing"},
		{name: "no flag", status: 200, body: `{"update_state":"Idle","active_partition":{"image":{"version":"1.0.0"}}}`, err: "active_partition: next_to_boot is missing"},
		{name: "no version", status: 200, body: `{"update_state":"Idle","active_partition":{"image":{},"next_to_boot":true}}`, err: `active_partition: version ""`},
		{name: "unknown outcome", status: 200, body: record(`"cmd_status":"Maybe"`), err: `unknown cmd_status "Maybe"`},
		{name: "reboot isn't recorded", status: 200, body: record(`"cmd_type":"reboot"`), err: `unknown cmd_type "reboot"`},
		{name: "exit too large", status: 200, body: record(`"exit_status":4294967296`), err: "decode body"},
		{name: "endless timestamp", status: 200, body: record(`"timestamp":"` + strings.Repeat("9", 200) + `"`), err: "timestamp: "},
		{name: "all null", status: 200, body: record(`"cmd_type":null,"cmd_status":null,"timestamp":null,"exit_status":null,"stderr":null`),
			want: next.Host{State: next.HostStaged}},
		{name: "success of nothing", status: 200, body: record(`"cmd_type":null,"cmd_status":"Success","timestamp":"t"`),
			want: next.Host{State: next.HostStaged, Last: next.LastCommand{Timestamp: "t"}}},
		{name: "a refresh that named no release", status: 200, body: `{"update_state":"Idle","available_updates":[],"chosen_update":null,"most_recent_command":{"cmd_type":"refresh","cmd_status":"Success","timestamp":"t"}}`,
			want: next.Host{State: next.HostIdle, SawNothing: true, Last: next.LastCommand{Command: next.CommandRefresh, Success: true, Timestamp: "t"}}},
		{name: "a refresh that named what runs alone", status: 200, body: `{"update_state":"Idle","available_updates":["1.0.0"],"chosen_update":null,"most_recent_command":{"cmd_type":"refresh","cmd_status":"Success","timestamp":"t"}}`,
			want: next.Host{Offered: "1.0.0", State: next.HostIdle, Last: next.LastCommand{Command: next.CommandRefresh, Success: true, Timestamp: "t"}}},
		{name: "foreign boot", status: 200, body: `{"update_state":"Idle","active_partition":{"image":{"version":"1.0.0"},"next_to_boot":false}}`,
			want: next.Host{State: next.HostIdle, ForeignBoot: true}},
		{name: "own boot", status: 200, body: `{"update_state":"Ready","active_partition":{"image":{"version":"1.0.0"},"next_to_boot":false}}`,
			want: next.Host{State: next.HostReady}},
		{name: "started garbage", status: 200, body: record(`"cmd_type":"prepare","cmd_status":"Success","stderr":"Starting update to you\n"`),
			want: next.Host{State: next.HostStaged, Last: next.LastCommand{Command: next.CommandPrepare, Success: true}}},
		{name: "started later", status: 200, body: record(`"cmd_type":"prepare","cmd_status":"Failed","stderr":"warning\r\nStarting update to 1.2.3-rc.1+b\r\nboom"`),
			want: next.Host{State: next.HostStaged, Last: next.LastCommand{Command: next.CommandPrepare, Started: "1.2.3-rc.1+b", Problem: "warning boom"}}},
		{name: "started something else", status: 200, body: record(`"cmd_type":"activate","cmd_status":"Failed","stderr":"Starting update to 1.2.3\n"`),
			want: next.Host{State: next.HostStaged, Last: next.LastCommand{Command: next.CommandActivate}}},
		{name: "long problem", status: 200, body: record(`"cmd_type":"refresh","cmd_status":"Failed","stderr":"` + strings.Repeat("é", 150) + `"`),
			want: next.Host{State: next.HostStaged, Last: next.LastCommand{Command: next.CommandRefresh, Problem: strings.Repeat("é", 30) + " ... " + strings.Repeat("é", 67)}}},
		{name: "a panic", status: 200, body: record(`"cmd_type":"refresh","cmd_status":"Failed","stderr":"thread 'main' panicked at src/main.rs:12:5:\nrange start is greater than range end in BTreeMap\n"`),
			want: next.Host{State: next.HostStaged, Last: next.LastCommand{Command: next.CommandRefresh,
				Problem: "thread 'main' panicked at src/main.rs:12:5: range start is greater than range end in BTreeMap"}}},
		{name: "the cause stands last", status: 200, body: record(`"cmd_type":"activate","cmd_status":"Failed","stderr":"` + repositoryDown + `"`),
			want: next.Host{State: next.HostStaged, Last: next.LastCommand{Command: next.CommandActivate,
				OfRepository: true, Problem: "Metadata error: Failed to fetch https://updates.example.com/ ... .example.com/2020-07-07/aws-k8s-1.36/x86_64/2.root.json): error trying to connect: tcp connect error: Connection refused (os error 111)"}}},
		{name: "megabytes of output of a prepare", status: 200, body: record(`"cmd_type":"prepare","cmd_status":"Success","timestamp":"t","exit_status":0,"stderr":"Starting update to 1.27.0\n` + strings.Repeat(`\u00e9\n`, maxBody/4) + `"`),
			want: next.Host{State: next.HostStaged, Last: next.LastCommand{Command: next.CommandPrepare, Success: true, Timestamp: "t", Started: "1.27.0"}}},
		{name: "megabytes of output of a failure", status: 200, body: record(`"cmd_type":"refresh","cmd_status":"Failed","stderr":"` + strings.Repeat("x", 2*maxBody) + `"`),
			want: next.Host{State: next.HostStaged, Last: next.LastCommand{Command: next.CommandRefresh,
				Problem: "more than 1 MiB of output, and of that: " + strings.Repeat("x", 20) + " ... " + strings.Repeat("x", 135)}}},
		{name: "megabytes of something else", status: 200, body: `{"update_state":"Idle","available_updates":[` + strings.Repeat(" ", maxBody) + `]}`, err: "it is longer than 1048576 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, err := canned{status: c.status, body: c.body, os: goodOS}.client(t).Observe(context.Background())
			if c.err != "" {
				assert.ErrorContains(t, err, "get /updates/status: ")
				assert.ErrorContains(t, err, c.err)
				assert.DeepEqual(t, h, next.Host{})
				return
			}
			assert.NilError(t, err)
			c.want.BootID, c.want.Version = "8f1f4a3e-6f0c-4c39-9a55-0d7a4c7d2b11", "1.26.1"
			c.want.Variant, c.want.Arch = "aws-k8s-1.31", "x86_64"
			assert.DeepEqual(t, h, c.want)
		})
	}
}

// repositoryDown is what updog says while the repository can't be reached: the cause stands at the end of hundreds of
// bytes.
const repositoryDown = `Metadata error: Failed to fetch https://updates.example.com/2020-07-07/aws-k8s-1.36/x86_64/2.root.json: ` +
	`Transport 'other' error fetching 'https://updates.example.com/2020-07-07/aws-k8s-1.36/x86_64/2.root.json': error sending request for url ` +
	`(https://updates.example.com/2020-07-07/aws-k8s-1.36/x86_64/2.root.json): error trying to connect: tcp connect error: Connection refused (os error 111)\n`

func TestCannedOS(t *testing.T) {
	for body, want := range map[string]string{
		"{}":                       `version_id: version ""`,
		"":                         "not a json object",
		`{"version_id":"1.26"}`:    `version "1.26"`,
		`{"version_id":"v1.26.1"}`: `version "v1.26.1"`,
		`{"version_id":"1.26.1","variant_id":"a\nb"}`:                             `variant_id: "a b"`,
		`{"version_id":"1.26.1","arch":"` + strings.Repeat("x", maxWord+1) + `"}`: "arch: ",
	} {
		_, err := canned{os: body}.client(t).Observe(context.Background())
		assert.ErrorContains(t, err, "get /os: can't understand the answer", body)
		assert.ErrorContains(t, err, want, body)
	}
}

func TestCannedStart(t *testing.T) {
	const open, notStarted = next.Refusal("open"), next.Refusal("not started")
	for _, c := range []struct {
		command next.Command
		status  int
		body    string
		want    next.Refusal
	}{
		{next.CommandRefresh, 204, "", ""},
		{next.CommandReboot, 204, "", ""},
		{next.CommandRefresh, 200, "{}", open},
		{next.CommandRefresh, 423, "Update lock held", next.RefusedLocked},
		{next.CommandPrepare, 409, "x", next.RefusedState},
		{next.CommandPrepare, 404, "Previously chosen Update no longer exists", next.RefusedMissing},
		{next.CommandActivate, 404, "No update image applied to staging partition", next.RefusedMissing},
		{next.CommandActivate, 404, "", next.RefusedUnsupported},
		{next.CommandRefresh, 500, "Unable to start the update dispatcher: No such file or directory (os error 2) ", next.RefusedUnsupported},
		{next.CommandRefresh, 500, "Unable to start the update dispatcher: Cannot allocate memory (os error 12) ", next.RefusedFailed},
		{next.CommandRefresh, 408, "", notStarted},
		{next.CommandReboot, 408, "", notStarted},
		{next.CommandReboot, 408, "Request Timeout", open},
		{next.CommandRefresh, 500, "Update dispatcher failed", next.RefusedFailed},
		{next.CommandRefresh, 302, "", next.RefusedFailed},
		{next.CommandRefresh, 503, "", next.RefusedFailed},
		{next.CommandReboot, 500, "Failed to reboot, exit code: 1, stderr: x", open},
		{next.CommandReboot, 404, "", open},
		{next.CommandReboot, 423, "x", open},
		{next.CommandReboot, 200, "", open},
	} {
		t.Run(string(c.command)+"/"+http.StatusText(c.status)+"/"+c.body, func(t *testing.T) {
			err := canned{status: c.status, body: c.body}.client(t).Start(context.Background(), c.command)
			if c.want == "" {
				assert.NilError(t, err)
				return
			}
			var late *platform.NotStartedError
			assert.Equal(t, errors.As(err, &late), c.want == notStarted, "%v", err)
			if c.want == notStarted {
				return
			}
			var refused *platform.RefusedError
			if c.want == open {
				assert.ErrorContains(t, err, "whether it began is open")
				assert.Assert(t, !errors.As(err, &refused))
				return
			}
			assert.Assert(t, errors.As(err, &refused), "%v", err)
			assert.DeepEqual(t, refused, &platform.RefusedError{Command: c.command, Why: c.want, Body: strings.TrimSpace(c.body)})
		})
	}
}

// A setting that isn't as it should be is not known, and hinders no other.
func TestCannedSettings(t *testing.T) {
	for body, want := range map[string]string{
		`{}`: " ", `null`: " ", `<html>`: " ", `{"updates":{}}`: " ", `{"updates":{"seed":7}}`: " 7", `{"updates":{"version-lock":"1.2.3"}}`: "1.2.3 ",
		`{"updates":{"version-lock":"newest","seed":-1}}`: " ", `{"updates":{"version-lock":7,"seed":7}}`: " ", `{"updates":{"seed":1e3}}`: " ",
		`{"updates":{"version-lock":"1.2.3\u001b[2J"}}`: " ",
	} {
		lock, seed := decodeSettings([]byte(body))
		assert.Equal(t, lock+" "+seed, want, body)
	}
}

func TestUnknownCommandIsNotSent(t *testing.T) {
	err := New(Config{Socket: "/nonexistent"}).Start(context.Background(), "defragment")
	assert.Error(t, err, `start "defragment": no such command`)
}

func TestBootID(t *testing.T) {
	path := filepath.Join(t.TempDir(), "boot_id")
	c := New(Config{Socket: "/nonexistent", BootIDPath: path})
	observe := func() error { _, err := c.Observe(context.Background()); return err }
	assert.ErrorContains(t, observe(), "read boot id: open ")
	for content, want := range map[string]string{
		"": "boot id is empty", "\n": "boot id is empty", "a\nb\n": "not one printable word", "a b\n": "not one printable word",
		"\x00\n": "not one printable word", strings.Repeat("a", maxBootID+1): "longer than 64 bytes", strings.Repeat("b", 10000): "longer than 64 bytes",
	} {
		assert.NilError(t, os.WriteFile(path, []byte(content), 0o600))
		assert.ErrorContains(t, observe(), want)
	}
	// The next thing to fail is the socket.
	assert.NilError(t, os.WriteFile(path, []byte(strings.Repeat("a", maxBootID)), 0o600))
	var gone *platform.GoneError
	assert.Assert(t, errors.As(observe(), &gone))
	assert.Error(t, observe(), "host API socket /nonexistent: get /os: dial unix /nonexistent: connect: no such file or directory")
}

func TestDefaults(t *testing.T) {
	c := New(Config{})
	assert.Equal(t, c.socket, "/run/api.sock")
	assert.Equal(t, c.timeout, 10*time.Second)
}
