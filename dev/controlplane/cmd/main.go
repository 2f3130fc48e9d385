// Command cmd puts the programs of the groups in its arguments (control-plane, node, prometheus) into the cache, so that a
// test run doesn't spend its time limit on them, and prints the folder. Without arguments it is those of a control plane.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var groups []controlplane.Group
	for _, arg := range os.Args[1:] {
		g := controlplane.Group(arg)
		if !slices.Contains(controlplane.Groups, g) {
			fmt.Fprintf(os.Stderr, "there is no group of programs %q: %q are\n", arg, controlplane.Groups)
			return 2
		}
		groups = append(groups, g)
	}
	b, err := controlplane.Build(ctx, controlplane.Options{Groups: groups, Progress: os.Stderr})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(b.Dir)
	return 0
}
