package marker

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// semantic is semver.org's own expression. apimachinery's parser is laxer in places, and where it
// compares a number with a word in pre-releases it has no order: 2 < 10 < 1a < 2.
var semantic = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)` +
	`(?:-((?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)(?:\.(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*))*))?` +
	`(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?$`)

// semanticVersion is what counts in the order of versions; build metadata doesn't.
type semanticVersion struct {
	release    [3]uint64
	preRelease string
}

func parseVersion(s string) (semanticVersion, bool) {
	var v semanticVersion
	parts := semantic.FindStringSubmatch(s)
	if parts == nil || len(s) > maxToken {
		return v, false
	}
	for i := range v.release {
		n, err := strconv.ParseUint(parts[1+i], 10, 64)
		if err != nil {
			// Too large for a host as well.
			return v, false
		}
		v.release[i] = n
	}
	v.preRelease = parts[4]
	return v, true
}

// ValidVersion tells if s is a semantic version as a Bottlerocket host writes it: no leading v.
func ValidVersion(s string) bool {
	_, ok := parseVersion(s)
	return ok
}

// CompareVersions orders two valid versions by semantic versioning: -1, 0 or 1. A version that isn't
// valid is lower than every valid one, so that it never counts as an update.
func CompareVersions(a, b string) int {
	va, validA := parseVersion(a)
	vb, validB := parseVersion(b)
	switch {
	case !validA && !validB:
		return 0
	case !validA:
		return -1
	case !validB:
		return 1
	}
	if c := slices.Compare(va.release[:], vb.release[:]); c != 0 {
		return c
	}
	return comparePreReleases(va.preRelease, vb.preRelease)
}

// comparePreReleases is rule 11 of semver.org: identifiers from left to right, numbers below words, and
// no identifiers at all above all.
func comparePreReleases(a, b string) int {
	switch {
	case a == b:
		return 0
	case a == "":
		return 1
	case b == "":
		return -1
	}
	p, q := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(p), len(q)) {
		if c := compareIdentifiers(p[i], q[i]); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(p), len(q))
}

func compareIdentifiers(a, b string) int {
	numberA, numberB := strings.Trim(a, "0123456789") == "", strings.Trim(b, "0123456789") == ""
	switch {
	case numberA && !numberB:
		return -1
	case numberB && !numberA:
		return 1
	case numberA && len(a) != len(b):
		// Numbers have no leading zeros.
		return cmp.Compare(len(a), len(b))
	}
	return strings.Compare(a, b)
}
