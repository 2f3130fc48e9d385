// Command cmd writes the files of a release into a folder and prints their names and sizes.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/image"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/release/dist"
)

func main() {
	fs := flag.NewFlagSet("dist", flag.ExitOnError)
	var build image.Build
	fs.StringVar(&build.Version, "version", "", "the git tag")
	fs.StringVar(&build.Commit, "commit", "", "the source's commit")
	fs.StringVar(&build.Date, "date", "", "when that was committed, in RFC 3339")
	out := fs.String("out", "dist", "the folder, which must be empty or not there")
	_ = fs.Parse(os.Args[1:])
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := dist.Make(ctx, build, *out)
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case interrupted:
		fmt.Fprintln(os.Stderr, "dist: interrupted")
		os.Exit(130)
	case err != nil:
		fmt.Fprintf(os.Stderr, "dist: %v\n", err)
		os.Exit(1)
	}
}
