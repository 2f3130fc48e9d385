package dist

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/pkg/errors"
)

const (
	modeFile    = 0o644
	modeProgram = 0o755
)

// entry is a file in an archive.
type entry struct {
	name    string
	mode    fs.FileMode
	content []byte
}

// entriesOf reads all files of a folder, to lie under a prefix. Nothing but names and contents is taken from them.
func entriesOf(folder fs.FS, prefix string, mode fs.FileMode) ([]entry, error) {
	var out []entry
	err := fs.WalkDir(folder, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := fs.ReadFile(folder, name)
		out = append(out, entry{path.Join(prefix, name), mode, content})
		return err
	})
	return out, errors.Wrapf(err, "reading what is to be %s", cmp.Or(prefix, "packed"))
}

func sorted(entries []entry) []entry {
	return slices.SortedFunc(slices.Values(entries), func(a, b entry) int { return cmp.Compare(a.name, b.name) })
}

// tarGz packs files, all of one time.
func tarGz(at time.Time, entries []entry) ([]byte, error) {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	t := tar.NewWriter(z)
	for _, e := range sorted(entries) {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Mode: int64(e.mode), Size: int64(len(e.content)), ModTime: at}
		if err := t.WriteHeader(h); err != nil {
			return nil, errors.Wrapf(err, "packing %s", e.name)
		}
		if _, err := t.Write(e.content); err != nil {
			return nil, errors.Wrapf(err, "packing %s", e.name)
		}
	}
	if err := t.Close(); err != nil {
		return nil, errors.Wrap(err, "packing")
	}
	// What is in the buffer then is all.
	err := z.Close()
	return out.Bytes(), errors.Wrap(err, "packing")
}

// zipped is tarGz for Windows.
func zipped(at time.Time, entries []entry) ([]byte, error) {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, e := range sorted(entries) {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: at.UTC()}
		h.SetMode(e.mode)
		w, err := z.CreateHeader(h)
		if err != nil {
			return nil, errors.Wrapf(err, "packing %s", e.name)
		}
		if _, err := w.Write(e.content); err != nil {
			return nil, errors.Wrapf(err, "packing %s", e.name)
		}
	}
	// What is in the buffer then is all.
	err := z.Close()
	return out.Bytes(), errors.Wrap(err, "packing")
}
