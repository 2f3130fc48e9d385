package controlplane

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gotest.tools/v3/assert"
	"gotest.tools/v3/assert/cmp"
)

func TestNormalVersion(t *testing.T) {
	for in, want := range map[string]string{"1.36.3": "v1.36.3", "v1.31.0": "v1.31.0", "1.37.0-rc.1": "v1.37.0-rc.1"} {
		got, err := normalVersion(in)
		assert.NilError(t, err)
		assert.Equal(t, got, want)
	}
	for _, in := range []string{"", "1.36", "latest", "1.36.3/..", "1.36.3 -x"} {
		_, err := normalVersion(in)
		assert.ErrorContains(t, err, "is not of the form", in)
	}
}

func TestChooseVersion(t *testing.T) {
	t.Setenv(VersionEnv, "")
	got, err := chooseVersion("", "v1.36.3")
	assert.NilError(t, err)
	assert.Equal(t, got, "v1.36.3")
	t.Setenv(VersionEnv, "1.34.1")
	got, err = chooseVersion("", "v1.36.3")
	assert.NilError(t, err)
	assert.Equal(t, got, "v1.34.1")
	got, err = chooseVersion("1.35.0", "v1.36.3")
	assert.NilError(t, err)
	assert.Equal(t, got, "v1.35.0")
}

func TestPinnedVersionIsReadFromTheModule(t *testing.T) {
	got, err := DefaultVersion()
	assert.NilError(t, err)
	assert.Assert(t, cmp.Regexp(`^v1\.\d+\.\d+$`, got))
}

func TestModuleTextReplacesExactlyTheStagingModules(t *testing.T) {
	got, err := moduleText("v1.34.2", []byte(`{"Go":"1.24.0","Require":[
		{"Path":"k8s.io/api","Version":"v0.0.0"},
		{"Path":"k8s.io/utils","Version":"v0.0.0-20250604170112-4c0f3b243397"},
		{"Path":"sigs.k8s.io/json","Version":"v0.0.0-20250730193827-2d320260d730"}]}`))
	assert.NilError(t, err)
	assert.Equal(t, got, `module github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane/programs

go 1.24.0

require k8s.io/kubernetes v1.34.2

replace k8s.io/api => k8s.io/api v0.34.2
`)
}

func TestStampCoversVersionAndPins(t *testing.T) {
	p := programs[1]
	first, err := p.stamp("v1.36.3", "a")
	assert.NilError(t, err)
	for _, other := range [][2]string{{"v1.36.4", "a"}, {"v1.36.3", "b"}} {
		got, err := p.stamp(other[0], other[1])
		assert.NilError(t, err)
		assert.Assert(t, got != first)
	}
}

func TestStampCoversTags(t *testing.T) {
	p := program{name: "thing", pkg: "example.com/thing"}
	first, err := p.stamp("v1.36.3", "a")
	assert.NilError(t, err)
	p.tags = "slim"
	got, err := p.stamp("v1.36.3", "a")
	assert.NilError(t, err)
	assert.Assert(t, got != first)
}

// Each program is in a group that can be asked for, and what isn't asked for isn't built: promtool needs no Kubernetes.
func TestGroups(t *testing.T) {
	built := map[Group]int{}
	for _, g := range Groups {
		b, err := newBuild(Options{Groups: []Group{g}})
		assert.NilError(t, err)
		for _, p := range b.programs {
			assert.Equal(t, p.group, g, p.name)
		}
		built[g] = len(b.programs)
	}
	assert.Equal(t, built[GroupControlPlane]+built[GroupNode]+built[GroupPrometheus], len(programs))
	assert.Assert(t, built[GroupControlPlane] > 0 && built[GroupNode] > 0 && built[GroupPrometheus] == 2)
	b, err := newBuild(Options{})
	assert.NilError(t, err)
	assert.Equal(t, len(b.programs), built[GroupControlPlane])
}

func TestInstalledProgramIsFreshOnlyWithItsStamp(t *testing.T) {
	dir := t.TempDir()
	p := program{name: "thing"}
	assert.Assert(t, !p.fresh(dir, "one\n"))
	built := filepath.Join(t.TempDir(), "built")
	assert.NilError(t, os.WriteFile(built, []byte("x"), 0o700))
	assert.NilError(t, p.install(built, dir, "one\n"))
	assert.Assert(t, p.fresh(dir, "one\n"))
	assert.Assert(t, !p.fresh(dir, "two\n"))
}

func TestGoEnvironDropsWhatChangesABuild(t *testing.T) {
	got := strings.Join(goEnviron([]string{"HOME=/h", "GOFLAGS=-race", "GOOS=plan9", "GOPROXY=p"}), " ")
	assert.Equal(t, got, "HOME=/h GOPROXY=p GOWORK=off CGO_ENABLED=0 GOFLAGS=")
}

func TestWarmBuildRunsNoCommand(t *testing.T) {
	_, err := Build(context.Background(), Options{Progress: os.Stderr})
	assert.NilError(t, err)
	t.Setenv("PATH", "")
	_, err = Build(context.Background(), Options{Progress: os.Stderr})
	assert.NilError(t, err)
}
