package controlplane

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"

	"github.com/pkg/errors"
)

// modulePath is the first line of the go.mod in the repository's root.
const modulePath = "github.com/bottlerocket-os/bottlerocket-update-operator"

// Root finds the top folder of this repository's checkout: from the place that
// this file was compiled at or, if that says nothing (-trimpath), upwards from
// the working folder.
func Root() (string, error) {
	if _, file, _, ok := runtime.Caller(0); ok && filepath.IsAbs(file) {
		if root, ok := rootAbove(filepath.Dir(file)); ok {
			return root, nil
		}
	}
	wd, err := os.Getwd()
	if err != nil {
		return "", errors.Wrap(err, "finding the working folder")
	}
	if root, ok := rootAbove(wd); ok {
		return root, nil
	}
	return "", errors.Errorf("%q is not inside a checkout of %s", wd, modulePath)
}

func rootAbove(dir string) (string, bool) {
	for {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(mod, []byte("module "+modulePath+"\n")) {
			return dir, true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", false
		}
		dir = parent
	}
}
