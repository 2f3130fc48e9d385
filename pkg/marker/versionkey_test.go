package marker_test

import (
	"regexp"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// A version of a plan can be a key of a ConfigMap, and no other version has the same one.
func TestVersionKey(t *testing.T) {
	// k8s.io/apimachinery/pkg/util/validation, IsConfigMapKey
	allowed := regexp.MustCompile(`^[-._a-zA-Z0-9]{1,253}$`)
	for version, want := range map[string]string{
		"1.51.0":                            "1.51.0",
		"1.52.0-rc.1":                       "1.52.0-rc.1",
		"k3s/v1.36.3+k3s1#0123456789abcdef": "k3s_2Fv1.36.3_2Bk3s1_230123456789abcdef",
		"os/Debian GNU/Linux 12 (bookworm)_#0123456789abcdef": "os_2FDebian_20GNU_2FLinux_2012_20_28bookworm_29_5F_230123456789abcdef",
		"files/content#0123456789abcdef":                      "files_2Fcontent_230123456789abcdef",
	} {
		key := marker.VersionKey(version)
		assert.Equal(t, key, want)
		assert.Assert(t, allowed.MatchString(key))
		assert.Equal(t, marker.KeyVersion(key), version)
	}
	for _, key := range []string{"_", "a_", "a_2", "a_zz", "a_2f", "a_41"} {
		assert.Equal(t, marker.KeyVersion(key), "", key)
	}
}
