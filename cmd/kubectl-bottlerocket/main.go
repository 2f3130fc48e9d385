// Command kubectl-bottlerocket is a kubectl plugin: it shows what the operator is about to do with the nodes and why
// not, and writes users' settings such as pauses. See pkg/plugin.
package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	// The policy names time zones, and not every machine has time zone files.
	_ "time/tzdata"

	"k8s.io/klog/v2"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plain"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plugin"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	// client-go's log lines quote the API server.
	klog.SetSlogLogger(slog.New(slog.NewTextHandler(plain.Text(os.Stderr), nil)))
	status := plugin.Run(ctx, os.Args, os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}
