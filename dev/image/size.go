package image

import (
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/pkg/errors"
)

// Size is what one platform's image weighs: what a node downloads.
type Size struct {
	Platform string
	Bytes    int64
}

// Sizes are those of an index's images, in its order.
func Sizes(index v1.ImageIndex) ([]Size, error) {
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, errors.Wrap(err, "reading the index")
	}
	var out []Size
	for _, d := range manifest.Manifests {
		image, err := index.Image(d.Digest)
		if err != nil {
			return nil, errors.Wrap(err, "reading the index")
		}
		m, err := image.Manifest()
		if err != nil {
			return nil, errors.Wrap(err, "reading a manifest")
		}
		s := Size{Platform: d.Platform.String(), Bytes: d.Size + m.Config.Size}
		for _, l := range m.Layers {
			s.Bytes += l.Size
		}
		out = append(out, s)
	}
	return out, nil
}
