package realcluster

import (
	"os"
	"path/filepath"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/image"
)

// The images of the cluster's own programs. They can't be pulled: pods must not ask for that.
const (
	pauseImage   = "localhost/realcluster/pause:1"
	corednsImage = "localhost/realcluster/coredns:1"
	// WebImage holds a small web server and its client, see dev/realcluster/programs/web.
	WebImage = "localhost/realcluster/web:1"
)

// makeImages makes the archives that every node gets.
func (c *Cluster) makeImages() error {
	for name, program := range map[string]string{pauseImage: "pause", corednsImage: "coredns", WebImage: "web"} {
		called, err := image.ParseReference(name)
		if err != nil {
			return err
		}
		folder := filepath.Join(c.Plane.Dir(), "images", program)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return errors.Wrap(err, "making images")
		}
		if err := os.Link(filepath.Join(c.binaries.Dir, program), filepath.Join(folder, program)); err != nil {
			return errors.Wrap(err, "making images")
		}
		index, err := image.Programs(os.DirFS(folder), program)
		if err != nil {
			return errors.WithMessagef(err, "making image %s", name)
		}
		archive := folder + ".tar"
		if err := image.WriteArchive(archive, called, index); err != nil {
			return err
		}
		c.images = append(c.images, archive)
	}
	return nil
}
