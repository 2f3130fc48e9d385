package planted

import (
	"fmt"
	"os/exec"
	"slices"
	"testing"

	"gotest.tools/v3/assert"
)

func names(bugs []Bug) []string {
	var out []string
	for _, b := range bugs {
		out = append(out, b.Name)
	}
	return out
}

func some(count int) []Bug {
	var bugs []Bug
	for i := range count {
		bugs = append(bugs, Bug{Name: fmt.Sprint("b", i), Hunks: []Hunk{{File: fmt.Sprintf("%d.go", i%4)}}})
	}
	return bugs
}

// Of the bugs of changed files at most so many are taken, besides an eighth of all; the commit draws which.
func TestTouched(t *testing.T) {
	bugs := some(80)
	assert.Equal(t, len(touched(bugs, nil, "a")), 10)
	one := touched(bugs, []string{"1.go"}, "a")
	assert.Equal(t, len(one), 10+most)
	for _, b := range one[10:] {
		assert.Equal(t, b.Hunks[0].File, "1.go")
		assert.Assert(t, !slices.Contains(names(one[:10]), b.Name))
	}
	assert.DeepEqual(t, names(touched(bugs, []string{"1.go"}, "a")), names(one))
	drawn := map[string]bool{}
	for i := range 100 {
		for _, b := range touched(bugs, nil, fmt.Sprint(i)) {
			drawn[b.Name] = true
		}
	}
	assert.Equal(t, len(drawn), len(bugs), "every bug has its turn")
	// Few that were touched are all taken.
	few := touched(some(8), []string{"1.go", "2.go"}, "a")
	for _, b := range []string{"b1", "b2", "b5", "b6"} {
		assert.Assert(t, slices.Contains(names(few), b), "%q", names(few))
	}
}

// Bugs are asked for by name, all at once, or none.
func TestChoose(t *testing.T) {
	bugs := some(9)
	for which, want := range map[string]int{"": 0, "all": 9, "b1,b3": 2, "touched": 2} {
		// A folder without a repository has no history.
		got, err := Choose(bugs, which, t.TempDir())
		assert.NilError(t, err)
		assert.Equal(t, len(got), want, which)
	}
	_, err := Choose(bugs, "b1,c", t.TempDir())
	assert.ErrorContains(t, err, `there is no bug "c"`)
}

// Files count as changed since the last tag, or the 20th commit before if that is nearer; in a shallow clone none does.
func TestChanges(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		out, err := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=n", "-c", "user.email=e@example.com"}, args...)...).CombinedOutput()
		assert.NilError(t, err, "%s", out)
	}
	commit := func(name string) {
		t.Helper()
		assert.NilError(t, exec.Command("touch", dir+"/"+name).Run())
		git("add", name)
		git("commit", "-q", "-m", name)
	}
	git("init", "-q")
	commit("first")
	head, changed, err := changes(dir)
	assert.ErrorContains(t, err, "HEAD~20")
	assert.Equal(t, len(head), 40)
	assert.Equal(t, len(changed), 0)
	for i := range 22 {
		commit(fmt.Sprint("c", i))
	}
	_, changed, err = changes(dir)
	assert.NilError(t, err)
	assert.Equal(t, len(changed), 20, "%q", changed)
	git("tag", "old", "HEAD~21")
	_, changed, err = changes(dir)
	assert.NilError(t, err)
	assert.Equal(t, len(changed), 20, "%q", changed)
	git("tag", "v1", "HEAD~2")
	_, changed, err = changes(dir)
	assert.NilError(t, err)
	assert.DeepEqual(t, changed, []string{"c20", "c21"})
	git("tag", "v2")
	_, changed, err = changes(dir)
	assert.NilError(t, err)
	assert.DeepEqual(t, changed, []string{"c20", "c21"})
}
