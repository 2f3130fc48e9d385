package architecture

import (
	"bytes"
	"encoding/json"
	"io"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pkg/errors"
)

// Package is what `go list` says of one, as far as it matters here.
type Package struct {
	ImportPath string
	Name       string
	Dir        string
	// Doc is the first sentence of the package comment.
	Doc string
	// GoFiles are compiled here, IgnoredGoFiles elsewhere; then come those of tests.
	GoFiles, CgoFiles, IgnoredGoFiles, TestGoFiles, XTestGoFiles []string
	Imports, TestImports, XTestImports                           []string
	// Deps is all that it links.
	Deps []string
}

// List asks the go command for all packages of the module in root.
func List(root string) ([]Package, error) {
	cmd := exec.Command("go", "list", "-e",
		"-json=ImportPath,Name,Dir,Doc,GoFiles,CgoFiles,IgnoredGoFiles,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports,Deps", "./...")
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, errors.Wrapf(err, "go list: %s", strings.TrimSpace(stderr.String()))
	}
	var all []Package
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p Package
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, errors.Wrap(err, "reading the answer of go list")
		}
		all = append(all, p)
	}
}

// Pure returns the folders of the packages that decide, and get all they know as values.
func Pure(all []Package) []string {
	var folders []string
	for _, p := range all {
		if isPure(p) {
			folders = append(folders, p.Folder())
		}
	}
	return folders
}

// Folder is the package's place in the module, like pkg/marker.
func (p Package) Folder() string { return inModule(p.ImportPath) }

// inModule is the place of an import path in the module; empty for another module's.
func inModule(importPath string) string {
	rest, ok := strings.CutPrefix(importPath, Module+"/")
	if !ok {
		return ""
	}
	return rest
}

// under reports whether folder is top or inside of it; it works for import paths too.
func under(folder, top string) bool { return folder == top || strings.HasPrefix(folder, top+"/") }

func (p Package) testImports() []string {
	return append(slices.Clone(p.TestImports), p.XTestImports...)
}

// sources are all its files that aren't tests, for every platform.
func (p Package) sources() []string {
	var out []string
	for _, f := range slices.Concat(p.GoFiles, p.CgoFiles, p.IgnoredGoFiles) {
		if !strings.HasSuffix(f, "_test.go") {
			out = append(out, filepath.Join(p.Dir, f))
		}
	}
	return out
}

func (p Package) files() []string {
	return slices.Concat(p.GoFiles, p.CgoFiles, p.IgnoredGoFiles, p.TestGoFiles, p.XTestGoFiles)
}

// placed finds the closest folder above that is placed.
func placed(folder string) (place, bool) {
	for f := folder; f != "."; f = path.Dir(f) {
		if p, ok := places[f]; ok {
			return p, true
		}
	}
	return place{}, false
}
