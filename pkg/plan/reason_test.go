package plan_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// The list of reasons is closed: each constant is in it once, named like its value, explained nowhere
// else, and used; nothing makes a Reason of its own.
func TestReasons(t *testing.T) {
	values, used := map[string]string{}, map[string]int{}
	files, err := filepath.Glob("*.go")
	assert.NilError(t, err)
	for _, planner := range []string{"../planner/*.go", "../planner/*/*.go"} {
		more, err := filepath.Glob(planner)
		assert.NilError(t, err)
		files = append(files, more...)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		assert.NilError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for i, name := range n.Names {
					if i < len(n.Values) && strings.HasPrefix(name.Name, "Reason") {
						if lit, ok := n.Values[i].(*ast.BasicLit); ok {
							value, err := strconv.Unquote(lit.Value)
							assert.NilError(t, err)
							values[name.Name] = value
						}
					}
				}
			case *ast.Ident:
				if path != "reason.go" {
					used[n.Name]++
				}
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.Ident); ok && f.Name == "Reason" {
					t.Errorf("%s makes a Reason of something else", path)
				}
			}
			return true
		})
	}
	assert.Equal(t, len(values), len(plan.Reasons()))
	seen := map[plan.Reason]bool{}
	for _, r := range plan.Reasons() {
		assert.Assert(t, !seen[r], "%s stands there twice", r)
		seen[r] = true
	}
	for name, value := range values {
		assert.Equal(t, name, "Reason"+value)
		assert.Assert(t, slices.Contains(plan.Reasons(), plan.Reason(value)), value)
		assert.Assert(t, used[name] > 0, "nothing uses %s", name)
	}
}

// Few reasons pass by themselves, and a node waits by those that are no step's, but for that it is up to date.
func TestKindsOfReasons(t *testing.T) {
	of := func(is func(plan.Reason) bool) []plan.Reason {
		return slices.DeleteFunc(plan.Reasons(), func(r plan.Reason) bool { return !is(r) })
	}
	assert.DeepEqual(t, of(plan.Reason.Passing), []plan.Reason{plan.ReasonAlertsUnknown, plan.ReasonLooking})
	assert.DeepEqual(t, of(plan.Reason.Patient), []plan.Reason{plan.ReasonBudgetBlocks, plan.ReasonPodProtected, plan.ReasonEvictionBlocked, plan.ReasonWriteFailing})
	for r, waits := range map[plan.Reason]bool{plan.ReasonAnnotationUnreadable: true, plan.ReasonLabelRemoved: true, plan.ReasonUpToDate: false, plan.ReasonManaged: false, plan.ReasonNodeGone: false} {
		assert.Equal(t, r.Waits(), waits, "%s", r)
	}
	for r, troubling := range map[plan.Reason]bool{plan.ReasonLost: true, plan.ReasonUpToDate: false, plan.ReasonVersionStopped: false} {
		assert.Equal(t, r.Troubling(), troubling, "%s", r)
	}
}
