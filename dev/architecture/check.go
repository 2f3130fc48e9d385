package architecture

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pkg/errors"
)

// Each check returns one line for each thing that is wrong.

// Direction: imports point down, from commands to loops to edges to what is pure. Development imports the product, never
// the other way round. Tests of the product may import what they need: the whole way of a node is tested with all loops
// at once.
func Direction(all []Package) []string {
	var wrong []string
	for _, p := range all {
		from := p.Folder()
		if under(from, "dev") {
			for _, i := range append(slices.Clone(p.Imports), p.testImports()...) {
				if under(inModule(i), "cmd") {
					wrong = append(wrong, fmt.Sprintf("%s imports the command %s", from, inModule(i)))
				}
			}
			continue
		}
		at, ok := placed(from)
		if !ok {
			wrong = append(wrong, fmt.Sprintf("%s has no place: give it one in dev/architecture/rules.go", from))
			continue
		}
		for _, i := range p.Imports {
			if to := inModule(i); to != "" && !mayImport(from, at, to) {
				wrong = append(wrong, fmt.Sprintf("%s imports %s", from, to))
			}
		}
	}
	return wrong
}

func mayImport(from string, at place, to string) bool {
	target, ok := placed(to)
	switch {
	case !ok, target.layer == layerCommand:
		return false
	case under(from, to), under(to, from):
		return true
	case target.layer < at.layer:
		return true
	}
	return slices.ContainsFunc(at.beside, func(b string) bool { return under(to, b) })
}

// Reserved: what one folder needs alone is imported by that folder alone.
func Reserved(all []Package) []string {
	var wrong []string
	for _, p := range all {
		for _, i := range append(slices.Clone(p.Imports), p.testImports()...) {
			for module, folder := range reserved {
				if under(i, module) && !under(p.Folder(), folder) {
					wrong = append(wrong, fmt.Sprintf("%s imports %s", p.Folder(), i))
				}
			}
		}
	}
	return wrong
}

// Links: what is small stays small, and what is apart stays apart.
func Links(all []Package) []string {
	var wrong []string
	for folder, forbidden := range unlinked {
		i := slices.IndexFunc(all, func(p Package) bool { return p.Folder() == folder })
		if i < 0 {
			wrong = append(wrong, folder+" doesn't exist")
			continue
		}
		for _, d := range all[i].Deps {
			if slices.ContainsFunc(forbidden, func(f string) bool { return under(d, f) }) {
				wrong = append(wrong, fmt.Sprintf("%s links %s", folder, d))
			}
		}
	}
	return wrong
}

// PureImports: a pure package imports what can only compute.
func PureImports(all []Package) []string {
	var wrong []string
	for _, p := range all {
		if !isPure(p) {
			continue
		}
		for _, i := range p.Imports {
			// Which of the pure packages, Direction says.
			if inModule(i) == "" && !slices.Contains(pureImports, i) {
				wrong = append(wrong, fmt.Sprintf("%s imports %s", p.Folder(), i))
			}
		}
	}
	return wrong
}

func isPure(p Package) bool {
	return slices.ContainsFunc(pure, func(f string) bool { return under(p.Folder(), f) })
}

// Calls: pure packages read no clock and print nothing; only commands, and what only developing needs,
// end the process or read its environment. Tests may.
func Calls(all []Package) ([]string, error) {
	var wrong []string
	for _, p := range all {
		var forbidden []map[string][]string
		if isPure(p) {
			forbidden = append(forbidden, impure)
		}
		if under(p.Folder(), "pkg") {
			forbidden = append(forbidden, process)
		}
		if forbidden == nil {
			continue
		}
		for _, file := range p.sources() {
			for _, f := range forbidden {
				found, err := uses(file, nil, f)
				if err != nil {
					return nil, err
				}
				wrong = append(wrong, found...)
			}
		}
	}
	return wrong, nil
}

// uses finds where a file names forbidden functions of packages, by whatever name it imports them. src
// is the file's content, nil to read it.
func uses(file string, src any, forbidden map[string][]string) ([]string, error) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, file, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, errors.Wrap(err, "parsing")
	}
	var wrong []string
	names := map[string]string{}
	for _, i := range f.Imports {
		of, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			return nil, errors.Wrapf(err, "%s: an import", file)
		}
		if forbidden[of] == nil {
			continue
		}
		name := path.Base(of)
		if i.Name != nil {
			name = i.Name.Name
		}
		if name == "." {
			wrong = append(wrong, fmt.Sprintf("%s: imports %s with a dot", set.Position(i.Pos()), of))
			continue
		}
		names[name] = of
	}
	ast.Inspect(f, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := s.X.(*ast.Ident); ok {
			if of := names[x.Name]; slices.Contains(forbidden[of], s.Sel.Name) {
				wrong = append(wrong, fmt.Sprintf("%s: uses %s.%s", set.Position(s.Pos()), of, s.Sel.Name))
			}
		}
		return true
	})
	return wrong, nil
}

// Documented: a package says what it is for, in doc.go; a command in its main.go will do.
func Documented(all []Package) []string {
	var wrong []string
	for _, p := range all {
		switch {
		case p.Doc == "":
			wrong = append(wrong, p.Folder()+" has no package comment")
		case p.Name != "main" && !slices.Contains(p.GoFiles, "doc.go"):
			wrong = append(wrong, p.Folder()+" has no doc.go")
		}
	}
	return wrong
}

const (
	// maxColumns is how many columns a comment takes at most, and maxLines how many lines a file has.
	maxColumns = 120
	maxLines   = 600
)

// Sizes: what is read in the product fits a screen, and one sitting.
func Sizes(all []Package) ([]string, error) {
	var wrong []string
	for _, p := range all {
		if !under(p.Folder(), "pkg") && !under(p.Folder(), "cmd") {
			continue
		}
		for _, file := range p.sources() {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, errors.Wrap(err, "reading source")
			}
			wrong = append(wrong, sizes(p.Folder()+"/"+filepath.Base(file), string(text))...)
		}
	}
	return wrong, nil
}

func sizes(file, text string) []string {
	var wrong []string
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if strings.HasPrefix(strings.TrimSpace(l), "//") && utf8.RuneCountInString(l) > maxColumns {
			wrong = append(wrong, fmt.Sprintf("%s:%d: the comment takes more than %d columns", file, i+1, maxColumns))
		}
	}
	if len(lines) > maxLines {
		wrong = append(wrong, fmt.Sprintf("%s has more than %d lines", file, maxLines))
	}
	return wrong
}

// Names: no package and no file has a name that says nothing.
func Names(all []Package) []string {
	var wrong []string
	for _, p := range all {
		for _, name := range append(strings.Split(p.Folder(), "/"), p.Name) {
			if slices.Contains(vague, name) {
				wrong = append(wrong, fmt.Sprintf("package %s: %q says nothing", p.Folder(), name))
				break
			}
		}
		for _, file := range p.files() {
			base := strings.TrimSuffix(strings.TrimSuffix(file, ".go"), "_test")
			if slices.Contains(vague, base) {
				wrong = append(wrong, fmt.Sprintf("%s/%s: %q says nothing", p.Folder(), file, base))
			}
		}
	}
	return wrong
}

// TopLevel: the top folder holds what it is meant to.
func TopLevel(entries []string) []string {
	var wrong []string
	for _, e := range entries {
		if !strings.HasPrefix(e, ".") && !slices.Contains(topLevel, e) {
			wrong = append(wrong, fmt.Sprintf("%s has no place in the top folder", e))
		}
	}
	return wrong
}
