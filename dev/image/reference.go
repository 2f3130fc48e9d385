package image

import (
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/pkg/errors"
)

// Reference is an image's full name, as the kubelet asks containerd for it.
type Reference struct {
	// Repository has its registry: docker.io/library/bottlerocket-update-operator.
	Repository string
	Tag        string
}

// ParseReference completes a name as users write it: what has no registry is Docker's, what has no tag is
// the latest.
func ParseReference(s string) (Reference, error) {
	tag, err := name.NewTag(s)
	if err != nil {
		return Reference{}, errors.Wrap(err, "reading the image's name")
	}
	registry := tag.RegistryStr()
	// The library has the name of Docker's server here.
	if registry == name.DefaultRegistry {
		registry = "docker.io"
	}
	return Reference{Repository: registry + "/" + tag.RepositoryStr(), Tag: tag.TagStr()}, nil
}

func (r Reference) String() string { return r.Repository + ":" + r.Tag }
