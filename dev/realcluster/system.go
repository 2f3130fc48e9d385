package realcluster

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/image"
)

// System is an image that stands in for a public one, which can't be pulled: a small system of programs that this
// machine has.
type System struct {
	// Name is the public image's.
	Name string
	// Programs are names of programs of this machine. They are in /bin of the image, with the libraries that they need.
	Programs []string
	// Files are files of this machine by where they are in the image.
	Files map[string]string
	// Entrypoint is what runs where a pod has no command.
	Entrypoint []string
}

// LoadSystem makes the image and imports it on a node.
func (n *Node) LoadSystem(ctx context.Context, s System) error {
	called, err := image.ParseReference(s.Name)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp(n.cluster.Plane.Dir(), "system-")
	if err != nil {
		return errors.Wrap(err, "making a folder for an image")
	}
	defer os.RemoveAll(folder)
	files := map[string]string{}
	for _, name := range s.Programs {
		path, err := exec.LookPath(name)
		if err != nil {
			return errors.Wrapf(err, "looking for %s", name)
		}
		files["bin/"+name] = path
		if err := libraries(ctx, path, files); err != nil {
			return err
		}
	}
	for to, from := range s.Files {
		files[to] = from
	}
	for to, from := range files {
		if err := copyFile(from, filepath.Join(folder, to)); err != nil {
			return err
		}
	}
	index, err := image.System(os.DirFS(folder), s.Entrypoint...)
	if err != nil {
		return errors.WithMessagef(err, "making image %s", s.Name)
	}
	archive := folder + ".tar"
	if err := image.WriteArchive(archive, called, index); err != nil {
		return err
	}
	defer os.Remove(archive)
	return n.Load(ctx, archive)
}

// libraries adds those that a program needs, where its loader looks for them.
func libraries(ctx context.Context, program string, files map[string]string) error {
	out, err := exec.CommandContext(ctx, "ldd", program).Output()
	if err != nil {
		return errors.Wrapf(err, "listing the libraries of %s", program)
	}
	// name => /path (address), or /path (address)
	for line := range strings.Lines(string(out)) {
		for _, word := range strings.Fields(line) {
			if filepath.IsAbs(word) {
				files[word] = word
			}
		}
	}
	return nil
}

// copyFile copies what a path leads to, with its folders.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return errors.Wrap(err, "copying a file")
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return errors.Wrap(err, "copying a file")
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return errors.Wrap(err, "copying a file")
	}
	if _, err := io.Copy(out, in); err != nil {
		_ = out.Close()
		return errors.Wrapf(err, "copying %s", from)
	}
	return errors.Wrapf(out.Close(), "copying %s", from)
}
