package controlplane

import (
	"io"
	"os"
	"testing"
)

// testProgress shows that a test builds while it builds: a test's own log would
// appear only at its end, some ten minutes later, and go test swallows it
// unless the terminal itself is written to.
func testProgress(t testing.TB) io.Writer {
	tty, err := os.OpenFile("/dev/tty", os.O_WRONLY, 0)
	if err != nil {
		return os.Stderr
	}
	t.Cleanup(func() { tty.Close() })
	return tty
}
