// Command bottlerocket-update-agent is the agent alone: it updates its host by the intents that the controller writes
// into annotations of the host's node.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plain"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

const name = "bottlerocket-update-agent"

// maxProblem limits the error with which the program ends, in bytes.
const maxProblem = 1024

// Exit statuses.
const (
	exitOK = iota
	exitFailed
	exitUsage
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	tune(os.Getenv)
	status := run(ctx, os.Args[1:], os.Getenv, os.Stdout, plain.Text(os.Stderr))
	stop()
	os.Exit(status)
}

func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	options := agent.DefaultOptions()
	options.NodeName = getenv("NODE_NAME")
	if namespace := getenv("POD_NAMESPACE"); namespace != "" {
		options.ProxyServerName = agent.ProxyIn(namespace)
	}
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	options.AddFlags(fs)
	version := fs.Bool("version", false, "print the version and exit")
	env, err := telemetry.ParseFlags(fs, args, getenv)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fs.SetOutput(stdout)
		fmt.Fprintf(stdout, "Usage: %s [flags]\n%s\n", name, telemetry.FlagsInEnvironment)
		fs.PrintDefaults()
		return exitOK
	case err == nil && *version:
		fmt.Fprintln(stdout, name, telemetry.Build())
		return exitOK
	case err == nil && fs.NArg() > 0:
		err = errors.Errorf("%q is not a flag: this command takes flags only", fs.Arg(0))
	case err == nil:
		err = env.Explain(options.Validate())
	}
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", name, err)
		return exitUsage
	}
	if err := agent.Start(ctx, options, stderr); err != nil {
		fmt.Fprintf(stderr, "%s: %s\n", name, plain.Line(err.Error(), maxProblem))
		return exitFailed
	}
	return exitOK
}
