package mutants

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"
)

// Mutation replaces one piece of a file.
type Mutation struct {
	// File is below the module's folder, with slashes. Func is the function or method around the piece, and for a
	// declaration outside of functions the first name it declares; a number follows where the same would stand there twice.
	File, Func string
	Line       int
	// Old and New are the whole lines before and after, without indentation.
	Old, New string

	// source is the whole file as it was found, so that a change of it meanwhile does no harm.
	source   string
	from, to int
	by       string
	// function is what the piece is in; nil if that can't be switched.
	function *function
}

// String is FILE FUNCTION, - OLD and + NEW on three lines.
func (m Mutation) String() string { return m.File + " " + m.Func + "\n- " + m.Old + "\n+ " + m.New }

// Source returns the mutated file.
func (m Mutation) Source() string { return m.source[:m.from] + m.by + m.source[m.to:] }

// Find returns all mutations of a file below root, in the order of the source.
func Find(root, file string) ([]Mutation, error) {
	source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
	if err != nil {
		return nil, errors.Wrap(err, "reading source")
	}
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, errors.Wrap(err, "parsing")
	}
	f := finder{file: set.File(parsed.Pos()), name: file, source: string(source), pkg: parsed.Name.Name}
	for _, d := range parsed.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			f.in = d.Name.Name
			if d.Recv != nil {
				f.in = strings.TrimLeft(f.text(d.Recv.List[0].Type), "*") + "." + f.in
			}
			if d.Body != nil {
				f.function = f.switchable(d)
				f.walk(d.Body, d.Type)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if s, ok := s.(*ast.ValueSpec); ok {
					f.in, f.function = s.Names[0].Name, nil
					f.walk(s, nil)
				}
			}
		}
	}
	slices.SortStableFunc(f.found, func(a, b Mutation) int { return a.from - b.from })
	same := map[string]int{}
	for i, m := range f.found {
		if same[m.String()]++; same[m.String()] > 1 {
			f.found[i].Func += " " + strconv.Itoa(same[m.String()])
		}
	}
	return f.found, nil
}

type finder struct {
	file                  *token.File
	name, pkg, in, source string
	function              *function
	found                 []Mutation
}

func (f *finder) text(n ast.Node) string {
	return f.source[f.file.Offset(n.Pos()):f.file.Offset(n.End())]
}

// replace records that what stands from one place to another is replaced by each of the others.
func (f *finder) replace(from, to token.Pos, by ...string) {
	at, end := f.file.Offset(from), f.file.Offset(to)
	first := strings.LastIndexByte(f.source[:at], '\n') + 1
	last := end + strings.IndexByte(f.source[end:]+"\n", '\n')
	for _, b := range by {
		f.found = append(f.found, Mutation{
			File: f.name, Func: f.in, Line: f.file.Line(from),
			Old: oneLine(f.source[first:last]), New: oneLine(f.source[first:at] + b + f.source[end:last]),
			source: f.source, from: at, to: end, by: b, function: f.function,
		})
	}
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// operators are what each operator is replaced by: one is a boundary or the other side, and both show where a test looks
// at one case only.
var operators = map[token.Token][]string{
	token.LSS: {"<=", ">="}, token.LEQ: {"<", ">"}, token.GTR: {">=", "<="}, token.GEQ: {">", "<"},
	token.EQL: {"!="}, token.NEQ: {"=="},
	token.LAND: {"||"}, token.LOR: {"&&"},
	token.NOT: {""}, token.ADD: {"-"}, token.SUB: {"+"},
	token.CONTINUE: {"break"}, token.BREAK: {"continue"},
	token.ADD_ASSIGN: {"-="}, token.SUB_ASSIGN: {"+="}, token.INC: {"--"}, token.DEC: {"++"},
}

// walk finds the mutations below a node; function is the type of the function that it is the body of.
func (f *finder) walk(root ast.Node, function *ast.FuncType) {
	ast.Inspect(root, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			f.walk(n.Body, n.Type)
			return false
		case *ast.BinaryExpr:
			f.operator(n.OpPos, n.Op)
			if n.Op == token.LAND || n.Op == token.LOR {
				f.condition(n.X)
				f.condition(n.Y)
			}
		case *ast.UnaryExpr:
			f.operator(n.OpPos, n.Op)
		case *ast.IfStmt:
			f.condition(n.Cond)
		case *ast.ForStmt:
			f.condition(n.Cond)
		case *ast.SwitchStmt:
			for _, clause := range n.Body.List {
				for _, e := range clause.(*ast.CaseClause).List {
					if n.Tag == nil {
						f.condition(e)
					}
				}
			}
		case *ast.BasicLit:
			f.constant(n)
		case *ast.Ident:
			if other := map[string]string{"true": "false", "false": "true"}[n.Name]; other != "" {
				f.replace(n.Pos(), n.End(), other)
			}
		case *ast.CallExpr:
			// How much room is made is no promise.
			if made, ok := n.Fun.(*ast.Ident); ok && made.Name == "make" {
				return false
			}
		case *ast.BranchStmt:
			f.operator(n.Pos(), n.Tok)
		case *ast.IncDecStmt:
			f.operator(n.TokPos, n.Tok)
			f.replace(n.Pos(), n.End(), "")
		case *ast.ExprStmt, *ast.DeferStmt:
			// No test can reach what panics because it can't happen.
			if !strings.HasPrefix(f.text(n), "panic(") {
				f.replace(n.Pos(), n.End(), "")
			}
		case *ast.AssignStmt:
			f.assignment(n)
		case *ast.ReturnStmt:
			f.result(n, function)
		}
		return true
	})
}

func (f *finder) operator(at token.Pos, op token.Token) {
	f.replace(at, at+token.Pos(len(op.String())), operators[op]...)
}

// condition negates what isn't made of operators; those are mutated themselves.
func (f *finder) condition(e ast.Expr) {
	switch e.(type) {
	case *ast.CallExpr, *ast.Ident, *ast.SelectorExpr, *ast.IndexExpr:
		f.replace(e.Pos(), e.End(), "!"+f.text(e))
	}
}

func (f *finder) constant(l *ast.BasicLit) {
	n, err := strconv.ParseInt(l.Value, 0, 64)
	if l.Kind != token.INT || err != nil {
		return
	}
	for _, other := range slices.Compact([]int64{n + 1, n - 1, min(n-1, 0)}) {
		f.replace(l.Pos(), l.End(), strconv.FormatInt(other, 10))
	}
}

// assignment takes the effect away and leaves what is computed, so that nothing is unused.
func (f *finder) assignment(a *ast.AssignStmt) {
	f.operator(a.TokPos, a.Tok)
	blank := slices.ContainsFunc(a.Lhs, func(e ast.Expr) bool { return f.text(e) != "_" })
	switch {
	case a.Tok == token.DEFINE, !blank:
	case a.Tok == token.ASSIGN && f.text(a.Rhs[0]) != "nil":
		f.replace(a.Lhs[0].Pos(), a.Lhs[len(a.Lhs)-1].End(), strings.TrimSuffix(strings.Repeat("_, ", len(a.Lhs)), ", "))
	default:
		f.replace(a.Pos(), a.End(), "")
	}
}

// result lets each returned value in turn be its type's zero value.
func (f *finder) result(r *ast.ReturnStmt, function *ast.FuncType) {
	if function == nil || function.Results == nil {
		return
	}
	var types []string
	for _, field := range function.Results.List {
		for range max(1, len(field.Names)) {
			types = append(types, f.text(field.Type))
		}
	}
	if len(types) != len(r.Results) {
		return
	}
	for i, e := range r.Results {
		text := f.text(e)
		switch {
		case text == "true", text == "false":
			// They are replaced by each other already.
		case text == "nil", text == "0", text == `""`, strings.HasSuffix(text, "{}"), strings.HasSuffix(text, "None"):
			// They are zero values, the last by our names of them.
		default:
			f.replace(e.Pos(), e.End(), "*new("+types[i]+")")
		}
	}
}
