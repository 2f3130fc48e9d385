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

// reader fills settings, goes on after a mistake, and remembers where everything stands. It goes by the tags of fields:
// yaml has the name, need the remedy if the field is missing, and words those that it may be, each with what is meant if
// that is something else.
type reader struct {
	set      *policy.Settings
	values   values
	mistakes Mistakes
	// lines are those of the fields that stand in the file, by their paths.
	lines map[string]int
	// broken are the paths of fields of which nobody knows what they mean, and around has what they are parts of too: what
	// would follow from that is no mistake.
	broken, around map[string]bool
}

func newReader(set *policy.Settings, zones Zones) *reader {
	return &reader{set: set, values: newValues(zones), lines: map[string]int{}, broken: map[string]bool{}, around: map[string]bool{}}
}

const (
	nullTag  = "!!null"
	mergeTag = "!!merge"
)

// field is one that a mapping may have.
type field struct {
	name, need string
	words      []string
	index      []int
}

// fieldsOf lists the fields of a structure, with those of inlined ones in their place.
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

// has reports whether a field stands in the file, and is not null.
func (r *reader) has(at string) bool { return r.lines[at] > 0 }

// breaks adds a mistake in what a field says.
func (r *reader) breaks(at string, line int, says string) {
	r.unclear(at)
	if at == "" {
		at = "the policy"
	}
	r.mistakes.add(line, "%s %s", at, says)
}

// unclear notes a field of which nobody knows what it means.
func (r *reader) unclear(at string) {
	r.broken[at] = true
	for ; at != ""; at = parent(at) {
		r.around[at] = true
	}
}

// wrong adds a mistake in what fields mean, unless that of one of them isn't known anyway.
func (r *reader) wrong(m policy.Mistake) {
	for _, f := range append([]string{m.Field}, m.Beside...) {
		if r.around[f] || r.broken[""] {
			return
		}
		for ; f != ""; f = parent(f) {
			if r.broken[f] {
				return
			}
		}
	}
	r.unclear(m.Field)
	r.mistakes.add(r.line(m.Field), "%s", m.Error())
}

// parent is what a field is a part of; empty for what stands in the policy itself.
func parent(at string) string { return at[:max(strings.LastIndexAny(at, ".["), 0)] }

// line is where a field stands, or what it would be a part of; 0 if neither does.
func (r *reader) line(at string) int {
	for at != "" {
		if line, ok := r.lines[at]; ok {
			return line
		}
		at = parent(at)
	}
	return 0
}

// tidy takes out the keys of mappings that are no text or stand there twice, behind which the YAML decoder doesn't
// look.
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
			r.breaks(at, key.Line, "has a key that is no text: give a field's name")
		case twice:
			r.breaks(path, key.Line, fmt.Sprintf("is there already, in line %d: keep one of them", line))
		default:
			first[key.Value] = key.Line
			kept = append(kept, key, value)
		}
		r.tidy(value, path)
	}
	n.Content = kept
}

// whole reports whether the YAML decoder takes what the file has, whatever that means. It refuses anchors that contain
// themselves or multiply beyond measure.
func (r *reader) whole(root *yaml.Node) bool {
	var anything any
	err := root.Decode(&anything)
	if err != nil {
		r.mistakes = append(r.mistakes, noYAML(err)...)
	}
	return err == nil
}

// meant is what an alias stands for.
func meant(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// isNull reports whether a value is as if it weren't there.
func isNull(n *yaml.Node) bool { return n.ShortTag() == nullTag && meant(n).Kind == yaml.ScalarNode }

// read takes a value in. What is wrong stays as it was.
func (r *reader) read(n *yaml.Node, into reflect.Value, words []string, at string) {
	if isNull(n) {
		return
	}
	n = meant(n)
	t := into.Type()
	parse, isValue := r.values[t]
	switch {
	case (isValue || len(words) > 0) && n.Kind != yaml.ScalarNode:
		r.breaks(at, n.Line, given(n)+": give one value")
	case isValue:
		if err := parse(n.Value, into.Addr().Interface()); err != nil {
			r.breaks(at, n.Line, err.Error())
		}
	case len(words) > 0:
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
		r.list(n, into, at)
	default:
		if err := n.Decode(into.Addr().Interface()); err != nil {
			r.breaks(at, n.Line, given(n)+": give "+wanted(t))
		}
	}
}

// word reads one of a closed list.
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
	r.breaks(at, n.Line, fmt.Sprintf("is %q: give %s or %s%s", n.Value, strings.Join(known[:last], ", "), known[last], policy.Suggestion(n.Value, known)))
}

// given is what stands where something else belongs.
func given(n *yaml.Node) string {
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

// list reads elements. One that is null isn't there.
func (r *reader) list(n *yaml.Node, into reflect.Value, at string) {
	into.SetZero()
	for _, c := range n.Content {
		if isNull(c) {
			continue
		}
		path := fmt.Sprintf("%s[%d]", at, into.Len())
		r.lines[path] = c.Line
		element := reflect.New(into.Type().Elem())
		r.prepare(element.Interface())
		r.read(c, element.Elem(), nil, path)
		into.Set(reflect.Append(into, element.Elem()))
	}
}

// labels reads a mapping whose keys are anything.
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

// mapping reads fields in the order of the structure: groups have what the rest says.
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
		case !empty || r.broken[path]:
		case suggested[f.name]:
			r.unclear(path)
		case f.need != "":
			r.breaks(path, cmp.Or(p.line, r.line(at)), "is missing: "+f.need)
		}
	}
	r.check(into.Addr().Interface(), at)
}

// unknown adds the mistake of a field that there isn't, and returns the one that was probably meant.
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

// pair is a key of a mapping and what stands there.
type pair struct {
	name  string
	line  int
	value *yaml.Node
}

// pairs lists a mapping, and behind that what is merged into it (<<) and doesn't stand in it itself. A key that is null
// isn't there.
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
				merged = append(merged, pairs(meant(s))...)
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
