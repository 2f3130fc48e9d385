// Command bottlerocket-update-operator is the whole operator in one program: the controller, the proxy, the runner, or
// an agent.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/authorizer"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/controller"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plain"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/runner"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

const name = "bottlerocket-update-operator"

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
	status := run(ctx, os.Args[1:], os.Getenv, os.Stdout, plain.Text(os.Stderr))
	stop()
	os.Exit(status)
}

// mode is one of the processes that this program can be.
type mode struct {
	flags interface {
		AddFlags(*flag.FlagSet)
		Validate() error
	}
	start func(context.Context, io.Writer) error
}

var modeNames = []string{"controller", "agent", "proxy", "runner"}

func modes(getenv func(string) string) map[string]mode {
	c := controller.DefaultOptions()
	c.NodeName, c.PodName = getenv("NODE_NAME"), getenv("POD_NAME")
	c.MaxConcurrentUpdate = getenv("MAX_CONCURRENT_UPDATE")
	a := agent.DefaultOptions()
	a.NodeName = getenv("NODE_NAME")
	p := authorizer.DefaultOptions()
	r := runner.DefaultOptions()
	if namespace := getenv("POD_NAMESPACE"); namespace != "" {
		c.Namespace, p.Namespace, r.Namespace = namespace, namespace, namespace
		a.ProxyServerName, p.ServerName = agent.ProxyIn(namespace), agent.ProxyIn(namespace)
	}
	return map[string]mode{
		"controller": {&c, func(ctx context.Context, out io.Writer) error { return controller.Start(ctx, c, out) }},
		"agent":      {&a, func(ctx context.Context, out io.Writer) error { return agent.Start(ctx, a, out) }},
		"proxy":      {&p, func(ctx context.Context, out io.Writer) error { return authorizer.Start(ctx, p, out) }},
		"runner":     {&r, func(ctx context.Context, out io.Writer) error { return runner.Start(ctx, r, out) }},
	}
}

func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	usage := func(err error) int {
		fmt.Fprintf(stderr, "%s: %v\n", name, err)
		return exitUsage
	}
	chosen, rest, err := choose(args, getenv)
	if err != nil {
		return usage(err)
	}
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	version := fs.Bool("version", false, "print the version and exit")
	check := fs.String("check-policy", "", "say what is wrong with a policy file, without a cluster, and exit")
	m, ok := modes(getenv)[chosen]
	if ok {
		m.flags.AddFlags(fs)
	}
	env, err := telemetry.ParseFlags(fs, rest, getenv)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(stdout, "Usage: %s -controller|-agent|-proxy|-runner [flags]\n       %s -check-policy FILE\n%s\n", name, name,
			telemetry.FlagsInEnvironment)
		if ok {
			fmt.Fprintf(stdout, "\nFlags of -%s:\n", chosen)
		}
		fs.SetOutput(stdout)
		fs.PrintDefaults()
		return exitOK
	case err == nil && *version:
		fmt.Fprintln(stdout, name, telemetry.Build())
		return exitOK
	case err == nil && *check != "":
		return checkPolicy(*check, stdout, stderr)
	case !ok:
		return usage(errors.New("give exactly one of -controller, -agent, -proxy, -runner"))
	case err == nil && fs.NArg() > 0:
		err = errors.Errorf("%q is not a flag: this command takes flags only", fs.Arg(0))
	case err == nil:
		err = env.Explain(m.flags.Validate())
	}
	if err != nil {
		return usage(err)
	}
	tune(chosen, getenv)
	if err := m.start(ctx, stderr); err != nil {
		fmt.Fprintf(stderr, "%s: %s\n", name, plain.Line(err.Error(), maxProblem))
		return exitFailed
	}
	return exitOK
}

// choose returns the mode and the arguments without it. It comes before all other flags, which depend on the mode. The
// environment chooses only where the arguments don't.
func choose(args []string, getenv func(string) string) (chosen string, rest []string, err error) {
	given := map[string]bool{}
	pick := func(is string) error {
		if chosen != "" && chosen != is {
			return errors.Errorf("-%s and -%s exclude each other: give one of -controller, -agent, -proxy, -runner", chosen, is)
		}
		chosen = is
		return nil
	}
	for i, arg := range args {
		if arg == "--" {
			rest = append(rest, args[i:]...)
			break
		}
		is, on := modeFlag(arg)
		if is == "" {
			rest = append(rest, arg)
			continue
		}
		given[is] = true
		if on {
			if err := pick(is); err != nil {
				return "", nil, err
			}
		}
	}
	if chosen != "" {
		return chosen, rest, nil
	}
	var env telemetry.Environment
	for _, n := range modeNames {
		value := getenv(telemetry.Variable(n))
		if value == "" || given[n] {
			continue
		}
		on, err := strconv.ParseBool(value)
		if err != nil {
			return "", nil, telemetry.BadVariable(n, value, "true")
		}
		if !on {
			continue
		}
		env = append(env, n)
		if err := pick(n); err != nil {
			return "", nil, env.Explain(err)
		}
	}
	return chosen, rest, nil
}

// modeFlag returns the mode that arg names, as -agent, --agent or -agent=true, and whether it is on.
func modeFlag(arg string) (mode string, on bool) {
	if !strings.HasPrefix(arg, "-") {
		return "", false
	}
	bare, value, given := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-"), "=")
	for _, n := range modeNames {
		if bare == n {
			on, err := strconv.ParseBool(value)
			return n, !given || err == nil && on
		}
	}
	return "", false
}
