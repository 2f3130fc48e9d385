package dist

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"testing"
	"testing/fstest"
	"time"

	"gotest.tools/v3/assert"
)

var committed = time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)

// unpacked are the files of an archive, which must all be of one time.
func unpacked(t *testing.T, archive []byte, at time.Time) map[string]entry {
	t.Helper()
	out := map[string]entry{}
	if z, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive))); err == nil {
		for _, f := range z.File {
			assert.Assert(t, f.Modified.Equal(at), f.Name)
			r, err := f.Open()
			assert.NilError(t, err)
			content, err := io.ReadAll(r)
			assert.NilError(t, err)
			out[f.Name] = entry{f.Name, f.Mode(), content}
		}
		return out
	}
	z, err := gzip.NewReader(bytes.NewReader(archive))
	assert.NilError(t, err)
	assert.Assert(t, z.ModTime.IsZero() && z.Name == "")
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		assert.NilError(t, err)
		assert.Assert(t, h.ModTime.Equal(at), h.Name)
		assert.Equal(t, h.Uid+h.Gid+len(h.Uname)+len(h.Gname), 0, h.Name)
		content, err := io.ReadAll(r)
		assert.NilError(t, err)
		out[h.Name] = entry{h.Name, h.FileInfo().Mode(), content}
	}
}

// The same files give the same bytes, in whichever order they are found and with whichever modes and times (issue 19,
// part 3: reproducible).
func TestArchivesAreReproducible(t *testing.T) {
	files := fstest.MapFS{"b": {Data: []byte("of b"), Mode: 0o600, ModTime: time.Now()}, "a/c": {Data: []byte("of c")}}
	entries, err := entriesOf(files, "folder", modeFile)
	assert.NilError(t, err)
	entries = append(entries, entry{"a program", modeProgram, []byte("code")})
	backwards := []entry{entries[2], entries[1], entries[0]}
	for _, pack := range []func(time.Time, []entry) ([]byte, error){tarGz, zipped} {
		first, err := pack(committed, entries)
		assert.NilError(t, err)
		second, err := pack(committed.In(time.FixedZone("elsewhere", 3600)), backwards)
		assert.NilError(t, err)
		assert.Assert(t, bytes.Equal(first, second))
		assert.Equal(t, backwards[0].name, "a program", "the caller's order is the caller's")
		got := unpacked(t, first, committed)
		assert.Equal(t, len(got), 3)
		for _, e := range entries {
			assert.Equal(t, got[e.name].mode, e.mode, e.name)
			assert.Equal(t, string(got[e.name].content), string(e.content))
		}
	}
}

// The checksums are what sha256sum -c reads, without their own file.
func TestSums(t *testing.T) {
	got, err := sums(fstest.MapFS{"b": {Data: []byte("x")}, "a": {}, sumsFile: {Data: []byte("old")}})
	assert.NilError(t, err)
	assert.Equal(t, got, `e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  a
2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881  b
`)
}
