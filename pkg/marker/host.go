package marker

import (
	"strconv"
	"strings"
)

// LockLatest is the value of a host's version-lock that locks it to no version. It is the default.
const LockLatest = "latest"

// ValidLock reports whether s can be the value of a host's version-lock: LockLatest, or one version, which a host takes
// with a leading v too.
func ValidLock(s string) bool { return s == LockLatest || ValidVersion(strings.TrimPrefix(s, "v")) }

// ValidSeed reports whether s can be a host's place in the waves of a release: a decimal number of 32 bits.
func ValidSeed(s string) bool {
	n, err := strconv.ParseUint(s, 10, 32)
	return err == nil && strconv.FormatUint(n, 10) == s
}

// Offers are the versions that a host lists for itself, newest first, as the annotation has them: with commas between.
// Those that are lower than what it runs, and that itself, are among them. Empty: not known.
type Offers string

const (
	maxOffered      = 20
	maxOfferedBytes = 512
	// moreOffered ends a list that was cut.
	moreOffered = "more"
)

// OffersOf returns the first of the versions: at most 20, of at most 512 bytes together.
func OffersOf(versions []string) Offers {
	var out strings.Builder
	for i, v := range versions {
		// There is always room left for the word that ends a list which was cut.
		if i == maxOffered || out.Len()+len(v)+len(",")+len(","+moreOffered) > maxOfferedBytes {
			out.WriteString(moreOffered)
			return Offers(out.String())
		}
		out.WriteString(v + ",")
	}
	return Offers(strings.TrimSuffix(out.String(), ","))
}

// Versions returns what is in the list, and whether the host lists more than that.
func (o Offers) Versions() (versions []string, more bool) {
	if o == "" {
		return nil, false
	}
	versions = strings.Split(string(o), ",")
	if last := len(versions) - 1; versions[last] == moreOffered {
		return versions[:last], true
	}
	return versions, false
}

// Lists reports whether the host lists the version, if that is known. Of a version that comes after a list which was
// cut it isn't.
func (o Offers) Lists(version string) (listed, known bool) {
	lowest := ""
	all, more := o.Versions()
	for _, v := range all {
		if CompareVersions(v, version) == 0 {
			return true, true
		}
		lowest = v
	}
	return false, lowest != "" && (!more || CompareVersions(version, lowest) > 0)
}

// valid reports whether o could have been made by OffersOf.
func (o Offers) valid() bool {
	all, _ := o.Versions()
	for _, v := range all {
		if !ValidVersion(v) {
			return false
		}
	}
	return len(all) > 0 && len(all) <= maxOffered && len(o) <= maxOfferedBytes
}
