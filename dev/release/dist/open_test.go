package dist

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"gotest.tools/v3/assert"
)

// untar unpacks an OCI archive into a folder.
func untar(t *testing.T, archive string) string {
	t.Helper()
	dir := t.TempDir()
	f, err := os.Open(archive)
	assert.NilError(t, err)
	defer f.Close()
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		assert.NilError(t, err)
		to := filepath.Join(dir, h.Name)
		if h.Typeflag == tar.TypeDir {
			assert.NilError(t, os.Mkdir(to, 0o755))
			continue
		}
		content, err := io.ReadAll(r)
		assert.NilError(t, err)
		assert.NilError(t, os.WriteFile(to, content, 0o600))
	}
}
