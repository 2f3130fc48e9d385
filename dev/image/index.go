package image

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/pkg/errors"
)

// user has no rights: nothing in the image is writable for it.
const user = "65532:65532"

// entrypoint is the controller's and the proxy's command; the agent's manifest names its own.
var entrypoint = []string{"/" + commands[0]}

// Index makes the image for each platform of the content, and the index of them.
func Index(c Content) (v1.ImageIndex, error) {
	// Of the same bytes on every platform: it is stored once.
	shared, err := layer(c.Shared, 0o644)
	if err != nil {
		return nil, errors.WithMessage(err, "certificates and licences")
	}
	var images []mutate.IndexAddendum
	for _, p := range Platforms {
		folder, ok := c.Commands[p.String()]
		if !ok {
			continue
		}
		commands, err := layer(folder, 0o755)
		if err != nil {
			return nil, errors.WithMessagef(err, "commands for %s", p)
		}
		image, err := assemble(p, v1.Config{User: user, Entrypoint: slices.Clone(entrypoint)}, shared, commands)
		if err != nil {
			return nil, errors.WithMessagef(err, "image for %s", p)
		}
		images = append(images, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: p.DeepCopy()}})
	}
	if len(images) == 0 {
		return nil, errors.New("no platform")
	}
	return mutate.AppendManifests(empty.Index, images...), nil
}

// Programs makes an index of one image, for this machine: of static programs in a folder, the one named by
// entry being what it runs. It is for what development needs beside the operator.
func Programs(folder fs.FS, entry string) (v1.ImageIndex, error) {
	return single(folder, v1.Config{User: user, Entrypoint: []string{"/" + entry}})
}

// System makes an index of one image, for this machine: of a folder that is the root of a small system, whose user is
// root. It stands in for public images of that kind, which development has to do without.
func System(folder fs.FS, entrypoint ...string) (v1.ImageIndex, error) {
	return single(folder, v1.Config{Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, Entrypoint: entrypoint})
}

func single(folder fs.FS, config v1.Config) (v1.ImageIndex, error) {
	all, err := layer(folder, 0o755)
	if err != nil {
		return nil, err
	}
	p := Here()
	image, err := assemble(p, config, all)
	if err != nil {
		return nil, err
	}
	return mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &p}}), nil
}

// layer is a folder, packed.
func layer(folder fs.FS, mode int64) (v1.Layer, error) {
	var packed bytes.Buffer
	// The best compression would take twice as long for a third of a percent.
	z := gzip.NewWriter(&packed)
	if err := writeTar(z, folder, mode); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, errors.Wrap(err, "packing")
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil }
	l, err := tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
	return l, errors.Wrap(err, "making a layer")
}

func assemble(p v1.Platform, run v1.Config, layers ...v1.Layer) (v1.Image, error) {
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	var adds []mutate.Addendum
	for _, l := range layers {
		adds = append(adds, mutate.Addendum{Layer: l, History: v1.History{Created: v1.Time{Time: epoch}, CreatedBy: "make image"}})
	}
	image, err := mutate.Append(image, adds...)
	if err != nil {
		return nil, errors.Wrap(err, "adding layers")
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, errors.Wrap(err, "computing the configuration")
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = p.OS, p.Architecture
	config.Created = v1.Time{Time: epoch}
	config.Config = run
	image, err = mutate.ConfigFile(image, config)
	return image, errors.Wrap(err, "setting the configuration")
}
