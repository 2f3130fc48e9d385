package controlplane

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/pkg/errors"
)

// A stamp beside each cached program says what it was built from: version,
// pins, flags and Go release. A program with another stamp is built again.

// pins is a fingerprint of a module: of its go.mod and go.sum, and of its own source if it has any.
func pins(dir string) (string, error) {
	sources, err := filepath.Glob(filepath.Join(dir, "*", "*.go"))
	if err != nil {
		return "", errors.Wrap(err, "listing sources")
	}
	h := sha256.New()
	for _, path := range append([]string{filepath.Join(dir, "go.mod"), filepath.Join(dir, "go.sum")}, sources...) {
		b, err := os.ReadFile(path)
		if err != nil {
			return "", errors.Wrap(err, "reading what programs are built from")
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return "", errors.Wrap(err, "naming a source")
		}
		fmt.Fprintf(h, "%s %d\n%s", name, len(b), b)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// stamp is what the program's stamp file must hold.
func (p program) stamp(version, pins string) (string, error) {
	flags, err := p.ldflags(version)
	if err != nil {
		return "", err
	}
	release, _, _ := strings.Cut(runtime.Version(), " ")
	if p.tags != "" {
		flags += " -tags " + p.tags
	}
	return strings.Join([]string{p.pkg, version, pins, flags, release, runtime.GOOS + "/" + runtime.GOARCH}, "\n") + "\n", nil
}

// fresh tells whether the program in dir exists with that stamp.
func (p program) fresh(dir, stamp string) bool {
	got, err := os.ReadFile(filepath.Join(dir, p.name+".stamp"))
	if err != nil || string(got) != stamp {
		return false
	}
	info, err := os.Stat(filepath.Join(dir, p.name))
	return err == nil && info.Mode().IsRegular()
}

// install puts a freshly built file into its place. The stamp is taken away
// first and written last, so that it never speaks for another build.
func (p program) install(built, dir, stamp string) error {
	path := filepath.Join(dir, p.name)
	if err := os.Remove(path + ".stamp"); err != nil && !os.IsNotExist(err) {
		return errors.Wrapf(err, "installing %s", p.name)
	}
	if err := os.Rename(built, path); err != nil {
		return errors.Wrapf(err, "installing %s", p.name)
	}
	temp := built + ".stamp"
	if err := os.WriteFile(temp, []byte(stamp), 0o600); err != nil {
		return errors.Wrapf(err, "installing %s", p.name)
	}
	return errors.Wrapf(os.Rename(temp, path+".stamp"), "installing %s", p.name)
}
