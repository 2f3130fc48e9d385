package dist

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"gotest.tools/v3/assert"
)

// krew installs the plugin on each platform by the manifest: the real krew, which validates it and compares the
// checksum, and with the licence that krew's index asks for (issue 19, part 3).
func TestKrew(t *testing.T) {
	dir := t.TempDir()
	checksums := map[string]string{}
	for _, p := range pluginPlatforms {
		pack := tarGz
		if p.OS == "windows" {
			pack = zipped
		}
		packed, err := pack(committed, []entry{{pluginProgram(p), modeProgram, []byte("code for " + p.String())},
			{"licenses/LICENSE-MIT", modeFile, []byte("MIT")}, {"licenses/std/LICENSE", modeFile, []byte("BSD")}})
		assert.NilError(t, err)
		assert.NilError(t, os.WriteFile(filepath.Join(dir, pluginArchive(p)), packed, 0o600))
		checksums[pluginArchive(p)] = sha256Of(packed)
	}
	manifest, err := krewManifest("v2.1.0", checksums)
	assert.NilError(t, err)
	assert.NilError(t, os.WriteFile(filepath.Join(dir, krewFile), manifest, 0o600))
	for _, p := range pluginPlatforms {
		root := krewInstall(t, dir, p.OS, p.Architecture)
		installed, err := filepath.Glob(filepath.Join(root, "store", "bottlerocket", "v2.1.0", "*"))
		assert.NilError(t, err)
		assert.Equal(t, len(installed), 2, "%s: %q", p, installed)
		got, err := os.ReadFile(filepath.Join(root, "store", "bottlerocket", "v2.1.0", pluginProgram(p)))
		assert.NilError(t, err)
		assert.Equal(t, string(got), "code for "+p.String())
	}

	delete(checksums, pluginArchive(pluginPlatforms[0]))
	_, err = krewManifest("v2.1.0", checksums)
	assert.ErrorContains(t, err, "has no checksum")
}

// krewInstall installs the plugin of a release's folder, as if on a platform, and returns krew's folder.
func krewInstall(t *testing.T, release, goos, goarch string) string {
	t.Helper()
	root := t.TempDir()
	archive := plugin + "-" + goos + "-" + goarch + ".tar.gz"
	if goos == "windows" {
		archive = plugin + "-" + goos + "-" + goarch + ".zip"
	}
	cmd := exec.Command("go", "tool", "krew", "install", "--manifest", filepath.Join(release, krewFile),
		"--archive", filepath.Join(release, archive))
	cmd.Env = append(os.Environ(), "KREW_ROOT="+root, "KREW_OS="+goos, "KREW_ARCH="+goarch, "KREW_NO_UPGRADE_CHECK=1")
	said, err := cmd.CombinedOutput()
	assert.NilError(t, err, "%s", said)
	return root
}
