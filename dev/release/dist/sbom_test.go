package dist

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx"
	"github.com/spdx/tools-golang/spdxlib"
	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/image"
)

var build = image.Build{Version: "v2.1.0", Commit: "0123456789ab", Date: "2026-11-23T10:00:00Z"}

// valid reads a document as others do, and checks what SPDX 2.3 asks of it.
func valid(t *testing.T, content []byte) (packages map[string]*spdx.Package, related map[string]bool) {
	t.Helper()
	d, err := spdxjson.Read(bytes.NewReader(content))
	assert.NilError(t, err)
	assert.NilError(t, spdxlib.ValidateDocument(d))
	assert.Equal(t, d.SPDXVersion, "SPDX-2.3")
	assert.Equal(t, d.DataLicense, "CC0-1.0")
	names, id := map[spdx.ElementID]string{"DOCUMENT": "document"}, regexp.MustCompile(`^[A-Za-z0-9.-]+$`)
	packages, related = map[string]*spdx.Package{}, map[string]bool{}
	for _, p := range d.Packages {
		twice := names[p.PackageSPDXIdentifier] != "" || packages[p.PackageName] != nil
		assert.Assert(t, !twice, "%s is there twice", p.PackageName)
		assert.Assert(t, id.MatchString(string(p.PackageSPDXIdentifier)), p.PackageSPDXIdentifier)
		assert.Assert(t, p.PackageVersion != "" && p.PackageDownloadLocation != "" && !p.FilesAnalyzed, p.PackageName)
		assert.Assert(t, p.PackageLicenseConcluded != "" && p.PackageLicenseConcluded != "NOASSERTION", p.PackageName)
		names[p.PackageSPDXIdentifier], packages[p.PackageName] = p.PackageName, p
	}
	for _, r := range d.Relationships {
		related[names[r.RefA.ElementRefID]+" "+r.Relationship+" "+names[r.RefB.ElementRefID]] = true
	}
	return packages, related
}

// The bill of materials says of each part what it holds and links, with checksums and licences, and is the same each
// time (issue 19, part 3).
func TestDocument(t *testing.T) {
	root, err := controlplane.Root()
	assert.NilError(t, err)
	mit, err := os.ReadFile(filepath.Join(root, "LICENSE-MIT"))
	assert.NilError(t, err)
	apache, err := os.ReadFile(filepath.Join(root, "LICENSE-APACHE"))
	assert.NilError(t, err)
	licences := fstest.MapFS{
		"std/LICENSE":                  {Data: mit},
		"example.org/M/LICENSE":        {Data: mit},
		"example.org/M/NOTICE":         {Data: []byte("by me")},
		"example.org/M/forked/LICENSE": {Data: apache},
		"example.org/M/n/COPYING":      {Data: apache},
	}
	std := debug.Module{Path: stdlib, Version: "1.26.8"}
	m := debug.Module{Path: "example.org/M", Version: "v1.0.0", Sum: "h1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="}
	n := debug.Module{Path: "example.org/M/n", Version: "v0.1.0"}
	one := part{name: "one linux/amd64", purpose: purposeApplication, sha256: strings.Repeat("1", 64),
		locator: "pkg:golang/example.org/x@v2.1.0#cmd/one", links: []debug.Module{std, m, n}}
	parts := []part{
		{name: "one.tar.gz", purpose: purposeArchive, sha256: strings.Repeat("2", 64), holds: []part{one}},
		{name: "image.tar", purpose: purposeContainer, holds: []part{one}},
	}
	made := func() []byte {
		d, err := document(build, committed, parts, licences)
		assert.NilError(t, err)
		content, err := encodeDocument(d)
		assert.NilError(t, err)
		return content
	}
	content := made()
	assert.Assert(t, bytes.Equal(content, made()))
	assert.Assert(t, bytes.Contains(content, []byte(`"created": "2026-11-23T10:00:00Z"`)))
	packages, related := valid(t, content)
	assert.DeepEqual(t, slices.Sorted(maps.Keys(related)), []string{
		"document DESCRIBES image.tar", "document DESCRIBES one.tar.gz",
		"image.tar CONTAINS one linux/amd64",
		"one linux/amd64 DEPENDS_ON example.org/M", "one linux/amd64 DEPENDS_ON example.org/M/n", "one linux/amd64 DEPENDS_ON stdlib",
		"one.tar.gz CONTAINS one linux/amd64",
	})
	p := packages["example.org/M"]
	assert.Equal(t, p.PackageLicenseConcluded, "Apache-2.0 AND MIT", "of all its folders, but for other modules'")
	assert.Equal(t, p.PackageChecksums[0].Value, "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f")
	assert.Equal(t, p.PackageExternalReferences[0].Locator, "pkg:golang/example.org/m@v1.0.0")
	assert.Equal(t, packages["example.org/M/n"].PackageLicenseConcluded, "Apache-2.0")
	assert.Equal(t, packages["one linux/amd64"].PackageLicenseDeclared, "Apache-2.0 OR MIT")

	for file, text := range map[string]string{"example.org/M/LICENSE": "All rights reserved.", "std/LICENSE": ""} {
		unknown := maps.Clone(licences)
		unknown[file] = &fstest.MapFile{Data: []byte(text)}
		_, err = document(build, committed, parts, unknown)
		assert.ErrorContains(t, err, file+" is no licence that is known")
	}
}

// A program tells all that is linked, with checksums, and which Go made it: here krew, as it is at hand.
func TestProgram(t *testing.T) {
	file, err := exec.Command("go", "tool", "-n", "krew").Output()
	assert.NilError(t, err)
	content, err := os.ReadFile(strings.TrimSpace(string(file)))
	assert.NilError(t, err)
	p, err := program("krew", "linux/amd64", "v2.1.0", content)
	assert.NilError(t, err)
	assert.Equal(t, p.sha256, sha256Of(content))
	assert.Equal(t, p.links[0], debug.Module{Path: stdlib, Version: strings.TrimPrefix(runtime.Version(), "go")})
	assert.Assert(t, slices.ContainsFunc(p.links, func(m debug.Module) bool {
		return m.Path == "github.com/pkg/errors" && m.Version == "v0.9.1" && strings.HasPrefix(m.Sum, "h1:")
	}), p.links)

	_, err = program("test", "linux/amd64", "v2.1.0", []byte("no program"))
	assert.ErrorContains(t, err, "reading what test for linux/amd64 links")
}

// `make image` and `make dist` make the same image only if both modules have the same certificates in it.
func TestSameCertificates(t *testing.T) {
	root, err := controlplane.Root()
	assert.NilError(t, err)
	version := func(file string) string {
		content, err := os.ReadFile(filepath.Join(root, file))
		assert.NilError(t, err)
		_, rest, found := strings.Cut(string(content), "\t"+roots+" ")
		assert.Assert(t, found, file)
		return strings.Fields(rest)[0]
	}
	assert.Equal(t, version("dev/release/go.mod"), version("go.mod"))
}
