package dist

import (
	"regexp"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// notInPrerelease are what no part of a semantic version may hold.
var notInPrerelease = regexp.MustCompile(`[^0-9A-Za-z-]+`)

// chartVersion returns what Helm and krew take as the version: the git tag without its v. What is no semantic
// version, such as a commit without a tag, is older than every release: 0.0.0-git-COMMIT.
func chartVersion(tag string) string {
	if v, err := semver.StrictNewVersion(strings.TrimPrefix(tag, "v")); err == nil && strings.HasPrefix(tag, "v") {
		return v.String()
	}
	return "0.0.0-git-" + notInPrerelease.ReplaceAllString(tag, "-")
}
