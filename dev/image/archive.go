package image

import (
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/pkg/errors"
)

// How an archive says what an image is called: containerd and what builds on it read the first, with
// the full name; the second is the specification's and holds the tag.
const (
	annotationName = "io.containerd.image.name"
	annotationTag  = "org.opencontainers.image.ref.name"
)

// WriteArchive writes an OCI archive with one entry, an index or an image, of the given name. There is never half an
// archive in its place.
func WriteArchive(file string, called Reference, entry mutate.Appendable) error {
	dir, err := os.MkdirTemp("", "image-")
	if err != nil {
		return errors.Wrap(err, "making a folder for the layout")
	}
	defer os.RemoveAll(dir)
	top := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: entry, Descriptor: v1.Descriptor{
		Annotations: map[string]string{annotationName: called.String(), annotationTag: called.Tag},
	}})
	if _, err := layout.Write(dir, top); err != nil {
		return errors.Wrap(err, "writing the layout")
	}

	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return errors.Wrap(err, "making the archive's folder")
	}
	temp := file + ".part"
	w, err := os.Create(temp)
	if err != nil {
		return errors.Wrap(err, "making the archive")
	}
	defer os.Remove(temp)
	defer w.Close()
	if err := writeTar(w, os.DirFS(dir), 0o644); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return errors.Wrap(err, "writing the archive")
	}
	return errors.Wrap(os.Rename(temp, file), "writing the archive")
}
