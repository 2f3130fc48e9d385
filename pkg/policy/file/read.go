package file

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/pkg/errors"
	"go.yaml.in/yaml/v3"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// reader fills a document, goes on after a mistake, and remembers where everything stands.
type reader struct {
	mistakes Mistakes
	// lines are those of the fields that stand in the file, by their paths.
	lines map[string]int
	// broken are the paths of fields of which nobody knows what they mean, and around has what they are parts of too: what
	// would follow from that is no mistake.
	broken, around map[string]bool
	// taken counts elements and fields.
	taken int
}

// maxTaken is more than a file of maxSize holds without anchors.
const maxTaken = maxSize

func newReader() *reader {
	return &reader{lines: map[string]int{}, broken: map[string]bool{}, around: map[string]bool{}}
}

const (
	nullTag  = "!!null"
	mergeTag = "!!merge"
)

// field is one that a mapping may have.
type field struct {
	name  string
	index []int
	// need is the remedy if it is missing; empty if it may be.
	need string
}

// fieldsOf lists the fields of a structure, with those of inlined ones in their place.
func fieldsOf(t reflect.Type) []field {
	var list []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, inline := strings.CutSuffix(f.Tag.Get("yaml"), ",inline")
		if !inline {
			list = append(list, field{name, f.Index, f.Tag.Get("need")})
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

// about adds a mistake of a part, if there is one; it begins with the name of the field.
func (r *reader) about(part string, err error) {
	if err != nil {
		name, says, _ := strings.Cut(err.Error(), " ")
		r.wrong(policy.Mistake{Field: below(part, name), Says: says})
	}
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

// read takes a value in. What is wrong stays as if it weren't there.
func (r *reader) read(n *yaml.Node, into reflect.Value, at string) {
	n = meant(n)
	t := into.Type()
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	_, custom := reflect.New(t).Interface().(yaml.Unmarshaler)
	whole := !custom && (t.Kind() == reflect.Struct && n.Kind == yaml.MappingNode || t.Kind() == reflect.Map && n.Kind == yaml.MappingNode ||
		t.Kind() == reflect.Slice && n.Kind == yaml.SequenceNode)
	if !whole {
		r.word(n, into, t, custom, at)
		return
	}
	if into.Kind() == reflect.Pointer {
		into.Set(reflect.New(t))
		into = into.Elem()
	}
	switch t.Kind() {
	case reflect.Struct:
		r.mapping(n, into, at)
	case reflect.Map:
		r.labels(n, into, at)
	default:
		r.list(n, into, at)
	}
}

// word reads one that stands for itself, or nothing at all.
func (r *reader) word(n *yaml.Node, into reflect.Value, t reflect.Type, custom bool, at string) {
	err := n.Decode(into.Addr().Interface())
	if err == nil {
		return
	}
	into.SetZero()
	var typed *yaml.TypeError
	switch is := errors.As(err, &typed); {
	case is && custom:
		r.breaks(at, n.Line, typed.Errors[0])
	case is:
		r.breaks(at, n.Line, given(n)+": give "+wanted(t))
	default:
		r.breaks(at, n.Line, "can't be read: "+strings.TrimPrefix(err.Error(), "yaml: "))
	}
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
	into.Set(reflect.MakeSlice(into.Type(), 0, len(n.Content)))
	for _, c := range n.Content {
		if !r.goesOn() {
			return
		}
		if c.ShortTag() == nullTag && meant(c).Kind == yaml.ScalarNode {
			continue
		}
		path := fmt.Sprintf("%s[%d]", at, into.Len())
		r.lines[path] = c.Line
		element := reflect.New(into.Type().Elem()).Elem()
		r.read(c, element, path)
		into.Set(reflect.Append(into, element))
	}
}

// labels reads a mapping whose keys are anything.
func (r *reader) labels(n *yaml.Node, into reflect.Value, at string) {
	into.Set(reflect.MakeMap(into.Type()))
	for _, p := range r.pairs(n, at) {
		path := below(at, p.name)
		r.lines[path] = p.key.Line
		value := reflect.New(into.Type().Elem()).Elem()
		r.read(p.value, value, path)
		into.SetMapIndex(reflect.ValueOf(p.name), value)
	}
}

func (r *reader) mapping(n *yaml.Node, into reflect.Value, at string) {
	fields := fieldsOf(into.Type())
	known := names(fields)
	var suggested []string
	for _, p := range r.pairs(n, at) {
		path := below(at, p.name)
		i := slices.Index(known, p.name)
		if i < 0 {
			suggested = append(suggested, r.unknown(p, path, known))
			continue
		}
		r.lines[path] = p.key.Line
		r.read(p.value, into.FieldByIndex(fields[i].index), path)
	}
	for _, f := range fields {
		path := below(at, f.name)
		switch {
		case !into.FieldByIndex(f.index).IsZero() || r.broken[path]:
		case slices.Contains(suggested, f.name):
			r.unclear(path)
		case f.need != "":
			line := r.line(path)
			if line == 0 && at != "" {
				line = n.Line
			}
			r.breaks(path, line, "is missing: "+f.need)
		}
	}
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
	r.mistakes.add(p.key.Line, "there is no field %s: %s", path, remedy)
	return nearest
}

// pair is a key of a mapping and what stands there.
type pair struct {
	name       string
	key, value *yaml.Node
}

// pairs lists a mapping, with what is merged into it (<<) and doesn't stand in it itself. A key that is null isn't
// there.
func (r *reader) pairs(n *yaml.Node, at string) []pair {
	return r.merged(n, at, map[string]bool{}, map[*yaml.Node]bool{})
}

// merged lists what isn't taken; open are the mappings that it is merged into.
func (r *reader) merged(n *yaml.Node, at string, taken map[string]bool, open map[*yaml.Node]bool) []pair {
	if open[n] {
		r.breaks(at, n.Line, "is merged into itself: take the << out")
		return nil
	}
	open[n] = true
	defer delete(open, n)
	type raw struct {
		kind yaml.Kind
		text string
	}
	var list []pair
	var source *yaml.Node
	first := map[raw]int{}
	for i := 0; i+1 < len(n.Content) && r.goesOn(); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if line, twice := first[raw{key.Kind, key.Value}]; twice {
			r.breaks(below(at, key.Value), key.Line, fmt.Sprintf("is there already, in line %d: keep one of them", line))
			continue
		}
		first[raw{key.Kind, key.Value}] = key.Line
		var name string
		switch {
		case key.Kind == yaml.ScalarNode && key.ShortTag() == mergeTag:
			source = value
		case key.ShortTag() == nullTag:
		case key.Decode(&name) != nil:
			r.breaks(at, key.Line, "has a key that is no text: give a field's name")
		case !taken[name]:
			list = append(list, pair{name, key, value})
		}
	}
	for _, p := range list {
		taken[p.name] = true
	}
	if source == nil {
		return list
	}
	sources := []*yaml.Node{source}
	if source.Kind == yaml.SequenceNode {
		sources = source.Content
	}
	for _, s := range sources {
		if s = meant(s); s.Kind != yaml.MappingNode {
			r.breaks(at, s.Line, "has something else than a mapping after <<: give an alias of one, or a list of them")
			continue
		}
		list = append(list, r.merged(s, at, taken, open)...)
	}
	return list
}

// meant is what an alias stands for.
func meant(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// goesOn reports whether the reader may take one more thing in. What anchors multiply has no end.
func (r *reader) goesOn() bool {
	if r.taken++; r.taken == maxTaken {
		r.mistakes.add(0, "the anchors of the policy make more of it than can be read: write it out")
	}
	return r.taken < maxTaken
}
