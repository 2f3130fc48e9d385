// Command cmd runs the chaos of dev/chaos for one seed after the other and prints figures.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/klog/v2"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/chaos"
)

func main() { os.Exit(run()) }

func run() int {
	fs := flag.NewFlagSet("chaos", flag.ContinueOnError)
	seed := fs.Uint64("seed", uint64(time.Now().Unix()), "the first seed; each further run takes the next one")
	runs := fs.Int("runs", 1, "how many seeds to run")
	minutes := fs.Float64("minutes", 0, "start runs for so long, instead of counting them")
	times := fs.Int("times", 3, "how often each fault strikes in a run")
	count := fs.Int("nodes", 12, "how many machines")
	limit := fs.Int("limit", 3, "how many may be out of service")
	keep := fs.String("keep", "", "folder for the logs of runs in which a promise was broken")
	all := fs.Bool("keep-all", false, "put the logs of all runs there")
	if err := fs.Parse(os.Args[1:]); err != nil {
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	// The machines' own watches complain of every outage.
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	began := time.Now()
	var total chaos.Total
	for n := 0; ctx.Err() == nil; n++ {
		if *minutes > 0 && time.Since(began).Minutes() >= *minutes || *minutes <= 0 && n >= *runs {
			break
		}
		result, err := chaos.Run(ctx, chaos.Config{
			Seed: *seed + uint64(n), Nodes: *count, Limit: *limit, Times: *times, Progress: os.Stdout, Keep: *keep, KeepAll: *all,
		})
		if err == nil {
			err = result.Err()
		}
		total.Add(result, err)
		if err != nil {
			fmt.Fprintf(os.Stderr, "chaos: seed %d: %v\n", result.Seed, err)
		}
		fmt.Println(total)
	}
	if ctx.Err() != nil {
		fmt.Fprintln(os.Stderr, "chaos: interrupted, everything is stopped")
		return 130
	}
	if total.Bad > 0 {
		return 1
	}
	return 0
}
