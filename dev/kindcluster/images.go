package kindcluster

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/image"
)

// webImage has the name that it has on dev/realcluster: the workload is the same.
const webImage = "localhost/realcluster/web:1"

// loadWeb builds the workload's image and loads it.
func (c *Cluster) loadWeb(ctx context.Context) error {
	called, err := image.ParseReference(webImage)
	if err != nil {
		return err
	}
	root, err := controlplane.Root()
	if err != nil {
		return err
	}
	folder := filepath.Join(c.dir, "web")
	if err := os.Mkdir(folder, 0o755); err != nil {
		return errors.Wrap(err, "making an image's folder")
	}
	source := filepath.Join(root, "dev", "realcluster", "programs")
	if err := controlplane.Go(ctx, source, "build", "-trimpath", "-buildvcs=false", "-o", filepath.Join(folder, "web"), "./web"); err != nil {
		return errors.WithMessage(err, "building the workload")
	}
	index, err := image.Programs(os.DirFS(folder), "web")
	if err != nil {
		return errors.WithMessagef(err, "making image %s", webImage)
	}
	archive := folder + ".tar"
	if err := image.WriteArchive(archive, called, index); err != nil {
		return err
	}
	return c.Load(ctx, archive)
}

// Load imports an image archive on every worker; all must be up.
func (c *Cluster) Load(ctx context.Context, archive string) error {
	var names []string
	for _, n := range c.Nodes {
		names = append(names, n.name)
	}
	_, err := c.run(ctx, nil, "kind", "load", "image-archive", archive, "--name", Name, "--nodes", strings.Join(names, ","))
	return err
}
