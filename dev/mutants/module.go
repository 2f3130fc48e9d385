package mutants

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/architecture"
)

// Module is what is mutated, and by which tests it is judged.
type Module struct {
	// Root is the module's folder, and Packages are the mutated packages' folders below it.
	Root     string
	Packages []string
	// Tests are the other packages that a package is tested by, after its own tests.
	Tests map[string][]string
	// Slack is how long tests may take beyond five times what they need without a mutation.
	Slack time.Duration
	// Skip are tests that don't count, as -skip of go test has it.
	Skip string
	// Equivalents are mutations that change nothing, as they are printed, and why. They aren't tried.
	Equivalents map[string]string
}

// This returns the module of the checkout in root: its pure packages.
func This(root string) (Module, error) {
	m := Module{
		Root:  root,
		Slack: 10 * time.Second,
		// It compares digests of thousands of plans: it would notice almost anything, and it holds no promise by that.
		Skip: "^TestPlansOfTheCorpus$",
	}
	all, err := architecture.List(root)
	if err != nil {
		return m, err
	}
	m.Packages = architecture.Pure(all)
	m.Tests = testedBy(all, subjects)
	m.Equivalents, err = LoadEquivalents(filepath.Join(root, "dev", "mutants", "testdata", "equivalent.txt"))
	return m, err
}

// LoadEquivalents reads entries of four lines, which empty lines part: a mutation as it is printed, and why it changes
// nothing. An entry that begins with # is a comment.
func LoadEquivalents(path string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, errors.Wrap(err, "reading equivalents")
	}
	why := map[string]string{}
	for entry := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n\n") {
		lines := strings.Split(strings.Trim(entry, "\n"), "\n")
		switch {
		case strings.HasPrefix(entry, "#"):
		case len(lines) != 4:
			return nil, errors.Errorf("%s: an entry is FILE FUNCTION, - OLD, + NEW and why, on four lines, and not\n%s", path, entry)
		default:
			why[strings.Join(lines[:3], "\n")] = lines[3]
		}
	}
	return why, nil
}

// Mutations returns all mutations below the places, which are files or folders, except those that change nothing. It is an
// error if an equivalent is none of them.
func (m Module) Mutations(places ...string) ([]Mutation, error) {
	var all []Mutation
	applies := map[string]bool{}
	for _, folder := range m.Packages {
		files, err := filepath.Glob(filepath.Join(m.Root, filepath.FromSlash(folder), "*.go"))
		if err != nil {
			return nil, errors.Wrap(err, "looking for source")
		}
		for _, f := range files {
			if strings.HasSuffix(f, "_test.go") {
				continue
			}
			file := path.Join(folder, filepath.Base(f))
			found, err := Find(m.Root, file)
			if err != nil {
				return nil, err
			}
			for _, mutation := range found {
				if m.Equivalents[mutation.String()] != "" {
					applies[mutation.String()] = true
				} else if len(places) == 0 || under(file, places) {
					all = append(all, mutation)
				}
			}
		}
	}
	for e := range m.Equivalents {
		if !applies[e] {
			return nil, errors.Errorf("an equivalent no longer applies:\n%s", e)
		}
	}
	return all, nil
}

func under(file string, places []string) bool {
	return slices.ContainsFunc(places, func(p string) bool { return file == p || strings.HasPrefix(file, p+"/") })
}

// subjects are folders of packages that are one subject: the tests of each test the others too.
var subjects = [][]string{{"pkg/policy", "pkg/plan", "pkg/planner"}, {"pkg/intent", "pkg/agent/next"}}

// testedBy returns the packages of the same subject whose tests link a package, by its folder.
func testedBy(all []architecture.Package, subjects [][]string) map[string][]string {
	links := map[string][]string{}
	for _, p := range all {
		links[p.ImportPath] = p.Deps
	}
	by := map[string][]string{}
	for _, subject := range subjects {
		for _, p := range all {
			for _, q := range all {
				tested := slices.ContainsFunc(slices.Concat(q.TestImports, q.XTestImports), func(i string) bool {
					return i == p.ImportPath || slices.Contains(links[i], p.ImportPath)
				})
				if p.ImportPath != q.ImportPath && tested && under(p.Folder(), subject) && under(q.Folder(), subject) {
					by[p.Folder()] = append(by[p.Folder()], q.Folder())
				}
			}
		}
	}
	return by
}
