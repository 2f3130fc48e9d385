package architecture

import (
	"os"
	"slices"
	"strings"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
)

func none(t *testing.T, wrong []string) {
	t.Helper()
	assert.Assert(t, len(wrong) == 0, "%s", strings.Join(wrong, "\n"))
}

func TestThisRepository(t *testing.T) {
	root, err := controlplane.Root()
	assert.NilError(t, err)
	all, err := List(root)
	assert.NilError(t, err)
	// A list that is empty by mistake would pass everything.
	for _, f := range append(slices.Clone(pure), agentCommand, "pkg/drain") {
		assert.Assert(t, slices.ContainsFunc(all, func(p Package) bool { return p.Folder() == f && len(p.GoFiles) > 0 }), f)
	}

	t.Run("direction", func(t *testing.T) { none(t, Direction(all)) })
	t.Run("reserved", func(t *testing.T) { none(t, Reserved(all)) })
	t.Run("links", func(t *testing.T) { none(t, Links(all)) })
	t.Run("pure imports", func(t *testing.T) { none(t, PureImports(all)) })
	t.Run("calls", func(t *testing.T) {
		wrong, err := Calls(all)
		assert.NilError(t, err)
		none(t, wrong)
	})
	t.Run("documented", func(t *testing.T) { none(t, Documented(all)) })
	t.Run("sizes", func(t *testing.T) {
		wrong, err := Sizes(all)
		assert.NilError(t, err)
		none(t, wrong)
	})
	t.Run("names", func(t *testing.T) { none(t, Names(all)) })
	t.Run("top level", func(t *testing.T) {
		entries, err := os.ReadDir(root)
		assert.NilError(t, err)
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		none(t, TopLevel(names))
	})
}

func imports(from string, to ...string) Package {
	p := Package{ImportPath: Module + "/" + from}
	for _, i := range to {
		if _, ok := placed(i); ok || under(i, "dev") {
			i = Module + "/" + i
		}
		p.Imports = append(p.Imports, i)
	}
	return p
}

// Every check finds what it is there for, and nothing in what is right.
func TestChecksCanFail(t *testing.T) {
	test := func(name string, check func([]Package) []string, good []Package, bad ...Package) {
		t.Run(name, func(t *testing.T) {
			none(t, check(good))
			for _, b := range bad {
				wrong := check(append(slices.Clone(good), b))
				assert.Assert(t, len(wrong) == 1, "%+v: found %q", b, wrong)
			}
		})
	}

	inTest := func(from, to string) Package {
		return Package{ImportPath: Module + "/" + from, XTestImports: []string{Module + "/" + to}}
	}
	test("direction", Direction,
		[]Package{
			imports("cmd/bottlerocket-update-operator", "pkg/controller", "pkg/agent", "pkg/telemetry"),
			imports("pkg/controller", "pkg/kube", "pkg/policy", "k8s.io/client-go/kubernetes"),
			imports("pkg/platform/updateapi", "pkg/platform", "pkg/agent/next"),
			imports("pkg/planner", "pkg/plan", "pkg/fleet"),
			imports("dev/demo", "pkg/controller", "dev/hostsim"),
			inTest("pkg/controller", "dev/hostsim"),
			inTest("pkg/controller", "pkg/agent"),
		},
		imports("pkg/marker", "pkg/intent"),
		imports("pkg/fleet", "pkg/plan"),
		imports("pkg/policy", "pkg/plan"),
		imports("pkg/policy", "pkg/kube"),
		imports("pkg/kube", "pkg/controller"),
		imports("pkg/kube", "pkg/drain"),
		imports("pkg/telemetry", "pkg/platform"),
		imports("pkg/controller", "pkg/agent"),
		imports("pkg/agent", "pkg/controller"),
		imports("pkg/agent", "pkg/authorizer"),
		imports("pkg/agent", "dev/hostsim"),
		imports("pkg/agent", "cmd/bottlerocket-update-agent"),
		imports("cmd/bottlerocket-update-agent", "dev/hostsim"),
		imports("dev/demo", "cmd/bottlerocket-update-agent"),
		imports("pkg/novelty"),
		inTest("dev/demo", "cmd/bottlerocket-update-agent"),
	)
	test("reserved", Reserved,
		[]Package{
			imports("pkg/drain", "k8s.io/kubectl/pkg/drain"),
			imports("dev/image", "github.com/google/go-containerregistry/pkg/v1"),
			imports("dev/image/roots", "golang.org/x/crypto/x509roots/fallback/bundle"),
			imports("pkg/plugin", "k8s.io/cli-runtime/pkg/printers", "github.com/spf13/cobra"),
		},
		imports("pkg/controller", "github.com/spf13/cobra"),
		imports("cmd/kubectl-bottlerocket", "k8s.io/cli-runtime/pkg/printers"),
		imports("pkg/controller", "k8s.io/kubectl/pkg/drain"),
		imports("cmd/bottlerocket-update-agent", "golang.org/x/crypto/x509roots/fallback"),
		imports("pkg/kube", "github.com/google/go-containerregistry/pkg/name"),
		imports("dev/demo", "github.com/google/go-containerregistry/pkg/name"),
		Package{ImportPath: Module + "/pkg/kube", TestImports: []string{"k8s.io/kubectl/pkg/scheme"}},
	)
	linking := func(folder string, deps ...string) []Package {
		var all []Package
		for f := range unlinked {
			all = append(all, Package{ImportPath: Module + "/" + f})
			if f == folder {
				all[len(all)-1].Deps = deps
			}
		}
		return all
	}
	none(t, Links(linking(agentCommand, "k8s.io/client-go/metadata", "k8s.io/client-go/kubernetesish")))
	none(t, Links(linking(pluginCommand, Module+"/pkg/policy", Module+"/pkg/kube", Module+"/pkg/planner/lifecycle")))
	none(t, Links(linking("pkg/authorizer", Module+"/pkg/kube/access", Module+"/pkg/marker")))
	for folder, deps := range map[string][]string{
		agentCommand:     {"k8s.io/kubectl/pkg/drain", "k8s.io/client-go/kubernetes", "k8s.io/client-go/kubernetes/scheme"},
		pluginCommand:    {Module + "/pkg/planner/check", Module + "/pkg/controller", Module + "/pkg/agent", Module + "/pkg/authorizer", Module + "/pkg/platform/updateapi", Module + "/dev/hostsim"},
		"pkg/authorizer": {Module + "/pkg/policy/file", Module + "/pkg/planner"},
	} {
		for _, d := range deps {
			assert.Equal(t, len(Links(linking(folder, d))), 1, d)
		}
	}
	assert.Equal(t, len(Links(nil)), len(unlinked), "none of them")
	var bad []Package
	for _, i := range []string{"context", "os", "net", "net/http", "math/rand", "math/rand/v2", "crypto/rand", "os/exec", "sync", "runtime",
		"k8s.io/client-go/kubernetes", "k8s.io/api/core/v1", "github.com/sirupsen/logrus"} {
		bad = append(bad, imports("pkg/policy", i))
	}
	test("pure imports", PureImports,
		[]Package{
			imports("pkg/planner", "time", "github.com/pkg/errors", "pkg/fleet"),
			imports("pkg/kube", "context", "k8s.io/client-go/kubernetes"),
		}, bad...)
	test("documented", Documented,
		[]Package{
			{ImportPath: Module + "/pkg/a", Name: "a", Doc: "Package a.", GoFiles: []string{"a.go", "doc.go"}},
			{ImportPath: Module + "/cmd/b", Name: "main", Doc: "Command b.", GoFiles: []string{"main.go"}},
		},
		Package{ImportPath: Module + "/pkg/a", Name: "a", Doc: "Package a.", GoFiles: []string{"a.go"}},
		Package{ImportPath: Module + "/pkg/a", Name: "a", GoFiles: []string{"doc.go"}},
		Package{ImportPath: Module + "/cmd/b", Name: "main", GoFiles: []string{"main.go"}},
	)
	test("names", Names,
		[]Package{{ImportPath: Module + "/pkg/marker", Name: "marker", GoFiles: []string{"utilisation.go"}}},
		Package{ImportPath: Module + "/pkg/util", Name: "util"},
		Package{ImportPath: Module + "/pkg/helpers/a", Name: "a"},
		Package{ImportPath: Module + "/pkg/a", Name: "common"},
		Package{ImportPath: Module + "/pkg/a", Name: "a", GoFiles: []string{"utils.go"}},
		Package{ImportPath: Module + "/pkg/a", Name: "a", TestGoFiles: []string{"helper_test.go"}},
	)
	none(t, sizes("a.go", "// Short.\nvar long = \""+strings.Repeat("x", 200)+"\"\n"))
	assert.Equal(t, len(sizes("a.go", "\t// "+strings.Repeat("x", 120)+strings.Repeat("\n", 600))), 2)
	none(t, TopLevel([]string{"cmd", "README.md", ".ci", ".gitignore"}))
	assert.Equal(t, len(TopLevel([]string{"cmd", "vendor", "scratch.txt"})), 2)
}

func TestCallsAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		src  string
		want int
	}{
		"clean":         {`import "time"; var d = time.Second; func f(t time.Time) time.Time { return t.Add(d) }`, 0},
		"call":          {`import "time"; var t = time.Now()`, 1},
		"value":         {`import "time"; var now = time.Now`, 1},
		"renamed":       {`import clock "time"; func f() { clock.Sleep(1); <-clock.After(1) }`, 2},
		"dot":           {`import . "time"; var t = Now()`, 1},
		"another":       {`import time "example.com/time"; var t = time.Now()`, 0},
		"since":         {`import "time"; func f(t time.Time) time.Duration { return time.Since(t) }`, 1},
		"zone":          {`import "time"; var z, _ = time.LoadLocation("Europe/Berlin"); var l = time.Local; var u = time.UTC`, 2},
		"print":         {`import "fmt"; func f() { fmt.Println(); _ = fmt.Sprint() }`, 1},
		"not the clock": {`import "os"; func f() { os.Exit(1) }`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			wrong, err := uses("planted.go", "package p; "+c.src, impure)
			assert.NilError(t, err)
			assert.Equal(t, len(wrong), c.want, "%q", wrong)
		})
	}
	wrong, err := uses("planted.go", `package p; import "os"; func f() { os.Exit(1); _ = os.Getenv("A"); _, _ = os.Open("a") }`, process)
	assert.NilError(t, err)
	assert.Equal(t, len(wrong), 2)

	// Through files, as the repository is checked: which folder may do what.
	dir := t.TempDir()
	assert.NilError(t, os.WriteFile(dir+"/a.go", []byte(`package a; import ("os"; "time"); func f() { _ = time.Now(); os.Exit(1) }`), 0o600))
	for folder, want := range map[string]int{"pkg/policy": 2, "pkg/kube": 1, "cmd/a": 0, "dev/a": 0} {
		for _, p := range []Package{{GoFiles: []string{"a.go"}}, {IgnoredGoFiles: []string{"a.go"}}} {
			p.ImportPath, p.Dir = Module+"/"+folder, dir
			wrong, err := Calls([]Package{p})
			assert.NilError(t, err)
			assert.Equal(t, len(wrong), want, "%s: %q", folder, wrong)
		}
		wrong, err := Calls([]Package{{ImportPath: Module + "/" + folder, Dir: dir, TestGoFiles: []string{"a.go"}}})
		assert.NilError(t, err)
		assert.Equal(t, len(wrong), 0)
	}
}
