// Command cmd puts the programs of a control plane, and of a node, into the cache, so that a
// test run doesn't spend its time limit on them, and prints the folder.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	node := flag.Bool("node", false, "build what a real node needs too")
	flag.Parse()
	b, err := controlplane.Build(ctx, controlplane.Options{Node: *node, Progress: os.Stderr})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(b.Dir)
	return 0
}
