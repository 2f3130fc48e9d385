package file

import (
	_ "embed"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

//go:embed default.yaml
var byDefault []byte

// documented are the default of each field, and what it does, by docs/policy.md.
func documented(t *testing.T) map[string][2]string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/policy.md")
	assert.NilError(t, err)
	_, table, begins := strings.Cut(string(page), "<!-- fields:begin -->")
	table, _, ends := strings.Cut(table, "<!-- fields:end -->")
	assert.Assert(t, begins && ends)
	documented := map[string][2]string{}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(line, "|\n"), "|")
		if len(cells) != 3 || !strings.Contains(cells[0], "`") {
			continue
		}
		names, defaults := strings.Split(cells[0], ","), strings.Split(cells[1], ",")
		for i, name := range names {
			value := ""
			if len(defaults) == len(names) {
				value = strings.Trim(defaults[i], " `")
			}
			documented[strings.Trim(name, " `")] = [2]string{value, strings.TrimSpace(cells[2])}
		}
	}
	return documented
}

// docs/policy.md has a line for every field, and none for another, with the default that the example has.
func TestEveryFieldIsDocumented(t *testing.T) {
	documented := documented(t)
	var fields []string
	for _, f := range paths("", reflect.TypeFor[document]()) {
		// What a group shares with the fleet stands there once.
		if group, inGroup := strings.CutPrefix(f, "groups[]."); !inGroup || !slices.Contains(fields, group) {
			fields = append(fields, f)
		}
	}
	var tree map[string]any
	assert.NilError(t, yaml.Unmarshal(byDefault, &tree))
	for _, f := range fields {
		value, ok := documented[f]
		assert.Check(t, ok, "docs/policy.md has no line for %s", f)
		delete(documented, f)
		if example, ok := lookUp(tree, f); ok && f != "version" && example != "" {
			assert.Check(t, value[0] == example, "docs/policy.md gives %s the default %q, and the example %q", f, value[0], example)
		}
	}
	assert.Check(t, len(documented) == 0, "docs/policy.md tells of fields that there aren't: %v", documented)
}

// paths lists what can be written, to the single words.
func paths(at string, t reflect.Type) []string {
	_, isValue := newValues(nil)[t]
	switch {
	case isValue, t == reflect.TypeFor[policy.Selector]():
		return []string{at}
	case t.Kind() == reflect.Pointer:
		return paths(at, t.Elem())
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		return paths(at+"[]", t.Elem())
	case t.Kind() != reflect.Struct:
		return []string{at}
	}
	var list []string
	for _, f := range fieldsOf(t) {
		list = append(list, paths(below(at, f.name), t.FieldByIndex(f.index).Type)...)
	}
	return list
}

// lookUp finds a field that is one word in the example.
func lookUp(tree map[string]any, field string) (string, bool) {
	first, rest, deeper := strings.Cut(field, ".")
	value, ok := tree[first]
	if below, isMap := value.(map[string]any); ok && deeper && isMap {
		return lookUp(below, rest)
	}
	text, err := yaml.Marshal(value)
	if !ok || deeper || err != nil || value == nil || reflect.TypeOf(value).Kind() == reflect.Slice {
		return "", false
	}
	return strings.Trim(string(text), "\n\""), true
}
