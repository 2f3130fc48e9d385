// Command build puts the programs of a control plane into the cache, so that a
// test run doesn't spend its time limit on them, and prints the folder.
package main

import (
	"context"
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
	b, err := controlplane.Build(ctx, controlplane.Options{Progress: os.Stderr})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(b.Dir)
	return 0
}
