package file

import (
	"fmt"

	"github.com/Masterminds/semver/v3"
	"go.yaml.in/yaml/v3"
)

// versionRange is a set of versions in the syntax of Masterminds/semver: `>=1.20.0 <2`, `1.27.x`, `~1.26`, with
// `||` between alternatives.
type versionRange struct {
	text string
	set  *semver.Constraints
}

// UnmarshalYAML reads a range.
func (r *versionRange) UnmarshalYAML(n *yaml.Node) error {
	text, err := word(n)
	if err != nil || text == "" {
		return err
	}
	r.text = text
	set, err := semver.NewConstraint(r.text)
	if err != nil {
		return mistaken(fmt.Sprintf("%q is no range of versions: give one such as \">=1.20.0 <2\" or \"1.27.x\"", r.text))
	}
	// A pre-release is in a range by its place in the order, like any other version.
	set.IncludePrerelease = true
	r.set = set
	return nil
}

// Contains tells if a version is in the range; what is no version isn't.
func (r *versionRange) Contains(version string) bool {
	v, err := semver.StrictNewVersion(version)
	return err == nil && r.set.Check(v)
}

func (r *versionRange) String() string { return r.text }
