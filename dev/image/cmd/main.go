// Command cmd builds the operator's image as an OCI archive and prints its digest and sizes.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/image"
)

func main() {
	fs := flag.NewFlagSet("image", flag.ExitOnError)
	var build image.Build
	fs.StringVar(&build.Version, "version", "unknown", "what the build calls itself")
	fs.StringVar(&build.Commit, "commit", "", "the source's commit")
	fs.StringVar(&build.Date, "date", "", "when that was committed, in RFC 3339")
	name := fs.String("name", "bottlerocket-update-operator:dev", "what the image is called in the archive")
	platforms := fs.String("platforms", "linux/amd64,linux/arm64", "platforms to build for")
	out := fs.String("out", "bin/image.tar", "the archive")
	_ = fs.Parse(os.Args[1:])
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, build, *name, *platforms, *out)
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case interrupted:
		fmt.Fprintln(os.Stderr, "image: interrupted")
		os.Exit(130)
	case err != nil:
		fmt.Fprintf(os.Stderr, "image: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, build image.Build, name, list, out string) error {
	called, err := image.ParseReference(name)
	if err != nil {
		return err
	}
	platforms, err := image.ParsePlatforms(list)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "image-")
	if err != nil {
		return errors.Wrap(err, "making a folder for the content")
	}
	defer os.RemoveAll(dir)
	root, err := controlplane.Root()
	if err != nil {
		return err
	}
	content, err := image.Compile(ctx, root, dir, build, platforms)
	if err != nil {
		return err
	}
	index, err := image.Index(content)
	if err != nil {
		return err
	}
	if err := image.WriteArchive(out, called, index); err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return errors.Wrap(err, "computing the digest")
	}
	sizes, err := image.Sizes(index)
	if err != nil {
		return err
	}
	fmt.Printf("%s is %s\n%s\n", out, called, digest)
	for _, s := range sizes {
		fmt.Printf("%s %.1f MiB\n", s.Platform, float64(s.Bytes)/(1<<20))
	}
	return nil
}
