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
	// LicencesDir holds the licences of all that the image is made of, by module.
	LicencesDir = "licenses"
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

// Compile compiles packages of the checkout at root for a platform into the folder out.
func (b Build) Compile(ctx context.Context, root string, p v1.Platform, out string, packages ...string) error {
	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags", b.ldflags(), "-o", out + string(filepath.Separator)}
	err := controlplane.GoFor(ctx, root, p.OS, p.Architecture, append(args, packages...)...)
	return errors.WithMessagef(err, "compiling for %s", p)
}

// Compile makes the content for some platforms, of the checkout at root, in dir, which must be empty and
// stay there for as long as the content is used.
func Compile(ctx context.Context, root, dir string, build Build, platforms []v1.Platform) (Content, error) {
	shared := filepath.Join(dir, "shared")
	if err := share(ctx, root, shared); err != nil {
		return Content{}, err
	}
	var packages []string
	for _, name := range commands {
		packages = append(packages, "./cmd/"+name)
	}
	c := Content{Shared: os.DirFS(shared), Commands: map[string]fs.FS{}}
	for _, p := range platforms {
		out := filepath.Join(dir, p.OS+"-"+p.Architecture)
		if err := build.Compile(ctx, root, p, out, packages...); err != nil {
			return Content{}, err
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
	return CollectLicences(ctx, root, filepath.Join(dir, LicencesDir))
}

// CollectLicences copies the licences of what packages of the checkout at root link on any platform to dir; of the image, if
// there is none.
func CollectLicences(ctx context.Context, root, dir string, packages ...string) error {
	cmd := exec.CommandContext(ctx, "sh", append([]string{filepath.Join("dev", "licences.sh"), dir}, packages...)...)
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	return errors.Wrapf(cmd.Run(), "collecting licences: %s", bytes.TrimSpace(stderr.Bytes()))
}
