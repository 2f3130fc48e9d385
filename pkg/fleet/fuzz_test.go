package fleet_test

import (
	"regexp"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// bottlerocket is a kubelet's osImage of a plain release, told apart from the code under test.
var bottlerocket = regexp.MustCompile(`^Bottlerocket OS ((?:0|[1-9]\d{0,5})\.(?:0|[1-9]\d{0,5})\.(?:0|[1-9]\d{0,5}))(?: .*)?$`)

// FuzzOSVersion: of whatever a kubelet calls its system, only Bottlerocket has a version, one that can be
// compared and that stands in the text at its place; and every plain release has it.
func FuzzOSVersion(f *testing.F) {
	for _, s := range []string{"Bottlerocket OS 1.26.1 (aws-k8s-1.31)", "Bottlerocket OS 0.4.1", "Bottlerocket OS 1.27.0-rc.1 (x)", "Bottlerocket OS v1.2.3 (x)",
		"Bottlerocket OS  1.2.3", "Bottlerocket OS 1.2.3\n(x)", "Amazon Linux 2023", "", "bottlerocket os 1.2.3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, image string) {
		v := fleet.OSVersion(image)
		if m := bottlerocket.FindStringSubmatch(image); m != nil {
			assert.Equal(t, v, m[1])
		}
		if v == "" {
			return
		}
		assert.Assert(t, marker.ValidVersion(v), "%q", v)
		front := "Bottlerocket OS " + v
		assert.Assert(t, image == front || len(image) > len(front) && image[:len(front)+1] == front+" ", "%q of %q", v, image)
	})
}
