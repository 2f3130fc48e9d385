package planted

import (
	"crypto/sha256"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/pkg/errors"
)

// most is how many bugs of changed files are taken at once; an eighth of all comes on top.
const most = 12

// Choose returns those bugs that are asked for: none for "", all for "all", those with the names in a list with commas,
// or, for "touched", those of the files that were changed in the last commits of the repository in root, and an eighth
// of all.
func Choose(bugs []Bug, which, root string) ([]Bug, error) {
	switch which {
	case "":
		return nil, nil
	case "all":
		return bugs, nil
	case "touched":
		head, changed, err := changes(root)
		if err != nil {
			fmt.Printf("left out: the bugs of changed files, as git doesn't know which these are: %s\n", err)
		}
		return touched(bugs, changed, head), nil
	}
	names := strings.Split(which, ",")
	for _, name := range names {
		if !slices.ContainsFunc(bugs, func(b Bug) bool { return b.Name == name }) {
			return nil, errors.Errorf("there is no bug %q", name)
		}
	}
	return slices.DeleteFunc(slices.Clone(bugs), func(b Bug) bool { return !slices.Contains(names, b.Name) }), nil
}

// changes returns the commit that is checked out, and the files that were changed since the last tag, or since the 20th
// commit before if that is nearer. In a clone without that history no file counts as changed, and err says why.
func changes(root string) (head string, changed []string, err error) {
	git := func(args ...string) string {
		out, err := exec.Command("git", append([]string{"-C", root}, args...)...).Output()
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(out))
	}
	base := "HEAD~20"
	// A tag that is older has the 20th commit before among those that came after it.
	if tag := git("describe", "--tags", "--abbrev=0", "HEAD~1"); tag != "" && git("rev-list", "--max-count=1", base, "^"+tag) == "" {
		base = tag
	}
	head = git("rev-parse", "HEAD")
	diff, err := exec.Command("git", "-C", root, "diff", "--name-only", base, "HEAD").Output()
	return head, strings.Fields(string(diff)), errors.Wrapf(err, "git diff %s HEAD", base)
}

// touched are the bugs of files that were changed, at most so many, and an eighth of all. Which they are is drawn by the
// commit, so that all have their turn.
func touched(bugs []Bug, changed []string, commit string) []Bug {
	draw := func(b Bug) string {
		sum := sha256.Sum256([]byte(commit + b.Name))
		return string(sum[:])
	}
	order := slices.SortedFunc(slices.Values(bugs), func(a, b Bug) int { return strings.Compare(draw(a), draw(b)) })
	eighth := order[:(len(order)+7)/8]
	chosen := func(b Bug) bool {
		return slices.ContainsFunc(eighth, func(e Bug) bool { return e.Name == b.Name })
	}
	due := slices.DeleteFunc(slices.Clone(order), func(b Bug) bool {
		return chosen(b) || !slices.ContainsFunc(b.Hunks, func(h Hunk) bool { return slices.Contains(changed, h.File) })
	})
	taken := due[:min(len(due), most)]
	fmt.Printf("%d of %d bugs in changed files, and %d of all %d\n", len(taken), len(due), len(eighth), len(bugs))
	return slices.Concat(eighth, taken)
}
