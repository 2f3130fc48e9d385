package image

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"gotest.tools/v3/assert"
)

// open reads an archive as others do: unpacks it, takes the one entry and looks that every digest is right.
func open(t *testing.T, file string) (v1.Descriptor, v1.ImageIndex) {
	t.Helper()
	dir := t.TempDir()
	f, err := os.Open(file)
	assert.NilError(t, err)
	defer f.Close()
	each(t, f, func(h *tar.Header, content io.Reader) {
		to := filepath.Join(dir, h.Name)
		if h.Typeflag == tar.TypeDir {
			assert.NilError(t, os.Mkdir(to, 0o755))
			return
		}
		w, err := os.Create(to)
		assert.NilError(t, err)
		defer w.Close()
		_, err = io.Copy(w, content)
		assert.NilError(t, err)
	})
	top, err := layout.ImageIndexFromPath(dir)
	assert.NilError(t, err)
	assert.NilError(t, validate.Index(top))
	manifest, err := top.IndexManifest()
	assert.NilError(t, err)
	assert.Equal(t, len(manifest.Manifests), 1)
	entry := manifest.Manifests[0]
	assert.Equal(t, entry.MediaType, types.OCIImageIndex)
	index, err := top.ImageIndex(entry.Digest)
	assert.NilError(t, err)
	return entry, index
}

// each goes through a tar, whose entries are root's, in order, and have no time.
func each(t *testing.T, r io.Reader, do func(*tar.Header, io.Reader)) {
	t.Helper()
	for files := tar.NewReader(r); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		assert.NilError(t, err)
		assert.Assert(t, h.ModTime.Equal(epoch), h.Name)
		assert.Equal(t, [2]int{h.Uid, h.Gid}, [2]int{}, h.Name)
		do(h, files)
	}
}

// file is one in an image.
type file struct {
	mode    int64
	content []byte
}

// unpack returns an image's files and folders by their paths, with the slash in front.
func unpack(t *testing.T, image v1.Image) (files map[string]file, folders map[string]bool) {
	t.Helper()
	files, folders = map[string]file{}, map[string]bool{}
	r := mutate.Extract(image)
	defer r.Close()
	each(t, r, func(h *tar.Header, content io.Reader) {
		path := "/" + filepath.Clean(h.Name)
		if h.Typeflag == tar.TypeDir {
			assert.Equal(t, h.Mode, int64(0o755), path)
			folders[path] = true
			return
		}
		assert.Equal(t, h.Typeflag, byte(tar.TypeReg), path)
		b, err := io.ReadAll(content)
		assert.NilError(t, err)
		files[path] = file{mode: h.Mode, content: b}
	})
	return files, folders
}
