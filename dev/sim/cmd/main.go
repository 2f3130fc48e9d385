// Command sim searches for a run of the simulated fleet that breaks a promise of the operator: see
// dev/sim and docs/safety.md.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/sim"
)

func main() {
	seeds := flag.Uint64("seeds", 1000, "how many seeds to run")
	first := flag.Uint64("seed", 1, "the first seed")
	workers := flag.Int("workers", runtime.GOMAXPROCS(0), "how many run at once")
	replay := flag.String("replay", "", "run the scenario in this file instead, and show what happens")
	lines := flag.Int("lines", 120, "how many lines of a failing run are shown; 0: all")
	enough := flag.Int("enough", 3, "how many failing seeds end the search")
	shrink := flag.Bool("shrink", true, "look for a smaller scenario that fails in the same way")
	partial := flag.Bool("partial", false, "it is no failure that a kind of fault never struck")
	digest := flag.Bool("digest", false, "print the digest of what the seeds do instead: the same for two versions that do the same")
	transcript := flag.Bool("transcript", false, "print what the digest of the first seed is made of instead")
	flag.Parse()
	switch {
	case *digest:
		all := sim.Digests(*first, *seeds, *workers, func(first, n uint64, d sim.Digest) { fmt.Printf("%d seeds from %d: %s\n", n, first, d) })
		fmt.Printf("all: %s\n", all)
		return
	case *transcript:
		sim.Transcribe(sim.Generate(*first), os.Stdout, os.Stdout)
		return
	}
	if *replay != "" {
		os.Exit(play(*replay, *lines))
	}
	os.Exit(search(*first, *seeds, *workers, *lines, *enough, *shrink, *partial))
}

func play(path string, lines int) int {
	f, err := os.Open(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, "sim:", err)
		return 2
	}
	defer func() { _ = f.Close() }()
	s, err := sim.Read(f)
	if err != nil {
		fmt.Fprintf(os.Stderr, "sim: %s: %v\n", path, err)
		return 2
	}
	r := sim.Run(s)
	r.Trace(os.Stdout, lines)
	if r.Violation != "" {
		return 1
	}
	return 0
}

func search(first, seeds uint64, workers, lines, enough int, shrink, partial bool) int {
	began := time.Now()
	var failed []sim.Result
	done, told := 0, began
	f := sim.Search(first, seeds, workers, func(r sim.Result) bool {
		// A search may take an hour.
		if done++; time.Since(told) > time.Minute {
			told = time.Now()
			fmt.Fprintf(os.Stderr, "%d of %d seeds after %s, %d violations\n", done, seeds, told.Sub(began).Round(time.Second), len(failed))
		}
		if r.Violation != "" {
			fmt.Printf("seed %d breaks %s\n", r.Scenario.Seed, r.Violation)
			failed = append(failed, r)
		}
		return len(failed) < enough
	})
	if len(failed) > 0 {
		show(failed[0], lines, shrink)
	}
	took := time.Since(began)
	fmt.Printf("%s; %s, %s for a seed on %d workers\n", f.String(), took.Round(time.Second),
		(took * time.Duration(workers) / time.Duration(max(1, f.Seeds))).Round(100*time.Microsecond), workers)
	if never := f.Never(); len(never) > 0 && !partial {
		fmt.Printf("never struck, or never looked at: %s\n", strings.Join(never, " "))
		return 1
	}
	if len(failed) > 0 {
		return 1
	}
	return 0
}

func show(r sim.Result, lines int, shrink bool) {
	s := r.Scenario
	if shrink {
		var runs int
		s, runs = sim.Shrink(s, r.Violation)
		r = sim.Run(s)
		fmt.Printf("the smallest that fails in the same way (%d runs); to replay it, keep it in a file: go run ./dev/sim/cmd -replay FILE\n", runs)
	}
	fmt.Println("----")
	if err := s.Write(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sim:", err)
	}
	fmt.Println("----")
	r.Trace(os.Stdout, lines)
}
