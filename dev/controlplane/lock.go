package controlplane

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/pkg/errors"
)

// lockPoll is how often a lock that another process holds is tried again.
const lockPoll = 100 * time.Millisecond

// TryLock takes the lock of a file, made if needed. It returns nil if another
// process holds it. The lock ends with close or with the process.
func TryLock(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, errors.Wrap(err, "making a folder for a lock")
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, errors.Wrap(err, "opening a lock file")
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return f, nil
	}
	f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, nil
	}
	return nil, errors.Wrapf(err, "locking %q", path)
}

// lock waits for a lock; waiting is called once if that takes a while.
func lock(ctx context.Context, path string, waiting func()) (*os.File, error) {
	for tries := 0; ; tries++ {
		f, err := TryLock(path)
		if f != nil || err != nil {
			return f, err
		}
		if tries == 1 && waiting != nil {
			waiting()
		}
		select {
		case <-ctx.Done():
			return nil, errors.Wrapf(ctx.Err(), "waiting for the lock %q", path)
		case <-time.After(lockPoll):
		}
	}
}
