package updateapi_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent/next"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/platform"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/platform/updateapi"
)

// The setting stands as it was given, byte for byte, and the host chooses by it; a downgrade too.
func TestSetLock(t *testing.T) {
	s := simulate(t)
	for _, lock := range []string{"1.26.0", "v1.27.0", "latest"} {
		assert.NilError(t, s.SetLock(t.Context(), "7", lock))
		s.start(next.CommandRefresh)
		h := s.observe()
		assert.Equal(t, h.VersionLock, lock)
		if lock != "latest" {
			assert.Equal(t, h.Chosen, strings.TrimPrefix(lock, "v"))
		}
	}
}

// S5: two requests, of one key in a transaction of the intent's own, whatever its id has in it.
func TestSetLockOnTheWire(t *testing.T) {
	var sent []string
	answers := []int{204, 200}
	c := updateapi.New(updateapi.Config{BootID: func() (string, error) { return "b", nil }, Transport: roundTrip(func(r *http.Request) *http.Response {
		line := r.Method + " " + r.URL.RequestURI()
		if r.Body != nil {
			body, err := io.ReadAll(r.Body)
			assert.NilError(t, err)
			line += " " + r.Header.Get("Content-Type") + " " + string(body)
		}
		sent = append(sent, strings.TrimSpace(line))
		return &http.Response{StatusCode: answers[(len(sent)-1)%2], Body: http.NoBody}
	})})
	assert.NilError(t, c.SetLock(t.Context(), `7-a&tx=default/../é%`, "v1.26.0"))
	const tx = "?tx=update-operator-7-a-tx-default------"
	assert.DeepEqual(t, sent, []string{"PATCH /settings" + tx + ` application/json {"updates":{"version-lock":"v1.26.0"}}`, "POST /tx/commit_and_apply" + tx})
}

type roundTrip func(*http.Request) *http.Response

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

// What an answer means: refused with the host's words, certainly not begun, or open.
func TestSetLockAnswers(t *testing.T) {
	const commit, patch = "/tx/commit_and_apply", "PATCH /settings"
	set := func(s *simulated, lock string) error { return s.SetLock(context.Background(), "7", lock) }
	refused := func(err error, body string) {
		t.Helper()
		var r *platform.RefusedError
		assert.Assert(t, errors.As(err, &r), "%v", err)
		assert.DeepEqual(t, r, &platform.RefusedError{Command: next.CommandLock, Why: next.RefusedFailed, Body: body})
	}
	s := simulate(t)
	s.faults(hostsim.Fault{ID: hostsim.F26, On: patch, Count: 1})
	refused(set(s, "1.26.0"), "Data store error during set_keys: lockdown is in effect")
	s.faults(hostsim.Fault{ID: hostsim.F26, On: commit, Count: 1})
	refused(set(s, "1.26.0"), "Data store error during commit: lockdown is in effect")
	assert.ErrorContains(t, set(s, "newest"), "Json deserialize error")
	s.faults(hostsim.Fault{ID: hostsim.F25, Variant: "routes", Count: 1})
	refused(set(s, "1.26.0"), "status 404")
	for _, on := range []string{patch, commit} {
		s.faults(hostsim.Fault{ID: hostsim.F32, On: on, Count: 1})
		var late *platform.NotStartedError
		assert.Assert(t, errors.As(set(s, "1.26.0"), &late))
	}
	assert.Equal(t, s.observe().VersionLock, "latest")

	// A staged change is committed by the next try, and one that was committed is no refusal of the next.
	for _, on := range []string{patch, commit} {
		s.faults(hostsim.Fault{ID: hostsim.F12, Variant: "truncated", On: on, Count: 1})
		err := set(s, "1.26.0")
		var r *platform.RefusedError
		assert.Assert(t, err != nil && !errors.As(err, &r), "%v", err)
	}
	assert.Equal(t, s.observe().VersionLock, "1.26.0")
	nothing := updateapi.New(updateapi.Config{Transport: roundTrip(func(r *http.Request) *http.Response {
		if r.Method == http.MethodPatch {
			return &http.Response{StatusCode: 204, Body: http.NoBody}
		}
		return &http.Response{StatusCode: 422, Body: io.NopCloser(strings.NewReader("Tried to commit with no pending changes"))}
	})})
	err := nothing.SetLock(t.Context(), "7", "1.26.0")
	var r *platform.RefusedError
	assert.Assert(t, !errors.As(err, &r))
	assert.ErrorContains(t, err, "whether the setting has changed is open after the answer 422: Tried to commit with no pending changes")

	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	s.faults(hostsim.Fault{ID: hostsim.F12, On: patch})
	assert.ErrorContains(t, s.SetLock(ctx, "7", "1.27.0"), "deadline exceeded")
}
