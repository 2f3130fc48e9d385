package marker

import (
	"cmp"
	"strings"

	"golang.org/x/mod/semver"
)

// ValidVersion reports whether s is a semantic version (semver.org) as a Bottlerocket host writes it: all three
// numbers, no leading v. apimachinery's parser is laxer in places and has no order of pre-releases.
func ValidVersion(s string) bool {
	v := "v" + s
	// What the library adds to a short form such as 1.2 isn't there.
	return len(s) <= maxToken && semver.IsValid(v) && semver.Canonical(v)+semver.Build(v) == v
}

// CompareVersions orders two valid versions by semantic versioning: -1, 0 or 1; build metadata doesn't
// count. A version that isn't valid is lower than every valid one, so that it never counts as an update. Versions of
// plans are ordered too, so that any list of versions can be sorted: by plan, by target, by digest. Whether one target
// is an update of another is for ComparePlanTargets to say.
func CompareVersions(a, b string) int {
	if a == b {
		return 0
	}
	if p, q := PlanOf(a), PlanOf(b); p != "" && q != "" {
		return cmp.Or(strings.Compare(p, q), sortPlanTargets(PlanTargetOf(a), PlanTargetOf(b)), strings.Compare(a, b))
	}
	validA, validB := ValidVersion(a), ValidVersion(b)
	switch {
	case validA && validB:
		return semver.Compare("v"+a, "v"+b)
	case validA:
		return 1
	case validB:
		return -1
	}
	return 0
}
