package process

import (
	"os"

	"github.com/pkg/errors"
)

// Log opens a file that a child's output is appended to.
func Log(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	return f, errors.Wrap(err, "opening a log file")
}

// LogTail returns at most the last n bytes of a log file, empty if it can't be
// read.
func LogTail(path string, n int64) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	n = min(n, info.Size())
	buf := make([]byte, n)
	read, _ := f.ReadAt(buf, info.Size()-n)
	return string(buf[:read])
}
