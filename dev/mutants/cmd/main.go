// Command mutants mutates the pure packages and reports what their unit tests don't notice: see dev/mutants.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/mutants"
)

// enough is how many of a hundred mutants must be noticed.
const enough = 95

func main() {
	n := flag.Int("n", 300, "how many mutants to try")
	seed := flag.Uint64("seed", uint64(time.Now().Unix()), "draws them")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: mutants [FLAG...] [FILE or FOLDER below the module...]")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	share, err := run(ctx, *n, *seed, flag.Args())
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	case share < enough:
		fmt.Fprintf(os.Stderr, "mutants: fewer than %d %% were noticed\n", enough)
		os.Exit(1)
	}
}

func run(ctx context.Context, n int, seed uint64, places []string) (float64, error) {
	root, err := controlplane.Root()
	if err != nil {
		return 0, err
	}
	module, err := mutants.This(root)
	if err != nil {
		return 0, err
	}
	all, err := module.Mutations(places...)
	if err != nil {
		return 0, err
	}
	fmt.Printf("%d of %d mutants, drawn by seed %d; %d more are known to change nothing\n", min(n, len(all)), len(all), seed, len(module.Equivalents))
	began, tried := time.Now(), 0
	t, err := module.Run(ctx, mutants.Draw(all, seed), n, func(m mutants.Mutation, survived bool) {
		if tried++; survived {
			fmt.Printf("\nnumber %d survived after %s, line %d of\n%s\n", tried, time.Since(began).Round(time.Second), m.Line, m)
		}
	})
	if err != nil {
		return 0, err
	}
	fmt.Printf("\n%d noticed, %d survived: %.1f %%; %d more didn't compile; it took %s\n",
		t.Noticed, t.Survived, t.Share(), t.NotCompiled, time.Since(began).Round(time.Second))
	return t.Share(), nil
}
