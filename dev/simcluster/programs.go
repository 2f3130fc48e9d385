package simcluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
)

// programs are the product's commands, by the path that they have in the image.
var programs = []string{"bottlerocket-update-operator", "bottlerocket-update-agent"}

// build compiles the product's commands into dir.
func build(ctx context.Context, dir string, progress io.Writer) error {
	root, err := controlplane.Root()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return errors.Wrap(err, "making a folder for programs")
	}
	fmt.Fprintln(progress, "building the operator")
	for _, name := range programs {
		if err := controlplane.Go(ctx, root, "build", "-buildvcs=false", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(dir, name), "./cmd/"+name); err != nil {
			return errors.WithMessagef(err, "building %s", name)
		}
	}
	return nil
}
