package controlplane

import (
	"context"
	"os"
	"path/filepath"

	"github.com/pkg/errors"
)

// runDir is the folder of one running control plane. Its lock is held as long
// as the program that made it lives: a folder whose lock can be taken was left
// behind by a killed program.
type runDir struct {
	path string
	held *os.File
}

// newRunDir makes a folder in the cache, and clears away what killed programs
// left there.
func newRunDir(ctx context.Context) (*runDir, error) {
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	base := filepath.Join(cache, "run")
	// One at a time, so that a folder that is new and not yet locked isn't
	// taken for an old one.
	all, err := lock(ctx, filepath.Join(cache, "run.lock"), nil)
	if err != nil {
		return nil, err
	}
	defer all.Close()
	if err := os.MkdirAll(base, 0o700); err != nil {
		return nil, errors.Wrap(err, "making the folder of running clusters")
	}
	sweep(base)
	path, err := os.MkdirTemp(base, "")
	if err != nil {
		return nil, errors.Wrap(err, "making the folder of a cluster")
	}
	held, err := TryLock(filepath.Join(path, "lock"))
	if err != nil {
		return nil, err
	}
	return &runDir{path: path, held: held}, nil
}

func (d *runDir) remove() error {
	err := os.RemoveAll(d.path)
	d.held.Close()
	return errors.Wrap(err, "removing the folder of a cluster")
}

// sweep removes the folders whose owner is gone.
func sweep(base string) {
	entries, _ := os.ReadDir(base)
	for _, e := range entries {
		path := filepath.Join(base, e.Name())
		held, err := TryLock(filepath.Join(path, "lock"))
		if err != nil || held == nil {
			continue
		}
		_ = os.RemoveAll(path)
		held.Close()
	}
}
