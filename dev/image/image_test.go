package image

import (
	"bytes"
	"context"
	"crypto/x509"
	"debug/buildinfo"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
)

const limit = 32 << 20

var machines = map[string]elf.Machine{"linux/amd64": elf.EM_X86_64, "linux/arm64": elf.EM_AARCH64}

// The real image, from the archive, for both platforms.
func TestImage(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles both commands for two platforms")
	}
	root, err := controlplane.Root()
	assert.NilError(t, err)
	content, err := Compile(context.Background(), root, t.TempDir(), Build{"v0.0.0-test", "0123456789ab", "2026-11-23T10:00:00Z"}, Platforms)
	assert.NilError(t, err)
	made, err := Index(content)
	assert.NilError(t, err)
	called, err := ParseReference("operator:test")
	assert.NilError(t, err)
	archive := filepath.Join(t.TempDir(), "new", "image.tar")
	assert.NilError(t, WriteArchive(archive, called, made))

	entry, index := open(t, archive)
	assert.DeepEqual(t, entry.Annotations, map[string]string{annotationName: "docker.io/library/operator:test", annotationTag: "test"})
	digest, err := made.Digest()
	assert.NilError(t, err)
	assert.Equal(t, entry.Digest, digest)
	sizes, err := Sizes(index)
	assert.NilError(t, err)
	assert.Equal(t, len(sizes), len(Platforms))
	manifest, err := index.IndexManifest()
	assert.NilError(t, err)
	for i, p := range Platforms {
		t.Run(p.Architecture, func(t *testing.T) {
			assert.Assert(t, manifest.Manifests[i].Platform.Equals(p))
			assert.Equal(t, sizes[i].Platform, p.String())
			assert.Assert(t, sizes[i].Bytes > limit/8 && sizes[i].Bytes <= limit, "%d bytes", sizes[i].Bytes)
			image, err := index.Image(manifest.Manifests[i].Digest)
			assert.NilError(t, err)
			checkImage(t, p, image)
		})
	}
}

func checkImage(t *testing.T, p v1.Platform, image v1.Image) {
	docker := readDockerfile(t)
	assert.Equal(t, len(docker.others), 0, "%q", docker.others)
	config, err := image.ConfigFile()
	assert.NilError(t, err)
	assert.Assert(t, config.Platform().Equals(p))
	assert.Equal(t, config.Config.User, docker.user)
	assert.DeepEqual(t, config.Config.Entrypoint, docker.entrypoint)

	files, folders := unpack(t, image)
	checkPlaces(t, docker.places, files, folders)

	assert.Assert(t, x509.NewCertPool().AppendCertsFromPEM(files["/"+certificates].content))
	assert.Assert(t, bytes.Count(files["/"+certificates].content, []byte("BEGIN CERTIFICATE")) > 100)

	linked := map[string]bool{"golang.org/x/crypto/x509roots/fallback": true, "std": true}
	for _, name := range commands {
		binary := files["/"+name]
		assert.Equal(t, binary.mode, int64(0o755))
		checkStatic(t, p, binary.content)
		info, err := buildinfo.Read(bytes.NewReader(binary.content))
		assert.NilError(t, err)
		for _, m := range info.Deps {
			linked[m.Path] = true
		}
		if runtime.GOOS == p.OS && runtime.GOARCH == p.Architecture {
			program := filepath.Join(t.TempDir(), name)
			assert.NilError(t, os.WriteFile(program, binary.content, 0o700))
			said, err := exec.Command(program, "-version").Output()
			assert.NilError(t, err)
			assert.Equal(t, string(said), name+" v0.0.0-test (commit 0123456789ab, 2026-11-23T10:00:00Z)\n")
		}
	}
	assert.Assert(t, len(linked) > 10)
	licensed := map[string]bool{}
	for path := range files {
		if rest, ok := strings.CutPrefix(path, "/"+LicencesDir+"/"); ok {
			licensed[filepath.Dir(rest)] = true
		}
	}
	assert.Assert(t, licensed["."], "the operator's own licence")
	for module := range linked {
		assert.Check(t, licensed[module], "%s is without a licence", module)
	}
}

// Everything that the Dockerfile copies is there, and nothing else.
func checkPlaces(t *testing.T, places []string, files map[string]file, folders map[string]bool) {
	t.Helper()
	assert.Assert(t, len(places) > 3, places)
	for _, place := range places {
		_, ok := files[place]
		assert.Check(t, ok || folders[place], "%s is missing", place)
	}
	within := func(path string) bool {
		return slices.ContainsFunc(places, func(place string) bool {
			return path == place || folders[place] && strings.HasPrefix(path, place+"/")
		})
	}
	for path := range files {
		assert.Check(t, within(path), "%s is not in the Dockerfile", path)
		// An unpacker may give a folder that isn't there any mode.
		for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
			assert.Check(t, folders[dir], "%s has no folder %s", path, dir)
		}
	}
}

// checkStatic looks that a program is for the platform and asks for no library and no loader.
func checkStatic(t *testing.T, p v1.Platform, program []byte) {
	t.Helper()
	e, err := elf.NewFile(bytes.NewReader(program))
	assert.NilError(t, err)
	assert.Equal(t, e.Machine, machines[p.String()])
	for _, part := range e.Progs {
		assert.Assert(t, part.Type != elf.PT_INTERP && part.Type != elf.PT_DYNAMIC)
	}
	libraries, err := e.ImportedLibraries()
	assert.NilError(t, err)
	assert.Equal(t, len(libraries), 0)
}
