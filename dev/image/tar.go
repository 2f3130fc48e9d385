package image

import (
	"archive/tar"
	"io"
	"io/fs"
	"time"

	"github.com/pkg/errors"
)

// epoch is the time of everything: no build is newer than another one of the same source.
var epoch = time.Unix(0, 0).UTC()

// writeTar writes all of a folder in the order of its names. Nothing but names and contents is taken from
// the files: they are root's, of one mode and one time.
func writeTar(w io.Writer, folder fs.FS, mode int64) error {
	t := tar.NewWriter(w)
	err := fs.WalkDir(folder, ".", func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == ".":
			return nil
		case e.IsDir():
			return t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: path + "/", Mode: 0o755, ModTime: epoch})
		case !e.Type().IsRegular():
			return errors.Errorf("%s is neither a folder nor a file", path)
		}
		return writeFile(t, folder, path, mode)
	})
	if err != nil {
		return errors.Wrap(err, "writing a tar")
	}
	return errors.Wrap(t.Close(), "writing a tar")
}

func writeFile(t *tar.Writer, folder fs.FS, path string, mode int64) error {
	f, err := folder.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: path, Size: info.Size(), Mode: mode, ModTime: epoch}); err != nil {
		return err
	}
	_, err = io.Copy(t, f)
	return err
}
