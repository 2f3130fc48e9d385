package marker

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gotest.tools/v3/assert"
)

// A list is what was put into it, as far as it fits, and can always be read back.
func TestOffers(t *testing.T) {
	many := make([]string, 25)
	for i := range many {
		many[i] = fmt.Sprintf("1.%d.0", 40-i)
	}
	long := []string{"1.5.0", "1.4.0", "1.3.0", "1.2.0", "1.1.0"}
	for i := range long {
		long[i] += "-" + strings.Repeat("x", 114)
	}
	for _, tc := range []struct {
		name  string
		of    []string
		fits  int
		bytes int
	}{
		{"none", nil, 0, 0},
		{"one", many[:1], 1, 6},
		{"as many as there may be", many[:20], 20, 139},
		{"one more", many[:21], 20, 144},
		{"many", many, 20, 144},
		{"long ones", long, 4, 488},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := OffersOf(tc.of)
			assert.Equal(t, len(o), tc.bytes, "%s", o)
			got, more := o.Versions()
			assert.DeepEqual(t, got, slices.Clip(tc.of[:tc.fits:tc.fits]))
			assert.Equal(t, more, tc.fits < len(tc.of))
			assert.Equal(t, o.valid(), tc.fits > 0)
		})
	}
}

// What a cut list says nothing of isn't known; nor is anything of a list that isn't there.
func TestOffersList(t *testing.T) {
	for _, tc := range []struct {
		offers        Offers
		version       string
		listed, known bool
	}{
		{"", "1.2.3", false, false},
		{"1.3.0,1.2.3", "1.2.3", true, true},
		{"1.3.0,1.2.3", "1.2.3+build", true, true},
		{"1.3.0,1.2.3", "1.4.0", false, true},
		{"1.3.0,1.2.3", "1.2.9", false, true},
		{"1.3.0,1.2.3", "1.1.0", false, true},
		{"1.3.0,1.2.3,more", "1.1.0", false, false},
		{"1.3.0,1.2.3,more", "1.2.9", false, true},
		{"1.3.0,1.2.3,more", "1.2.3", true, true},
	} {
		listed, known := tc.offers.Lists(tc.version)
		assert.Assert(t, listed == tc.listed && known == tc.known, "%s in %s: %v %v", tc.version, tc.offers, listed, known)
	}
}
