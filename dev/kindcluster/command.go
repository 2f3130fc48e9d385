package kindcluster

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/process"
)

// runner carries out a command and returns what it printed.
type runner func(ctx context.Context, in io.Reader, name string, args ...string) (string, error)

// run is the runner. An interrupt typed on the terminal doesn't reach the command, so that a cluster can be
// deleted after one.
func run(ctx context.Context, in io.Reader, name string, args ...string) (string, error) {
	const most = 2000 // kind tells a lot when it fails
	what := name + " " + strings.Join(args, " ")
	var out, said bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &out, &said
	// kind would take another engine if it found that first.
	cmd.Env = append(os.Environ(), "KIND_EXPERIMENTAL_PROVIDER=docker")
	p, err := process.Start(cmd)
	if err != nil {
		return "", err
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		p.Kill()
		return "", errors.Wrapf(ctx.Err(), "running %s", what)
	}
	text := strings.TrimSpace(said.String())
	return out.String(), errors.Wrapf(p.Wait(), "running %s: %s", what, text[max(0, len(text)-most):])
}
