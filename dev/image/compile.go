package image

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/image/roots"
)

// The places in the image that the Dockerfile names.
const (
	certificates = "etc/ssl/certs/ca-certificates.crt"
	licences     = "licenses"
)

// commands are the product's, by the path that they have in the image.
var commands = []string{"bottlerocket-update-operator", "bottlerocket-update-agent"}

// Content is what goes into the image, as folders that look like its top folder.
type Content struct {
	// Shared is the same on every platform.
	Shared fs.FS
	// Commands are the commands, compiled.
	Commands map[string]fs.FS
}

// Build is what the commands call themselves: the git tag, and commit and its date, which may be empty.
type Build struct{ Version, Commit, Date string }

// ldflags are the linker's flags for a build. They are all there is of it in a command, so that the same bytes come out
// wherever and whenever it is built.
func (b Build) ldflags() string {
	flags := "-s -w"
	for _, v := range [][2]string{{"Version", b.Version}, {"Commit", b.Commit}, {"Date", b.Date}} {
		flags += " -X github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry." + v[0] + "=" + v[1]
	}
	return flags
}

// Compile makes the content for some platforms, of the checkout at root, in dir, which must be empty and
// stay there for as long as the content is used.
func Compile(ctx context.Context, root, dir string, build Build, platforms []v1.Platform) (Content, error) {
	shared := filepath.Join(dir, "shared")
	if err := share(ctx, root, shared); err != nil {
		return Content{}, err
	}
	c := Content{Shared: os.DirFS(shared), Commands: map[string]fs.FS{}}
	for _, p := range platforms {
		out := filepath.Join(dir, p.OS+"-"+p.Architecture)
		args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags", build.ldflags(), "-o", out + string(filepath.Separator)}
		for _, name := range commands {
			args = append(args, "./cmd/"+name)
		}
		if err := controlplane.GoFor(ctx, root, p.OS, p.Architecture, args...); err != nil {
			return Content{}, errors.WithMessagef(err, "compiling for %s", p)
		}
		c.Commands[p.String()] = os.DirFS(out)
	}
	return c, nil
}

// share makes what is the same on every platform.
func share(ctx context.Context, root, dir string) error {
	file := filepath.Join(dir, filepath.FromSlash(certificates))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return errors.Wrap(err, "making a folder for certificates")
	}
	if err := os.WriteFile(file, roots.PEM(), 0o644); err != nil {
		return errors.Wrap(err, "writing certificates")
	}
	cmd := exec.CommandContext(ctx, "sh", filepath.Join("dev", "licences.sh"), filepath.Join(dir, licences))
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	return errors.Wrapf(cmd.Run(), "collecting licences: %s", bytes.TrimSpace(stderr.Bytes()))
}
