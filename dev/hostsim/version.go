package hostsim

import (
	"strings"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/util/version"
)

// lockLatest is the version-lock that follows the newest visible release.
const lockLatest = "latest"

// parseVersion reads a plain semantic version; the parser below would let a leading v pass.
func parseVersion(s string) (*version.Version, error) {
	if s == "" || s[0] < '0' || s[0] > '9' {
		return nil, errors.Errorf("version %q doesn't start with a number", s)
	}
	v, err := version.ParseSemantic(s)
	return v, errors.Wrapf(err, "parse version %q", s)
}

// parseLock reads a version-lock other than latest; there a leading v is allowed.
func parseLock(s string) (*version.Version, error) {
	return parseVersion(strings.TrimPrefix(s, "v"))
}

// sameVersion ignores build metadata, as the order of semantic versions does.
func sameVersion(a, b *version.Version) bool { return a.EqualTo(b) }
