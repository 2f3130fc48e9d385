package platform

import (
	"context"
	"fmt"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent/next"
)

// Host is one machine that can be updated in place. Its methods send one request each (Observe and SetLock: a few),
// wait for no command to finish and never retry: the agent does that.
type Host interface {
	// Observe looks at the host. An error means that nothing is known: the host can't be reached, its answer can't be
	// understood, or, with a *NoAPIError, it has no API to look with.
	Observe(ctx context.Context) (next.Host, error)
	// Start asks for one command. nil means that the host accepted it, not that it ended. A *RefusedError, a
	// *NotStartedError or a *GoneError means that it certainly didn't start; after any other error it may have.
	Start(ctx context.Context, c next.Command) error
	// SetLock makes the setting version-lock the value, and changes no other, nor what other programs are about to change.
	// id names the intent. nil means that the setting was accepted, not that it is in effect yet. After any error a look
	// shows what became of it; a *RefusedError has the host's own words.
	SetLock(ctx context.Context, id, value string) error
}

// RefusedError means that the host refused the command.
type RefusedError struct {
	Command next.Command
	Why     next.Refusal
	// Body is the answer in one short line.
	Body string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("host refused %s (%s): %s", e.Command, e.Why, e.Body)
}

// NotStartedError means that the host certainly did not begin the command: its one worker was blocked, and it answered
// 408 to a request that had waited too long.
type NotStartedError struct {
	Command next.Command
}

func (e *NotStartedError) Error() string {
	return fmt.Sprintf("host was too busy to read the command %s (408)", e.Command)
}

// NoAPIError means that the host answers, and its API has no such route.
type NoAPIError struct{ Path string }

func (e *NoAPIError) Error() string {
	return fmt.Sprintf("get %s: the api has no such route: the os is older than 0.4.1, or this is no bottlerocket", e.Path)
}

// GoneError means that nothing listens on the socket which this process has mounted: the host's API server was
// restarted and made a new one. Only a restart of the pod mounts that.
type GoneError struct {
	Path string
	Err  error
}

func (e *GoneError) Error() string { return fmt.Sprintf("host API socket %s: %v", e.Path, e.Err) }

// Unwrap returns the cause.
func (e *GoneError) Unwrap() error { return e.Err }
