package image

import (
	"testing"

	"gotest.tools/v3/assert"
)

func TestParsePlatforms(t *testing.T) {
	got, err := ParsePlatforms("linux/arm64,linux/amd64")
	assert.NilError(t, err)
	assert.DeepEqual(t, got, Platforms)
	got, err = ParsePlatforms("linux/arm64")
	assert.NilError(t, err)
	assert.DeepEqual(t, got, Platforms[1:])
	for _, list := range []string{"", "linux/arm64,", "linux/riscv64", "linux/amd64,linux/amd64"} {
		_, err := ParsePlatforms(list)
		assert.ErrorContains(t, err, "not a platform", list)
	}
}
