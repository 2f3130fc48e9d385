package controlplane

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/process"
	"github.com/pkg/errors"
)

// goGrace is what an interrupted go command has to clean up after itself.
const goGrace = 5 * time.Second

// goCommand runs the go command in dir. Settings of the caller that would
// change what is built are taken off. When ctx ends, the command and what it
// started are interrupted, then killed.
func goCommand(ctx context.Context, dir string, stdout *bytes.Buffer, env []string, args ...string) error {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(goEnviron(os.Environ()), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if stdout != nil {
		cmd.Stdout = stdout
	}
	p, err := process.Start(cmd)
	if err != nil {
		return err
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		p.SignalGroup(syscall.SIGINT)
		select {
		case <-p.Done():
		case <-time.After(goGrace):
			p.Kill()
		}
		return errors.Wrapf(ctx.Err(), "running go %s", args[0])
	}
	if err := p.Wait(); err != nil {
		return errors.Wrapf(err, "running go %s: %s", strings.Join(args, " "), tail(stderr.String(), 20))
	}
	return nil
}

// Go runs a go command in dir, for others that build programs from this checkout. When ctx ends, the
// command and what it started end with it. No cgo, and none of the caller's settings that would change
// what is built.
func Go(ctx context.Context, dir string, args ...string) error {
	return goCommand(ctx, dir, nil, nil, args...)
}

// GoFor is Go with another target than this machine; what else there is to choose of that target is as Go
// chooses it, whatever the machine's settings are.
func GoFor(ctx context.Context, dir, goos, goarch string, args ...string) error {
	return goCommand(ctx, dir, nil, []string{"GOOS=" + goos, "GOARCH=" + goarch, "GOAMD64=v1", "GOARM64=v8.0", "GOFIPS140=off"}, args...)
}

func goOutput(ctx context.Context, dir string, args ...string) ([]byte, error) {
	var out bytes.Buffer
	err := goCommand(ctx, dir, &out, nil, args...)
	return out.Bytes(), err
}

// goEnviron drops the variables that choose another target, workspace or flags.
func goEnviron(env []string) []string {
	dropped := []string{"GOFLAGS", "GOWORK", "GOOS", "GOARCH", "CGO_ENABLED", "GOTMPDIR", "GOEXPERIMENT", "GOBIN"}
	env = slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(dropped, name)
	})
	return append(env, "GOWORK=off", "CGO_ENABLED=0", "GOFLAGS=")
}

// tail is the last n lines of a text.
func tail(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
