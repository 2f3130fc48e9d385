// Command kubectl-bottlerocket is a kubectl plugin: it shows what the operator is about to do with the nodes and why
// not, and writes what is a person's to write.
//
// It decides nothing of its own: what it prints is the leader's own plan, or comes from the functions that the leader
// decides by, fed with live reads. `plan`, `status` and `history` write nothing.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	// The policy's windows are in time zones, and not every machine has files of them.
	_ "time/tzdata"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	p := newPlugin(genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	// What client-go logs quotes the API server too.
	klog.SetSlogLogger(slog.New(slog.NewTextHandler(p.ErrOut, nil)))
	status := p.run(ctx, arguments(os.Args))
	stop()
	os.Exit(status)
}

// completer is the name under which kubectl asks a plugin of this name to complete a command line.
const completer = "kubectl_complete-bottlerocket"

// arguments are those of the process, and under the completer's name those that ask for a completion.
func arguments(args []string) []string {
	if strings.TrimSuffix(filepath.Base(args[0]), ".exe") == completer {
		return append([]string{cobra.ShellCompRequestCmd}, args[1:]...)
	}
	return args[1:]
}

// run is the process but for its exit; it returns the status, as kubectl's: 1 whatever is wrong.
func (p *plugin) run(ctx context.Context, args []string) int {
	c := p.command()
	c.SetArgs(args)
	err := c.ExecuteContext(ctx)
	var several mistakes
	switch {
	case err == nil:
		return 0
	case errors.As(err, &several):
		fmt.Fprintf(p.ErrOut, "error: %v\n", several)
	default:
		fmt.Fprintf(p.ErrOut, "error: %s\n", line(err.Error()))
	}
	return 1
}
