package marker

import "k8s.io/apimachinery/pkg/util/version"

// ValidVersion tells if s is a semantic version as a Bottlerocket host writes it: no leading v.
func ValidVersion(s string) bool {
	// The parser would skip white space and a leading v.
	if !ValidToken(s) || s[0] < '0' || s[0] > '9' {
		return false
	}
	_, err := version.ParseSemantic(s)
	return err == nil
}

// CompareVersions orders two valid versions by semantic versioning: -1, 0 or 1. A version that isn't
// valid is lower than every valid one, so that it never counts as an update.
func CompareVersions(a, b string) int {
	validA, validB := ValidVersion(a), ValidVersion(b)
	switch {
	case !validA && !validB:
		return 0
	case !validA:
		return -1
	case !validB:
		return 1
	}
	va, vb := version.MustParseSemantic(a), version.MustParseSemantic(b)
	if va.LessThan(vb) {
		return -1
	}
	if vb.LessThan(va) {
		return 1
	}
	return 0
}
