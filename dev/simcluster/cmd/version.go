package main

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// isVersion reports whether hosts take a name for a version of the OS.
func isVersion(name string) bool {
	_, err := version.ParseSemantic(name)
	return err == nil && !strings.HasPrefix(name, "v")
}

// following is the next minor version after the highest of those that are released.
func following(released []string) string {
	highest := version.MustParseSemantic("0.0.0")
	for _, name := range released {
		if v, err := version.ParseSemantic(name); err == nil && highest.LessThan(v) {
			highest = v
		}
	}
	return highest.AddMinor(1).WithPatch(0).String()
}
