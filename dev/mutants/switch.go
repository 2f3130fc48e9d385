package mutants

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"
)

// function is one of which mutated copies can stand beside it, so that one program holds many mutants: it begins by asking
// which of them is meant, and calls that.
type function struct {
	pkg string
	// from and to are where it begins and ends in its file, name where its name ends, and body where its body begins.
	from, name, body, to int
	// call is a call with its own arguments, but for what follows the name of a copy.
	call    string
	returns bool
}

// switchable returns a function whose receiver and parameters all have names, by which it can call a copy; else nil.
func (f *finder) switchable(d *ast.FuncDecl) *function {
	at := func(p token.Pos) int { return f.file.Offset(p) }
	s := &function{pkg: f.pkg, from: at(d.Pos()), name: at(d.Name.End()), body: at(d.Body.Lbrace) + 1, to: at(d.End()),
		call: d.Name.Name + "%s", returns: d.Type.Results != nil}
	if d.Type.TypeParams != nil || d.Name.Name == "init" {
		return nil
	}
	named := func(list *ast.FieldList) (names []string) {
		for _, field := range list.List {
			if len(field.Names) == 0 {
				names = append(names, "_")
			}
			for _, n := range field.Names {
				names = append(names, n.Name)
			}
		}
		return names
	}
	names := named(d.Type.Params)
	call := strings.Join(names, ", ")
	if params := d.Type.Params.List; len(params) > 0 {
		if _, variadic := params[len(params)-1].Type.(*ast.Ellipsis); variadic {
			call += "..."
		}
	}
	s.call += "(" + call + ")"
	if d.Recv != nil {
		receiver := named(d.Recv)
		s.call = receiver[0] + "." + s.call
		names = append(names, receiver...)
	}
	if slices.Contains(names, "_") {
		return nil
	}
	return s
}

// copied is where a mutant stands in its file, from a line up to another.
type copied struct {
	number, from, to int
}

// variable tells which mutant is meant, by a number from 1 on.
const variable = "MUTANT"

// switched returns the files that have the mutants of those numbers in them, by their paths, and where these stand there.
func switched(mutants map[int]Mutation) (files map[string]string, copies map[string][]copied) {
	files, copies = map[string]string{}, map[string][]copied{}
	in := map[string]map[*function][]int{}
	for number, m := range mutants {
		if in[m.File] == nil {
			in[m.File] = map[*function][]int{}
		}
		in[m.File][m.function] = append(in[m.File][m.function], number)
		files[path.Join(path.Dir(m.File), "mutant__.go")] = fmt.Sprintf(
			"package %s\nimport (\"os\"; \"strconv\")\nvar mutant__, _ = strconv.Atoi(os.Getenv(%q))\n", m.function.pkg, variable)
	}
	for file, functions := range in {
		var text, behind strings.Builder
		source, done := "", 0
		var order []*function
		for f := range functions {
			order = append(order, f)
		}
		slices.SortFunc(order, func(a, b *function) int { return a.from - b.from })
		for _, f := range order {
			source = mutants[functions[f][0]].source
			text.WriteString(source[done:f.body] + " switch mutant__ {")
			done = f.body
			for _, n := range functions[f] {
				call := fmt.Sprintf(f.call, fmt.Sprintf("__%d", n))
				if f.returns {
					call = "return " + call
				} else {
					call += "; return"
				}
				fmt.Fprintf(&text, " case %d: %s;", n, call)
				from := 2 + strings.Count(source, "\n") + strings.Count(behind.String(), "\n")
				behind.WriteString(mutants[n].copied(n) + "\n")
				copies[file] = append(copies[file], copied{n, from, from + strings.Count(mutants[n].copied(n), "\n") + 1})
			}
			text.WriteString(" };")
		}
		files[file] = text.String() + source[done:] + "\n" + behind.String()
	}
	return files, copies
}

// copied returns the mutated function under the name of a copy.
func (m Mutation) copied(number int) string {
	f := m.function
	return m.source[f.from:f.name] + fmt.Sprintf("__%d", number) + m.source[f.name:m.from] + m.by + m.source[m.to:f.to]
}

// parses reports whether a mutant is Go by its form.
func (m Mutation) parses() bool {
	_, err := parser.ParseFile(token.NewFileSet(), m.File, m.Source(), parser.SkipObjectResolution)
	return err == nil
}
