package updateapi

import (
	"io"
	"os"
	"strings"

	"github.com/pkg/errors"
)

// maxBootID bounds a boot ID, in bytes; a UUID has 36.
const maxBootID = 64

// readBootID reads a boot ID from a file of one line.
func readBootID(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", errors.Wrap(err, "read boot id")
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, 4*maxBootID))
	if err != nil {
		return "", errors.Wrap(err, "read boot id")
	}
	return strings.TrimSuffix(string(b), "\n"), nil
}

// checkBootID returns an error for what can't be a boot ID: it is the proof of a reboot.
func checkBootID(id string) error {
	if id == "" {
		return errors.New("boot id is empty")
	}
	if len(id) > maxBootID {
		return errors.Errorf("boot id is longer than %d bytes: %q", maxBootID, printable(id))
	}
	for _, c := range []byte(id) {
		if c <= ' ' || c > '~' {
			return errors.Errorf("boot id is not one printable word: %q", printable(id))
		}
	}
	return nil
}
