package image

import (
	"testing"

	"gotest.tools/v3/assert"
)

func TestParseReference(t *testing.T) {
	for in, want := range map[string]string{
		"operator":                         "docker.io/library/operator:latest",
		"operator:dev":                     "docker.io/library/operator:dev",
		"someone/operator:dev":             "docker.io/someone/operator:dev",
		"docker.io/library/operator:dev":   "docker.io/library/operator:dev",
		"localhost:5000/operator:v1":       "localhost:5000/operator:v1",
		"public.ecr.aws/b/operator:v2.0.0": "public.ecr.aws/b/operator:v2.0.0",
	} {
		got, err := ParseReference(in)
		assert.NilError(t, err)
		assert.Equal(t, got.String(), want)
	}
	for _, in := range []string{"", "Operator", "operator:", "operator:a b", "operator@sha256:00"} {
		_, err := ParseReference(in)
		assert.ErrorContains(t, err, "reading the image's name", in)
	}
}
