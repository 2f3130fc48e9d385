package planted

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"
)

// Bug is one planted mistake.
type Bug struct {
	Name string
	// Why says what is wrong.
	Why string
	// Breaks are the promises of which at least one must be found broken.
	Breaks []string
	// Seeds is how many runs of the simulation may be made until it is found; 0: the exhaustive check of
	// small fleets finds it, or the attack.
	Seeds int
	// At is the seed that found it last, which is tried first; 0 if that isn't known. It saves the time of those before it,
	// and where it doesn't find the bug any more all of them are run.
	At uint64
	// Attack is the test that finds it, and Package where that is; empty: one of the searches does.
	Attack, Package string
	// Hunks are the changes.
	Hunks []Hunk
}

// Hunk replaces Old, which must be there exactly once, by New.
type Hunk struct{ File, Old, New string }

// Load reads all bugs of a folder, by name.
func Load(dir string) ([]Bug, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.bug"))
	if err != nil {
		return nil, errors.Wrap(err, "looking for bugs")
	}
	slices.Sort(paths)
	var bugs []Bug
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, errors.Wrap(err, "reading bug")
		}
		b, err := parse(strings.TrimSuffix(filepath.Base(path), ".bug"), string(text))
		if err != nil {
			return nil, errors.WithMessage(err, path)
		}
		bugs = append(bugs, b)
	}
	return bugs, nil
}

func parse(name, text string) (Bug, error) {
	b := Bug{Name: name}
	file, into := "", ""
	var old, replaced strings.Builder
	for line := range strings.Lines(text) {
		word := strings.TrimSuffix(line, "\n")
		switch {
		case into == "" && strings.HasPrefix(word, "# "):
			b.Why = strings.TrimPrefix(word, "# ")
		case into == "" && strings.HasPrefix(word, "breaks "):
			b.Breaks = strings.Fields(word)[1:]
		case into == "" && word == "search model":
		case into == "" && strings.HasPrefix(word, "search attack "):
			// The proxy's, unless another package is named: "search attack TEST in ./pkg/planner".
			var elsewhere bool
			if b.Attack, b.Package, elsewhere = strings.Cut(strings.TrimPrefix(word, "search attack "), " in "); !elsewhere {
				b.Package = "./pkg/authorizer"
			}
		case into == "" && strings.HasPrefix(word, "search sim "):
			seeds, at, known := strings.Cut(strings.TrimPrefix(word, "search sim "), " at ")
			var err error
			if b.Seeds, err = strconv.Atoi(seeds); err != nil {
				return b, errors.Wrap(err, "reading how many seeds")
			}
			if !known {
				continue
			}
			if b.At, err = strconv.ParseUint(at, 10, 64); err != nil {
				return b, errors.Wrap(err, "reading which seed found it")
			}
		case into == "" && strings.HasPrefix(word, "file "):
			file = strings.TrimPrefix(word, "file ")
		case word == "<<<<" && into == "":
			into = "old"
		case word == "====" && into == "old":
			into = "new"
		case word == ">>>>" && into == "new":
			b.Hunks = append(b.Hunks, Hunk{file, old.String(), replaced.String()})
			old.Reset()
			replaced.Reset()
			into = ""
		case into == "old":
			old.WriteString(line)
		case into == "new":
			replaced.WriteString(line)
		default:
			return b, errors.Errorf("line %q is none of a bug's", word)
		}
	}
	if into != "" || b.Why == "" || len(b.Breaks) == 0 || len(b.Hunks) == 0 {
		return b, errors.New("a bug says what is wrong, what it breaks, and has a file with a change")
	}
	return b, nil
}

// Overlay writes the changed files of a bug to dir, and what `go build -overlay` wants to know of them.
// It returns the path of that. Root is the folder of the module.
func (b Bug) Overlay(root, dir string) (string, error) {
	replace := map[string]string{}
	sources := map[string]string{}
	for _, h := range b.Hunks {
		path := filepath.Join(root, filepath.FromSlash(h.File))
		source, ok := sources[path]
		if !ok {
			text, err := os.ReadFile(path)
			if err != nil {
				return "", errors.Wrapf(err, "bug %s", b.Name)
			}
			source = string(text)
		}
		if n := strings.Count(source, h.Old); n != 1 {
			return "", errors.Errorf("bug %s no longer applies: its text is %d times in %s, and must be there once:\n%s", b.Name, n, h.File, h.Old)
		}
		sources[path] = strings.Replace(source, h.Old, h.New, 1)
	}
	for path, source := range sources {
		to := filepath.Join(dir, strings.ReplaceAll(strings.TrimPrefix(path, root+string(filepath.Separator)), string(filepath.Separator), "_"))
		if err := os.WriteFile(to, []byte(source), 0o600); err != nil {
			return "", errors.Wrap(err, "writing overlay")
		}
		replace[path] = to
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", errors.Wrap(err, "encoding overlay")
	}
	to := filepath.Join(dir, "overlay.json")
	return to, errors.Wrap(os.WriteFile(to, text, 0o600), "writing overlay")
}
