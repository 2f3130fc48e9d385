package updateapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent/next"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/platform"
)

// actions are the paths of the commands.
var actions = map[next.Command]string{
	next.CommandRefresh:    "/actions/refresh-updates",
	next.CommandPrepare:    "/actions/prepare-update",
	next.CommandActivate:   "/actions/activate-update",
	next.CommandDeactivate: "/actions/deactivate-update",
	next.CommandReboot:     "/actions/reboot",
}

// noDispatcher and noSuchFile are in the answer of an image that was built without in-place updates: the program is
// missing. Any other reason not to start it, like a lack of memory, passes by itself.
const (
	noDispatcher = "Unable to start the update dispatcher: "
	noSuchFile   = "(os error 2)"
)

// Start implements platform.Host.
func (c *Client) Start(ctx context.Context, cmd next.Command) error {
	path, ok := actions[cmd]
	if !ok {
		return errors.Errorf("start %q: no such command", string(cmd))
	}
	a, err := c.exchange(ctx, http.MethodPost, path)
	if err != nil {
		return err
	}
	if a.status == http.StatusNoContent {
		return nil
	}
	if a.status == http.StatusRequestTimeout && a.empty() {
		return &platform.NotStartedError{Command: cmd}
	}
	line := oneLine(string(a.body))
	if cmd == next.CommandReboot || a.status < 300 {
		// A machine that failed to reboot by its own answer may still go down; and a success that isn't the documented one
		// proves nothing.
		return errors.Errorf("post %s: whether it began is open after the answer %d: %s", path, a.status, line)
	}
	return &platform.RefusedError{Command: cmd, Why: refusal(a), Body: line}
}

// refusal returns why the host refused an update command.
func refusal(a answer) next.Refusal {
	switch {
	case a.status == http.StatusLocked:
		return next.RefusedLocked
	case a.status == http.StatusConflict:
		return next.RefusedState
	case a.status == http.StatusNotFound && a.empty():
		return next.RefusedUnsupported
	case a.status == http.StatusNotFound:
		return next.RefusedMissing
	case a.status == http.StatusInternalServerError && lacksDispatcher(string(a.body)):
		return next.RefusedUnsupported
	}
	return next.RefusedFailed
}

func lacksDispatcher(body string) bool {
	why, ok := strings.CutPrefix(body, noDispatcher)
	return ok && strings.HasSuffix(strings.TrimSpace(why), noSuchFile)
}
