package image

import (
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/pkg/errors"
)

// Platforms are those that the operator runs on.
var Platforms = []v1.Platform{
	{OS: "linux", Architecture: "amd64"},
	{OS: "linux", Architecture: "arm64"},
}

// Here is the platform of this machine's containers.
func Here() v1.Platform { return v1.Platform{OS: "linux", Architecture: runtime.GOARCH} }

// ParsePlatforms reads a list like linux/amd64,linux/arm64, in any order.
func ParsePlatforms(list string) ([]v1.Platform, error) {
	wanted := strings.Split(list, ",")
	var out []v1.Platform
	for _, p := range Platforms {
		if i := slices.Index(wanted, p.String()); i >= 0 {
			wanted = slices.Delete(wanted, i, i+1)
			out = append(out, p)
		}
	}
	if len(wanted) > 0 {
		return nil, errors.Errorf("%q is not a platform of the operator, or is there twice", wanted[0])
	}
	return out, nil
}
