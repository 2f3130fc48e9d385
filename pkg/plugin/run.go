package plugin

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// completer is the name under which kubectl asks a plugin of this name to complete a command line.
const completer = "kubectl_complete-bottlerocket"

// Run is the process but for its exit, with args as the system gives them, the program's name first. It returns the
// status, as kubectl's: 1 whatever is wrong, but 2 of a check, or a look for what is proven, that can't be made.
func Run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	return newPlugin(genericiooptions.IOStreams{In: in, Out: out, ErrOut: errOut}).run(ctx, arguments(args))
}

// arguments are those of the process, and under the completer's name those that ask for a completion.
func arguments(args []string) []string {
	if strings.TrimSuffix(filepath.Base(args[0]), ".exe") == completer {
		return append([]string{cobra.ShellCompRequestCmd}, args[1:]...)
	}
	return args[1:]
}

func (p *plugin) run(ctx context.Context, args []string) int {
	c := p.command()
	c.SetArgs(args)
	ran, err := c.ExecuteContextC(ctx)
	var several mistakes
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errFailed), errors.Is(err, errNotProven):
		return 1
	case errors.As(err, &several):
		fmt.Fprintf(p.ErrOut, "error: %v\n", several)
	default:
		fmt.Fprintf(p.ErrOut, "error: %s\n", line(err.Error()))
	}
	if status, err := strconv.Atoi(ran.Annotations[statusOfErrors]); err == nil {
		return status
	}
	return 1
}
