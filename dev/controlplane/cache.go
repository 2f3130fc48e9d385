package controlplane

import (
	"os"
	"path/filepath"

	"github.com/pkg/errors"
)

// CacheDir is the folder that holds everything this package leaves on a
// machine.
func CacheDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", errors.Wrap(err, "finding the cache folder")
	}
	return filepath.Join(base, "bottlerocket-update-operator"), nil
}
