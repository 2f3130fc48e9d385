// Command cmd keeps a cluster of simulated Bottlerocket machines for playing with, see docs/local-cluster.md:
//
//	up       starts one, installs the operator, prints how to use it, and keeps it running in the background; on
//	         one that runs, -nodes adds or removes machines
//	down     stops it and removes its files
//	release VERSION            offers an OS version to all machines
//	fail NODE|VERSION HOW      lets a machine, or all that go to a version, fail: roll-back, hang, never-return
//	heal [NODE|VERSION]        ends that, or all of it
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/simcluster"
)

const (
	defaultNodes = 6
	// defaultPort is the API server's. Systems give ports of this range to nothing that asks for any, so tests have
	// none of them.
	defaultPort = 26443
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "simcluster: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	known := "up, down, release VERSION, fail NODE|VERSION " + strings.Join(failureNames(), "|") + ", or heal [NODE|VERSION]"
	if len(args) == 0 {
		return errors.New("say what to do: " + known)
	}
	at, err := findPlaces()
	if err != nil {
		return err
	}
	what, rest := args[0], args[1:]
	switch {
	case what == "up":
		o, err := parseOptions(rest)
		if err != nil {
			return err
		}
		return up(ctx, at, o)
	case what == "keep":
		o, err := parseOptions(rest)
		if err != nil {
			return err
		}
		return keep(ctx, at, o)
	case what == "down" && len(rest) == 0:
		if _, err := ask(ctx, at, "/down", nil); err != nil {
			return err
		}
		return simcluster.Await(ctx, "the cluster has stopped", time.Minute, at.unused)
	case what == "release" && len(rest) == 1:
		return tell(ctx, at, "/release", url.Values{"version": rest})
	case what == "release":
		return errors.New("say which version: make cluster-release OS=1.51.0")
	case what == "fail" && len(rest) == 2:
		return tell(ctx, at, "/fail", url.Values{"on": rest[:1], "how": rest[1:]})
	case what == "fail":
		return errors.Errorf("say what fails and how: make cluster-fail ON=NODE|VERSION HOW=%s", strings.Join(failureNames(), "|"))
	case what == "heal" && len(rest) <= 1:
		return tell(ctx, at, "/heal", url.Values{"on": rest})
	}
	return errors.Errorf("%q is not a thing to do: %s", strings.Join(args, " "), known)
}

// options are what a cluster is asked to be; 0 is as it is, or the default for one that doesn't run.
type options struct{ nodes, port int }

func parseOptions(args []string) (options, error) {
	var o options
	fs := flag.NewFlagSet("up", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.IntVar(&o.nodes, "nodes", 0, "how many machines")
	fs.IntVar(&o.port, "port", 0, "port of the API server")
	if err := fs.Parse(args); err != nil {
		return options{}, errors.Wrap(err, "up takes -nodes and -port")
	}
	var wrong error
	fs.Visit(func(f *flag.Flag) {
		if n, _ := strconv.Atoi(f.Value.String()); n < 1 || f.Name == "port" && n > 65535 {
			wrong = errors.Errorf("-%s is %s: give 1 or more, and no port above 65535", f.Name, f.Value)
		}
	})
	if fs.NArg() > 0 {
		wrong = errors.Errorf("%q is not a flag: up takes -nodes and -port", fs.Arg(0))
	}
	return o, wrong
}

// values are the options that are given.
func (o options) values() url.Values {
	values := url.Values{}
	for name, n := range map[string]int{"nodes": o.nodes, "port": o.port} {
		if n != 0 {
			values.Set(name, strconv.Itoa(n))
		}
	}
	return values
}
