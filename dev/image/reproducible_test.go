package image

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"gotest.tools/v3/assert"
)

// planted writes files into a new folder, in the order given, with a mode and a time.
func planted(t *testing.T, mode fs.FileMode, at time.Time, files ...string) fs.FS {
	t.Helper()
	dir := t.TempDir()
	for _, name := range files {
		path := filepath.Join(dir, name)
		assert.NilError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		assert.NilError(t, os.WriteFile(path, []byte("of "+filepath.Base(name)), 0o600))
		assert.NilError(t, os.Chmod(path, mode))
		assert.NilError(t, os.Chtimes(path, at, at))
	}
	return os.DirFS(dir)
}

// Where, when, in which order and with which modes the same content was made leaves no trace.
func TestSameContentSameBytes(t *testing.T) {
	archive := func(called string, c Content) (v1.Hash, string) {
		t.Helper()
		name, err := ParseReference(called)
		assert.NilError(t, err)
		index, err := Index(c)
		assert.NilError(t, err)
		file := filepath.Join(t.TempDir(), "image.tar")
		assert.NilError(t, WriteArchive(file, name, index))
		entry, _ := open(t, file)
		bytes, err := os.ReadFile(file)
		assert.NilError(t, err)
		return entry.Digest, string(bytes)
	}
	first := func() Content {
		return Content{
			Shared: planted(t, 0o644, time.Now(), "a/b", "c"),
			Commands: map[string]fs.FS{
				"linux/amd64": planted(t, 0o755, time.Now(), "one", "two"),
				"linux/arm64": planted(t, 0o755, time.Now(), "three"),
			},
		}
	}
	digest, bytes := archive("operator:test", first())

	again := Content{
		Shared: planted(t, 0o600, time.Unix(1e9, 0), "c", "a/b"),
		Commands: map[string]fs.FS{
			"linux/arm64": planted(t, 0o700, time.Unix(1e9, 0), "three"),
			"linux/amd64": planted(t, 0o400, time.Unix(1e9, 0), "two", "one"),
		},
	}
	sameDigest, sameBytes := archive("operator:test", again)
	assert.Equal(t, digest, sameDigest)
	assert.Assert(t, bytes == sameBytes)

	sameDigest, otherBytes := archive("operator:other", first())
	assert.Equal(t, digest, sameDigest)
	assert.Assert(t, bytes != otherBytes)

	other := first()
	other.Shared = planted(t, 0o644, time.Now(), "a/b", "d")
	otherDigest, _ := archive("operator:test", other)
	assert.Assert(t, digest != otherDigest)
}

func TestOnePlatform(t *testing.T) {
	commands := map[string]fs.FS{"linux/arm64": planted(t, 0o755, time.Now(), "one")}
	index, err := Index(Content{Shared: fstest.MapFS{}, Commands: commands})
	assert.NilError(t, err)
	sizes, err := Sizes(index)
	assert.NilError(t, err)
	assert.Equal(t, len(sizes), 1)
	assert.Equal(t, sizes[0].Platform, "linux/arm64")

	_, err = Index(Content{Shared: fstest.MapFS{}})
	assert.ErrorContains(t, err, "no platform")
	link := fstest.MapFS{"a": {Mode: fs.ModeSymlink, Data: []byte("b")}}
	_, err = Index(Content{Shared: link, Commands: commands})
	assert.ErrorContains(t, err, "neither a folder nor a file")
}
