package file

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// reader fills settings, goes on after a mistake, and remembers each field's line. It goes by the tags of fields: yaml
// is the name, need the remedy if the field is missing, and words lists the allowed values, for a boolean as word=true
// or word=false.
type reader struct {
	set      *policy.Settings
	values   values
	mistakes Mistakes
	// lines are those of the file's fields, by path.
	lines map[string]int
	// unclear has the paths of fields with a mistake, and around also those of what contains them: mistakes that may
	// follow from those are not added.
	unclear, around map[string]bool
}

func newReader(set *policy.Settings, zones Zones) *reader {
	return &reader{set: set, values: newValues(zones), lines: map[string]int{}, unclear: map[string]bool{}, around: map[string]bool{}}
}

const (
	nullTag  = "!!null"
	mergeTag = "!!merge"
)

// field is a field that a mapping may have.
type field struct {
	name, need string
	words      []string
	index      []int
}

// fieldsOf returns the fields of a struct, with those of inlined structs in place of these.
func fieldsOf(t reflect.Type) []field {
	var list []field
	for i := range t.NumField() {
		f := t.Field(i)
		if name := f.Tag.Get("yaml"); name != ",inline" {
			words := strings.FieldsFunc(f.Tag.Get("words"), func(c rune) bool { return c == ',' })
			list = append(list, field{name, f.Tag.Get("need"), words, f.Index})
			continue
		}
		for _, below := range fieldsOf(f.Type) {
			below.index = append(slices.Clone(f.Index), below.index...)
			list = append(list, below)
		}
	}
	return list
}

func names(fields []field) []string {
	var list []string
	for _, f := range fields {
		list = append(list, f.name)
	}
	return list
}

func below(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}

// has reports whether the file has a field, with a value that isn't null.
func (r *reader) has(at string) bool { return r.lines[at] > 0 }

// unreadable adds the mistake of a field whose value can't be read.
func (r *reader) unreadable(at string, line int, says string) {
	r.markUnclear(at)
	if at == "" {
		at = "the policy"
	}
	r.mistakes.add(line, "%s %s", at, says)
}

// markUnclear notes a field with a mistake.
func (r *reader) markUnclear(at string) {
	r.unclear[at] = true
	for ; at != ""; at = parent(at) {
		r.around[at] = true
	}
}

// wrong adds a mistake in the meaning of fields, unless one of them has a mistake already.
func (r *reader) wrong(m policy.Mistake) {
	for _, f := range append([]string{m.Field}, m.Beside...) {
		if r.around[f] || r.unclear[""] {
			return
		}
		for ; f != ""; f = parent(f) {
			if r.unclear[f] {
				return
			}
		}
	}
	r.markUnclear(m.Field)
	r.mistakes.add(r.line(m.Field), "%s", m.Error())
}

// parent returns the path of what contains a field; empty for the policy itself.
func parent(at string) string { return at[:max(strings.LastIndexAny(at, ".["), 0)] }

// line returns the line of a field, or of what would contain it; 0 if the file has neither.
func (r *reader) line(at string) int {
	for at != "" {
		if line, ok := r.lines[at]; ok {
			return line
		}
		at = parent(at)
	}
	return 0
}

// tidy adds the mistakes of keys that are no text or repeated, and removes the keys: with them, the YAML decoder stops.
func (r *reader) tidy(n *yaml.Node, at string) {
	if n.Kind != yaml.MappingNode {
		i := 0
		for _, c := range n.Content {
			if r.tidy(c, fmt.Sprintf("%s[%d]", at, i)); !isNull(c) {
				i++
			}
		}
		return
	}
	var kept []*yaml.Node
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		path := below(at, key.Value)
		switch line, twice := first[key.Value]; {
		case key.Kind != yaml.ScalarNode:
			r.unreadable(at, key.Line, "has a key that is no text: give a field's name")
		case twice:
			r.unreadable(path, key.Line, fmt.Sprintf("is there already, in line %d: keep one of them", line))
		default:
			first[key.Value] = key.Line
			kept = append(kept, key, value)
		}
		r.tidy(value, path)
	}
	n.Content = kept
}

// whole reports whether the YAML decoder accepts the file. It refuses anchors that contain themselves or expand too
// far.
func (r *reader) whole(root *yaml.Node) bool {
	var anything any
	err := root.Decode(&anything)
	if err != nil {
		r.mistakes = append(r.mistakes, noYAML(err)...)
	}
	return err == nil
}

// resolve returns the node that an alias refers to, or n itself.
func resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// isNull reports whether a value is null, which counts as missing.
func isNull(n *yaml.Node) bool { return n.ShortTag() == nullTag && resolve(n).Kind == yaml.ScalarNode }

// read reads a value. After a mistake, into keeps its value.
func (r *reader) read(n *yaml.Node, into reflect.Value, words []string, at string) {
	if isNull(n) {
		return
	}
	n = resolve(n)
	t := into.Type()
	parse, isValue := r.values[t]
	// The words of a list are those of its elements.
	isWord := len(words) > 0 && t.Kind() != reflect.Slice
	switch {
	case (isValue || isWord) && n.Kind != yaml.ScalarNode:
		r.unreadable(at, n.Line, found(n)+": give one value")
	case isValue:
		if err := parse(n.Value, into.Addr().Interface()); err != nil {
			r.unreadable(at, n.Line, err.Error())
		}
	case isWord:
		r.word(n, into, words, at)
	case t == reflect.TypeFor[policy.Selector]():
		var s selector
		r.read(n, reflect.ValueOf(&s).Elem(), nil, at)
		into.Set(reflect.ValueOf(s.requirements()))
	case t.Kind() == reflect.Pointer:
		into.Set(reflect.New(t.Elem()))
		r.prepare(into.Interface())
		r.read(n, into.Elem(), nil, at)
	case t.Kind() == reflect.Struct && n.Kind == yaml.MappingNode:
		r.mapping(n, into, at)
	case t.Kind() == reflect.Map && n.Kind == yaml.MappingNode:
		r.labels(n, into, at)
	case t.Kind() == reflect.Slice && n.Kind == yaml.SequenceNode:
		r.list(n, into, words, at)
	default:
		if err := n.Decode(into.Addr().Interface()); err != nil {
			r.unreadable(at, n.Line, found(n)+": give "+wanted(t))
		}
	}
}

// word reads one of the allowed words.
func (r *reader) word(n *yaml.Node, into reflect.Value, words []string, at string) {
	var known []string
	for _, w := range words {
		word, means, other := strings.Cut(w, "=")
		known = append(known, word)
		switch {
		case word != n.Value:
		case other:
			into.SetBool(means == "true")
			return
		default:
			into.SetString(word)
			return
		}
	}
	last := len(known) - 1
	r.unreadable(at, n.Line, fmt.Sprintf("is %q: give %s or %s%s", n.Value, strings.Join(known[:last], ", "), known[last], policy.Suggestion(n.Value, known)))
}

// found describes a value of the wrong type.
func found(n *yaml.Node) string {
	switch n.Kind {
	case yaml.SequenceNode:
		return "is a list"
	case yaml.MappingNode:
		return "is a mapping"
	}
	return fmt.Sprintf("is %q", marker.Clip(n.Value, maxFirst))
}

func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return "a mapping"
	case reflect.Slice:
		return "a list"
	case reflect.Int:
		return "a whole number"
	case reflect.Bool:
		return "true or false"
	}
	return "a text"
}

// list reads the elements of a list, each one of the words if there are any. It skips null.
func (r *reader) list(n *yaml.Node, into reflect.Value, words []string, at string) {
	into.SetZero()
	for _, c := range n.Content {
		if isNull(c) {
			continue
		}
		path := fmt.Sprintf("%s[%d]", at, into.Len())
		r.lines[path] = c.Line
		element := reflect.New(into.Type().Elem())
		r.prepare(element.Interface())
		r.read(c, element.Elem(), words, path)
		into.Set(reflect.Append(into, element.Elem()))
	}
}

// labels reads a mapping with any keys.
func (r *reader) labels(n *yaml.Node, into reflect.Value, at string) {
	into.Set(reflect.MakeMap(into.Type()))
	for _, p := range pairs(n) {
		path := below(at, p.name)
		r.lines[path] = p.line
		value := reflect.New(into.Type().Elem()).Elem()
		r.read(p.value, value, nil, path)
		into.SetMapIndex(reflect.ValueOf(p.name), value)
	}
}

// mapping reads fields in the order of the struct: groups come last, since they inherit the other fields.
func (r *reader) mapping(n *yaml.Node, into reflect.Value, at string) {
	fields := fieldsOf(into.Type())
	known := names(fields)
	there, suggested := map[string]pair{}, map[string]bool{}
	for _, p := range pairs(n) {
		if there[p.name] = p; !slices.Contains(known, p.name) {
			suggested[r.unknown(p, below(at, p.name), known)] = true
		}
	}
	for _, f := range fields {
		path, value := below(at, f.name), into.FieldByIndex(f.index)
		p, ok := there[f.name]
		if ok && !isNull(p.value) {
			r.lines[path] = p.line
			r.read(p.value, value, f.words, path)
		}
		empty := !r.has(path) || value.Kind() == reflect.String && value.String() == ""
		switch {
		case !empty || r.unclear[path]:
		case suggested[f.name]:
			r.markUnclear(path)
		case f.need != "":
			r.unreadable(path, cmp.Or(p.line, r.line(at)), "is missing: "+f.need)
		}
	}
	r.check(into.Addr().Interface(), at)
}

// unknown adds the mistake of an unknown field, and returns the known field that was probably meant.
func (r *reader) unknown(p pair, path string, known []string) string {
	nearest, remedy := policy.Nearest(p.name, known), "take it out"
	switch {
	case nearest != "":
		remedy = "the nearest is " + nearest
	case slices.Contains(names(fieldsOf(reflect.TypeFor[document]())), p.name):
		remedy = "it belongs to the policy itself, not to a part of it"
	}
	r.mistakes.add(p.line, "there is no field %s: %s", path, remedy)
	return nearest
}

// pair is a key of a mapping and its value.
type pair struct {
	name  string
	line  int
	value *yaml.Node
}

// pairs returns a mapping's pairs, then those merged into it (<<) whose keys it doesn't have. It skips keys that are
// null.
func pairs(n *yaml.Node) []pair {
	var list, merged []pair
	taken := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch key.ShortTag() {
		case nullTag:
		case mergeTag:
			sources := []*yaml.Node{value}
			if value.Kind == yaml.SequenceNode {
				sources = value.Content
			}
			for _, s := range sources {
				merged = append(merged, pairs(resolve(s))...)
			}
		default:
			taken[key.Value] = true
			list = append(list, pair{key.Value, key.Line, value})
		}
	}
	for _, m := range merged {
		if !taken[m.name] {
			taken[m.name] = true
			list = append(list, m)
		}
	}
	return list
}
