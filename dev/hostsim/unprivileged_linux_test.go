package hostsim

import (
	"os"
	"runtime"
	"syscall"
	"testing"

	"gotest.tools/v3/assert"
)

// nobody is the id of the user without rights.
const nobody = 65534

// unprivileged calls do as a user that file modes can stop. Root becomes nobody for it, and path
// becomes nobody's: a file system user other than root has no right to override modes.
func unprivileged(t *testing.T, path string, do func() error) error {
	t.Helper()
	if os.Geteuid() != 0 {
		return do()
	}
	assert.NilError(t, os.Chown(path, nobody, -1))
	// That user belongs to one thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	assert.NilError(t, syscall.Setfsuid(nobody))
	defer func() { assert.NilError(t, syscall.Setfsuid(0)) }()
	return do()
}
