package dist

import (
	"bytes"
	"debug/buildinfo"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/release/chart"
)

var full = flag.Bool("full", false, "TestDist and TestSign run, for some minutes")

// run runs a command, which must succeed, and returns what it says.
func run(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	// make would take its own caller's variables, and a caller's VERSION, for this one.
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, env...)
	said, err := cmd.CombinedOutput()
	assert.NilError(t, err, "%s %s: %s", name, strings.Join(args, " "), said)
	return string(said)
}

// goEnv are where Go keeps modules and what it compiled, and how it gets modules.
func goEnv(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, name := range []string{"GOMODCACHE", "GOCACHE", "GOPROXY", "GOSUMDB", "GOTOOLCHAIN"} {
		value, err := exec.Command("go", "env", name).Output()
		assert.NilError(t, err)
		out = append(out, name+"="+strings.TrimSpace(string(value)))
	}
	return out
}

// tag is the next release's.
func tag(t *testing.T) string {
	t.Helper()
	c, err := chart.Load()
	assert.NilError(t, err)
	return c.Metadata.AppVersion
}

// cloned makes the release of the checkout's commit in a new clone, and returns its folder.
func cloned(t *testing.T, name, umask string, env ...string) string {
	t.Helper()
	root, err := controlplane.Root()
	assert.NilError(t, err)
	dir := filepath.Join(t.TempDir(), name)
	run(t, "", nil, "git", "clone", "--quiet", "--no-hardlinks", root, dir)
	run(t, dir, nil, "git", "tag", "--force", tag(t))
	run(t, dir, append(goEnv(t), env...), "sh", "-c", "umask "+umask+" && make dist")
	return filepath.Join(dir, "dist")
}

// The same commit gives the same bytes in another folder, with another umask and in another time zone, with nothing
// compiled before unless -short; and what comes out is whole (issue 19, part 3).
func TestDist(t *testing.T) {
	if !*full {
		t.Skip("it makes a release twice: -args -full")
	}
	first := cloned(t, "one", "022", "TZ=UTC")
	elsewhere := []string{"TZ=Asia/Tokyo", "LC_ALL=C"}
	if !testing.Short() {
		elsewhere = append(elsewhere, "GOCACHE="+t.TempDir())
	}
	second := cloned(t, "another", "077", elsewhere...)
	want, err := os.ReadFile(filepath.Join(first, sumsFile))
	assert.NilError(t, err)
	got, err := os.ReadFile(filepath.Join(second, sumsFile))
	assert.NilError(t, err)
	assert.Equal(t, string(got), string(want))
	run(t, first, nil, "sha256sum", "--check", "--strict", sumsFile)
	run(t, second, nil, "sha256sum", "--check", "--strict", sumsFile)
	t.Logf("the same twice:\n%s", want)

	files, err := os.ReadDir(first)
	assert.NilError(t, err)
	assert.Equal(t, bytes.Count(want, []byte("\n")), len(files)-1)
	page, err := os.ReadFile(filepath.Join(filepath.Dir(first), "docs", "releasing.md"))
	assert.NilError(t, err)
	for _, f := range files {
		name := regexp.MustCompile(`-(linux|darwin|windows)-(amd64|arm64)\.`).ReplaceAllString(f.Name(), "-OS-ARCH.")
		name = "`" + strings.ReplaceAll(name, chartVersion(tag(t)), "VERSION") + "`"
		assert.Check(t, bytes.Contains(page, []byte(name)), "docs/releasing.md doesn't say what %s is", name)
	}
	checkImage(t, first)
	checkPrograms(t, first)
}

// checkImage looks that the manifest names the image that is there.
func checkImage(t *testing.T, release string) {
	top, err := layout.ImageIndexFromPath(untar(t, filepath.Join(release, "image.tar")))
	assert.NilError(t, err)
	index, err := top.IndexManifest()
	assert.NilError(t, err)
	for _, file := range []string{"update-operator.yaml", "plans.yaml"} {
		text, err := os.ReadFile(filepath.Join(release, file))
		assert.NilError(t, err)
		assert.Assert(t, len(images(string(text))) > 0)
		for _, image := range images(string(text)) {
			assert.Equal(t, image, operator+"@"+index.Manifests[0].Digest.String())
		}
	}
}

// checkPrograms looks that each program says its version, and that all that it links is in the bill of materials and
// has its licence in the archive.
func checkPrograms(t *testing.T, release string) {
	seconds, err := strconv.ParseInt(strings.TrimSpace(run(t, release, nil, "git", "log", "-1", "--format=%ct")), 10, 64)
	assert.NilError(t, err)
	at := time.Unix(seconds, 0).UTC()
	date := at.Format(time.RFC3339)
	commit := strings.TrimSpace(run(t, release, nil, "git", "rev-parse", "--short=12", "HEAD"))
	content, err := os.ReadFile(filepath.Join(release, "sbom.spdx.json"))
	assert.NilError(t, err)
	packages, related := valid(t, content)
	archives, err := filepath.Glob(filepath.Join(release, "*-a*64.*"))
	assert.NilError(t, err)
	assert.Equal(t, len(archives), 8)
	for _, archive := range archives {
		programs := 0
		packed, err := os.ReadFile(archive)
		assert.NilError(t, err)
		entries := unpacked(t, packed, at)
		for name, e := range entries {
			if e.mode != modeProgram {
				continue
			}
			programs++
			info, err := buildinfo.Read(bytes.NewReader(e.content))
			assert.NilError(t, err)
			setting := map[string]string{}
			for _, s := range info.Settings {
				setting[s.Key] = s.Value
			}
			called := strings.TrimSuffix(name, ".exe")
			described := called + " " + setting["GOOS"] + "/" + setting["GOARCH"]
			assert.Equal(t, packages[described].PackageChecksums[0].Value, sha256Of(e.content))
			assert.Assert(t, related[filepath.Base(archive)+" CONTAINS "+described])
			linked := []string{"std"}
			for _, m := range info.Deps {
				linked = append(linked, m.Path)
				assert.Check(t, related[described+" DEPENDS_ON "+m.Path], "%s of %s", m.Path, described)
				assert.Equal(t, packages[m.Path].PackageVersion, m.Version)
			}
			for _, m := range linked {
				assert.Check(t, licensed(entries, m), "%s has no licence of %s", archive, m)
			}
			for _, word := range []string{tag(t), commit, date} {
				assert.Check(t, bytes.Contains(e.content, []byte(word)), "%s of %s doesn't know %s", name, archive, word)
			}
			if setting["GOOS"] == runtime.GOOS && setting["GOARCH"] == runtime.GOARCH {
				file := filepath.Join(t.TempDir(), name)
				assert.NilError(t, os.WriteFile(file, e.content, 0o700))
				flag := "-version"
				if called == plugin {
					flag = "--version"
				}
				assert.Equal(t, run(t, "", nil, file, flag), called+" "+tag(t)+" (commit "+commit+", "+date+")\n")
			}
		}
		assert.Assert(t, programs > 0, archive)
	}
	installed := filepath.Join(krewInstall(t, release, runtime.GOOS, runtime.GOARCH), "bin", plugin)
	assert.Assert(t, strings.Contains(run(t, "", nil, installed, "--version"), tag(t)))
}

func licensed(entries map[string]entry, module string) bool {
	for name := range entries {
		if strings.HasPrefix(name, "licenses/"+module+"/") {
			return true
		}
	}
	return false
}
