package mutants

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/architecture"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
)

// TestFind: each kind of code is mutated as the table says, and nothing else is.
func TestFind(t *testing.T) {
	for source, want := range map[string][]string{
		`func f(a, b int) bool { return a < b }`:                           {`return *new(bool)`, `a <= b`, `a >= b`},
		`func f(a, b int) (x bool, err error) { return a == b, nil }`:      {`return *new(bool), nil`, `a != b`},
		`func f(a, b bool) { if a && !b { f(b, a) } }`:                     {`!a && !b`, `a || !b`, `a && b`, `if a && !b { }`},
		`func f(a []int) { for a[0] = 2; g(); { a[0]++ } }`:                {`_ = 2`, `a[1] = 2`, `a[-1] = 2`, `a[0] = 3`, `a[0] = 1`, `a[0] = 0`, `!g()`, `{ }`, `a[1]++`, `a[-1]++`, `a[0]--`},
		`func f(a, b int) { a -= b; b = a + b }`:                           {`{ ; b`, `a += b;`, `_ = a + b`, `b = a - b`},
		`func f(m map[string]*int) { m["a"], _ = nil, 1 }`:                 {`{ }`, `nil, 2`, `nil, 0`},
		`func f() { for { switch { case g(): continue } } }`:               {`case !g():`, `break }`},
		`func f() { defer g(); h := func() string { return "a" }; _ = h }`: {`{ ; h`, `return *new(string)`},
		`var late, early = time.Minute, true`:                              {`early = time.Minute, false`},
		`const late = 5 * time.Minute`:                                     {`6 *`, `4 *`, `0 *`},
		`func f() []int { a := make([]int, 0, 8); return a }`:              {`return *new([]int)`},
		`func f() (int, error) { return g() }`:                             nil,
		`func f() (bool, T, string) { panic(m); return true, T{}, "" }`:    {`return false`},
		`type T struct { a [4]string "json:\"1\"" }`:                       nil,
	} {
		root := t.TempDir()
		assert.NilError(t, os.WriteFile(filepath.Join(root, "a.go"), []byte("package a\n"+source+"\n"), 0o600))
		found, err := Find(root, "a.go")
		assert.NilError(t, err)
		var got []string
		for _, m := range found {
			assert.Equal(t, m.Line, 2)
			assert.Equal(t, m.Old, source)
			assert.Assert(t, m.Source() != "package a\n"+source+"\n", "%+v", m)
			got = append(got, m.New)
		}
		assert.Equal(t, len(got), len(want), "%s:\n%s", source, strings.Join(got, "\n"))
		for i, w := range want {
			assert.Assert(t, strings.Contains(got[i], w), "%s:\n%s\nand not %s", source, got[i], w)
		}
	}
}

// TestFindTwice: what stands twice in a function can be told apart.
func TestFindTwice(t *testing.T) {
	root := t.TempDir()
	assert.NilError(t, os.WriteFile(filepath.Join(root, "a.go"), []byte("package a\nfunc f() {\n g()\n g()\n}\n"), 0o600))
	found, err := Find(root, "a.go")
	assert.NilError(t, err)
	assert.Equal(t, len(found), 2)
	assert.Equal(t, found[0].Func, "f")
	assert.Equal(t, found[1].Func, "f 2")
}

// TestSample: of a sample's mutants the one that loops for ever is noticed as a wrong one is, the one at the boundary that
// the test forgets survives, and one that doesn't compile isn't counted.
func TestSample(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("testdata", "sample"))
	assert.NilError(t, err)
	m := Module{Root: root, Packages: []string{"."}, Slack: time.Second}
	all, err := m.Mutations()
	assert.NilError(t, err)
	fates := map[string]string{
		"for i := 0; i < len(ages); {":      "noticed",
		"for i := 0; i <= len(ages); i++ {": "noticed",
		"if ages[i] > grown {":              "survived",
		"const grown = 17":                  "survived",
		"const grown = 0":                   "noticed",
		"return *new(int)":                  "noticed",
	}
	chosen := slices.DeleteFunc(all, func(m Mutation) bool { return fates[m.New] == "" })
	assert.Equal(t, len(chosen), len(fates))
	unformed := chosen[len(chosen)-1]
	untyped := unformed
	unformed.by, untyped.by = "(", `"a"`
	got := map[string]string{}
	tally, err := m.Run(t.Context(), append([]Mutation{unformed, untyped}, chosen...), len(chosen), func(m Mutation, survived bool) {
		got[m.New] = map[bool]string{true: "survived", false: "noticed"}[survived]
	})
	assert.NilError(t, err)
	assert.DeepEqual(t, got, fates)
	assert.Equal(t, tally, Tally{Noticed: 4, Survived: 2, NotCompiled: 2})
	assert.Equal(t, Tally{Noticed: 3, Survived: 1, NotCompiled: 1}.Share(), 75.0)
}

// TestFailingTests: tests that fail without a mutation are no judge.
func TestFailingTests(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module a\n", "a.go": "package a\nvar A = 1\n",
		"a_test.go": "package a\nimport \"testing\"\nfunc TestA(t *testing.T) { t.Fail() }\n",
	} {
		assert.NilError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	m := Module{Root: root, Packages: []string{"."}, Slack: time.Second}
	all, err := m.Mutations()
	assert.NilError(t, err)
	_, err = m.Run(t.Context(), all, 1, func(Mutation, bool) { t.Error("a mutant was judged") })
	assert.ErrorContains(t, err, "without a mutation")
}

// TestDraw: a seed draws the same order again, and another seed another one.
func TestDraw(t *testing.T) {
	all := make([]Mutation, 100)
	for i := range all {
		all[i].Line = i
	}
	assert.Assert(t, slices.Equal(Draw(all, 1), Draw(all, 1)))
	assert.Assert(t, !slices.Equal(Draw(all, 1), Draw(all, 2)))
	assert.Equal(t, len(Draw(all, 1)), len(all))
}

// TestEquivalent: a mutation that is noted isn't drawn, and a note that no longer applies is an error.
func TestEquivalent(t *testing.T) {
	m := Module{Root: filepath.Join("testdata", "sample"), Packages: []string{"."}}
	all, err := m.Mutations()
	assert.NilError(t, err)
	path := filepath.Join(t.TempDir(), "notes")
	noted := "# A comment.\n\ngrown.go Grown\n- if ages[i] >= grown {\n+ if ages[i] > grown {\nNobody is 18.\n"
	assert.NilError(t, os.WriteFile(path, []byte(noted), 0o600))
	m.Equivalents, err = LoadEquivalents(path)
	assert.NilError(t, err)
	const mutation = "grown.go Grown\n- if ages[i] >= grown {\n+ if ages[i] > grown {"
	assert.DeepEqual(t, m.Equivalents, map[string]string{mutation: "Nobody is 18."})
	rest, err := m.Mutations()
	assert.NilError(t, err)
	assert.Equal(t, len(rest), len(all)-1)
	m.Equivalents = map[string]string{strings.Replace(mutation, "Grown", "Groan", 1): "Nobody is 18."}
	_, err = m.Mutations()
	assert.ErrorContains(t, err, "no longer applies")

	assert.NilError(t, os.WriteFile(path, []byte(strings.Replace(noted, "Nobody is 18.", "", 1)), 0o600))
	_, err = LoadEquivalents(path)
	assert.ErrorContains(t, err, "why")
}

// TestTestedBy: a package is tested by those of its subject whose tests link it, and by no others.
func TestTestedBy(t *testing.T) {
	const at = architecture.Module + "/"
	all := []architecture.Package{
		{ImportPath: at + "pkg/fleet", XTestImports: []string{at + "pkg/plan"}},
		{ImportPath: at + "pkg/plan", Deps: []string{at + "pkg/fleet"}, TestImports: []string{"testing"}},
		{ImportPath: at + "pkg/planner", Deps: []string{at + "pkg/plan", at + "pkg/planner/budget"}, XTestImports: []string{at + "pkg/planner"}},
		{ImportPath: at + "pkg/planner/budget", Deps: []string{at + "pkg/plan"}, XTestImports: []string{at + "pkg/plan"}},
	}
	assert.DeepEqual(t, testedBy(all, [][]string{{"pkg/plan", "pkg/planner"}}), map[string][]string{
		"pkg/plan":           {"pkg/planner", "pkg/planner/budget"},
		"pkg/planner/budget": {"pkg/planner"},
	})
}

// TestEquivalents: those of this module are well-formed and still apply.
func TestEquivalents(t *testing.T) {
	root, err := controlplane.Root()
	assert.NilError(t, err)
	m, err := This(root)
	assert.NilError(t, err)
	all, err := m.Mutations()
	assert.NilError(t, err)
	assert.Assert(t, len(all) > 1000)
}
