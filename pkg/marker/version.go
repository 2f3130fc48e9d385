package marker

import "k8s.io/apimachinery/pkg/util/version"

// ValidVersion tells if s is a semantic version as a Bottlerocket host writes it: no leading v.
func ValidVersion(s string) bool {
	if s == "" || len(s) > maxToken || s[0] < '0' || s[0] > '9' {
		return false
	}
	_, err := version.ParseSemantic(s)
	return err == nil
}

// CompareVersions orders two valid versions by semantic versioning: -1, 0 or 1. A version that isn't
// valid is lower than every valid one, so that it never counts as an update.
func CompareVersions(a, b string) int {
	va, errA := version.ParseSemantic(a)
	vb, errB := version.ParseSemantic(b)
	switch {
	case errA != nil && errB != nil:
		return 0
	case errA != nil:
		return -1
	case errB != nil:
		return 1
	}
	if va.LessThan(vb) {
		return -1
	}
	if vb.LessThan(va) {
		return 1
	}
	return 0
}
