package file

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pkg/errors"
	"go.yaml.in/yaml/v3"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// Pin is a change of what a policy says of the one version that hosts are locked to.
type Pin struct {
	// Group is whose pin it is; empty for the fleet's.
	Group string
	// Version is the pin; empty takes out the one that stands there.
	Version string
	// Downgrade: hosts may go down to it.
	Downgrade bool
}

// forPin is the comment by which a line that came with a pin is known, so that it goes with it.
const forPin = "# for the pin"

// Write returns the text of a policy with the pin. The lines of versions.pin, and of versions.downgrade where it is
// needed, are put in, replaced or taken out, and every other stays to the byte: users keep their comments and their
// order. A policy that can't be changed so is an error, which says what to do.
func (p Pin) Write(content []byte, zones Zones) ([]byte, error) {
	if p.Version != "" && !marker.ValidVersion(p.Version) {
		return nil, errors.Errorf("%q is not a version: give one such as 1.27.0", p.Version)
	}
	if !utf8.Valid(content) {
		return nil, p.byHand("it is not UTF-8")
	}
	zones = once(zones)
	if blank(content) {
		return p.begin(content, zones)
	}
	before, err := Decode(content, policy.DefaultSettings(), zones)
	if err != nil {
		return nil, err
	}
	group, err := p.scope(&before)
	if err != nil {
		return nil, err
	}
	var root yaml.Node
	if err := yaml.Unmarshal(content, &root); err != nil {
		return nil, noYAML(err)
	}
	t := newText(string(content))
	in, anchor := resolve(root.Content[0]), "version"
	if p.Group != "" {
		in, anchor = groupNode(in, p.Group), "name"
	}
	if in == nil {
		return nil, p.byHand("group %s is not written as such a mapping", p.Group)
	}
	if err := p.edit(t, in, anchor, versionsOf(&before, group)); err != nil {
		return nil, err
	}
	out := []byte(t.edited())
	return out, p.verify(out, &before, group, zones)
}

// begin returns a policy that has the pin and nothing else, behind what comments there are.
func (p Pin) begin(content []byte, zones Zones) ([]byte, error) {
	switch {
	case p.Group != "":
		return nil, errors.Errorf("group %q is not in the policy, which is empty", p.Group)
	case p.Version == "":
		return content, nil
	}
	begun := string(content)
	if begun != "" && !strings.HasSuffix(begun, "\n") {
		begun += "\n"
	}
	out := fmt.Appendf(nil, "%sversion: %d\nversions:\n%s\n", begun, Version, strings.Join(p.lines("  ", p.Downgrade), "\n"))
	before := policy.DefaultSettings()
	return out, p.verify(out, &before, -1, zones)
}

// blank reports whether a policy is not begun.
func blank(content []byte) bool {
	var root yaml.Node
	return errors.Is(yaml.NewDecoder(bytes.NewReader(content)).Decode(&root), io.EOF)
}

// once returns zones that are found once: so the same zone is the same value.
func once(zones Zones) Zones {
	found := map[string]*time.Location{}
	return func(name string) (*time.Location, error) {
		if at := found[name]; at != nil {
			return at, nil
		}
		at, err := zones(name)
		found[name] = at
		return at, err
	}
}

// scope returns the place of the group, -1 for the fleet, if a pin may stand there.
func (p Pin) scope(set *policy.Settings) (int, error) {
	at := slices.IndexFunc(set.Groups, func(g policy.Group) bool { return g.Name == p.Group })
	if p.Group != "" && at < 0 {
		var names []string
		for _, g := range set.Groups {
			names = append(names, g.Name)
		}
		return 0, errors.Errorf("group %q is not in the policy: it has %q", p.Group, names)
	}
	if p.Group == "" {
		at = -1
	}
	if p.Version == "" {
		return at, nil
	}
	held := func(v *policy.HostVersions, of string) error {
		if v.Hold == "" {
			return nil
		}
		return errors.Errorf("%sthe policy has versions.hold: %s, and a pin can't stand beside it: take the hold out of the policy, then say this again", of, v.Hold)
	}
	if err := held(versionsOf(set, at), ""); err != nil || at >= 0 {
		return at, err
	}
	for i := range set.Groups {
		g := &set.Groups[i]
		if err := held(&g.Versions, "of group "+g.Name+" "); err != nil && (g.Versions.Pin == "" || g.Versions.Pin == set.Versions.Pin) {
			return 0, err
		}
	}
	return at, nil
}

// versionsOf returns the versions of the group at a place, those of the fleet at -1.
func versionsOf(set *policy.Settings, group int) *policy.HostVersions {
	if group < 0 {
		return &set.Versions
	}
	return &set.Groups[group].Versions
}

// byHand is the error of a policy that can't be changed without touching more.
func (p Pin) byHand(format string, args ...any) error {
	why := fmt.Sprintf(format, args...)
	if p.Version == "" {
		return errors.Errorf("the policy's text can't be changed in these lines alone, since %s: take versions.pin out by hand", why)
	}
	return errors.Errorf("the policy's text can't be changed in these lines alone, since %s: write versions.pin: %s by hand", why, p.Version)
}

// child returns a field of a mapping, nil if it has none of that name.
func child(m *yaml.Node, name string) (key, value *yaml.Node) {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == name && m.Content[i].Kind == yaml.ScalarNode {
			return m.Content[i], m.Content[i+1]
		}
	}
	return nil, nil
}

// groupNode returns the mapping of a group; nil if it isn't written as one.
func groupNode(root *yaml.Node, name string) *yaml.Node {
	_, list := child(root, "groups")
	if list == nil || list.Kind != yaml.SequenceNode {
		return nil
	}
	for _, g := range list.Content {
		if g.Kind != yaml.MappingNode {
			continue
		}
		if _, of := child(g, "name"); of != nil && resolve(of).Value == name {
			return g
		}
	}
	return nil
}

// lines are those of a new pin.
func (p Pin) lines(indent string, downgrade bool) []string {
	lines := []string{indent + "pin: " + p.Version}
	if downgrade {
		lines = append(lines, indent+"downgrade: true "+forPin)
	}
	return lines
}

// inline is a new pin within braces.
func (p Pin) inline(downgrade bool) string {
	if downgrade {
		return "pin: " + p.Version + ", downgrade: true"
	}
	return "pin: " + p.Version
}

// edit changes the text of the mapping that has the versions, or is to have them behind its first field, anchor.
func (p Pin) edit(t *text, in *yaml.Node, anchor string, stands *policy.HostVersions) error {
	key, versions := child(in, "versions")
	downgrade := p.Downgrade && !stands.Downgrade
	switch {
	case versions != nil && versions.Kind == yaml.AliasNode:
		return p.byHand("versions in line %d is an alias", versions.Line)
	case p.Version == "" && (versions == nil || isNull(versions)):
		return p.inherits(stands)
	case p.Version == "":
		return p.takeOut(t, in, key, versions, stands)
	case versions == nil:
		return p.putVersions(t, in, anchor, downgrade)
	case isNull(versions):
		return p.putIntoNull(t, in, key, versions, downgrade)
	case versions.Kind != yaml.MappingNode:
		return p.byHand("versions in line %d is no mapping", versions.Line)
	}
	return p.putInto(t, key, versions, downgrade)
}

// inherits is the error of a group that has no pin of its own to take out, while the fleet's holds for it.
func (p Pin) inherits(stands *policy.HostVersions) error {
	if p.Group == "" || stands.Pin == "" {
		return nil
	}
	return errors.Errorf("group %s has no pin of its own, the fleet's versions.pin: %s holds for it: take out that one, or give the group another pin", p.Group, stands.Pin)
}

func (p Pin) putVersions(t *text, in *yaml.Node, anchor string, downgrade bool) error {
	key, value := child(in, anchor)
	if key == nil {
		return p.byHand("%s is not in line %d", anchor, in.Line)
	}
	_, end, ok := t.scalar(value)
	if !ok {
		return p.byHand("%s in line %d is no plain value", anchor, value.Line)
	}
	if in.Style&yaml.FlowStyle != 0 {
		t.put(end, end, ", versions: {"+p.inline(downgrade)+"}")
		return nil
	}
	indent := strings.Repeat(" ", key.Column-1)
	t.putLines(end, append([]string{indent + "versions:"}, p.lines(indent+"  ", downgrade)...))
	return nil
}

func (p Pin) putIntoNull(t *text, in, key, versions *yaml.Node, downgrade bool) error {
	colon, ok := t.colon(key)
	switch from, to, written := t.scalar(versions); {
	case written:
		t.put(from, to, "{"+p.inline(downgrade)+"}")
	case !ok:
		return p.byHand("versions in line %d has no value", key.Line)
	case in.Style&yaml.FlowStyle != 0:
		t.put(colon, colon, " {"+p.inline(downgrade)+"}")
	default:
		t.putLines(colon, p.lines(strings.Repeat(" ", key.Column+1), downgrade))
	}
	return nil
}

// putInto puts the pin into versions that have other fields, or another pin.
func (p Pin) putInto(t *text, key, versions *yaml.Node, downgrade bool) error {
	pinKey, pin := child(versions, "pin")
	downKey, down := child(versions, "downgrade")
	if pin != nil {
		if err := p.replace(t, pinKey, pin, p.Version); err != nil {
			return err
		}
	}
	if downgrade && down != nil {
		if err := p.replace(t, downKey, down, "true"); err != nil {
			return err
		}
		downgrade = false
	}
	if pin != nil && !downgrade {
		return nil
	}
	if versions.Style&yaml.FlowStyle != 0 {
		at := t.offset(versions) + 1
		if at < 1 || t.content[at-1] != '{' {
			return p.byHand("versions in line %d does not begin with a brace", versions.Line)
		}
		more := p.inline(downgrade)
		if pin != nil {
			more = "downgrade: true"
		}
		if len(versions.Content) > 0 {
			more += ", "
		}
		t.put(at, at, more)
		return nil
	}
	// A comment above a field stays above it.
	lines, below := p.lines(strings.Repeat(" ", versions.Content[0].Column-1), downgrade), key
	if pin != nil {
		lines, below = lines[1:], pinKey
	}
	at, ok := t.colon(below)
	if !ok {
		return p.byHand("%s in line %d is no plain key", below.Value, below.Line)
	}
	t.putLines(at, lines)
	return nil
}

// replace puts another value in the place of one, and keeps its quotes.
func (p Pin) replace(t *text, key, value *yaml.Node, with string) error {
	from, to, ok := t.scalar(value)
	if !ok {
		at, colon := t.colon(key)
		if !colon || !isNull(value) || value.Value != "" {
			return p.byHand("%s in line %d is no plain value", key.Value, key.Line)
		}
		from, to, with = at, at, " "+with
	} else if quote := t.content[from]; (quote == '"' || quote == '\'') && key.Value == "pin" {
		with = string(quote) + with + string(quote)
	}
	t.put(from, to, with)
	return nil
}

// takeOut takes the pin out, with the line that came with it.
func (p Pin) takeOut(t *text, in, key, versions *yaml.Node, stands *policy.HostVersions) error {
	if versions.Kind != yaml.MappingNode {
		return p.byHand("versions in line %d is no mapping", versions.Line)
	}
	pinKey, pin := child(versions, "pin")
	switch {
	case pin == nil || isNull(pin):
		return p.inherits(stands)
	case resolve(pin).Value == "":
		// A group that says so has no pin, whatever the fleet's is.
		return nil
	}
	if versions.Style&yaml.FlowStyle != 0 {
		return p.takeOutInline(t, pinKey, pin)
	}
	left := len(versions.Content)/2 - 1
	from, to, err := p.extent(t, pinKey, pin)
	if err != nil {
		return err
	}
	if _, ok := t.alone(from, to); !ok {
		return p.byHand("versions.pin is not alone in line %d", pinKey.Line)
	}
	t.dropLine(from)
	if downKey, down := child(versions, "downgrade"); down != nil {
		from, to, err := p.extent(t, downKey, down)
		if err != nil {
			return err
		}
		if comment, ok := t.alone(from, to); ok && comment == forPin {
			t.dropLine(from)
			left--
		}
	}
	// Nothing is said of versions any more. Where a group begins with them, or a comment stands there, they stay.
	at, ok := t.colon(key)
	if comment, is := t.alone(t.offset(key), at); left == 0 && ok && is && comment == "" && in.Style&yaml.FlowStyle == 0 {
		t.dropLine(at)
	}
	return nil
}

// extent is from where to where a field stands.
func (p Pin) extent(t *text, key, value *yaml.Node) (from, to int, err error) {
	from = t.offset(key)
	colon, ok := t.colon(key)
	if _, end, written := t.scalar(value); written {
		return from, end, nil
	}
	if !ok || !isNull(value) || value.Value != "" {
		return 0, 0, p.byHand("%s in line %d is no plain value", key.Value, key.Line)
	}
	return from, colon, nil
}

// takeOutInline takes the pin out from between braces, with the comma behind it or before it.
func (p Pin) takeOutInline(t *text, key, value *yaml.Node) error {
	from, to, err := p.extent(t, key, value)
	if err != nil {
		return err
	}
	const blanks = " \t"
	behind := strings.TrimLeft(t.content[to:], blanks)
	before := strings.TrimRight(t.content[:from], blanks)
	switch {
	case strings.HasPrefix(behind, ","):
		to = len(t.content) - len(strings.TrimLeft(behind[1:], blanks))
	case strings.HasSuffix(before, ","):
		from = len(before) - 1
	}
	if _, ok := t.alone(from, to); ok {
		t.dropLine(from)
		return nil
	}
	t.put(from, to, "")
	return nil
}

// verify returns an error if the text says anything else than the policy before with the pin. Whatever the text was, so
// a change of it touches nothing else.
func (p Pin) verify(out []byte, before *policy.Settings, group int, zones Zones) error {
	after, err := Decode(out, policy.DefaultSettings(), zones)
	if err != nil {
		var mistakes Mistakes
		if errors.As(err, &mistakes) && p.Version != "" {
			return errors.WithMessagef(err, "with versions.pin: %s", p.Version)
		}
		return p.byHand("it would not be one any more (%v)", err)
	}
	if len(after.Groups) != len(before.Groups) {
		return p.byHand("its groups would change")
	}
	now := versionsOf(&after, group)
	if p.Version != "" && (now.Pin != p.Version || p.Downgrade && !now.Downgrade) {
		return p.byHand("that says it in another way")
	}
	for i := range after.Groups {
		if pin := before.Groups[i].Versions.Pin; group < 0 && pin != before.Versions.Pin && after.Groups[i].Versions.Pin != pin {
			return p.byHand("the pin of group %s would change", after.Groups[i].Name)
		}
	}
	if !reflect.DeepEqual(unpinned(before, group), unpinned(&after, group)) {
		return p.byHand("more would change than the pin")
	}
	return nil
}

// unpinned returns settings without what a pin of that group may change, or of the fleet, whose groups follow it.
func unpinned(set *policy.Settings, group int) policy.Settings {
	out := *set
	out.Groups = slices.Clone(set.Groups)
	strip := func(v *policy.HostVersions) { v.Pin, v.Downgrade = "", false }
	for i := range out.Groups {
		if group < 0 || i == group {
			strip(&out.Groups[i].Versions)
		}
	}
	if group < 0 {
		strip(&out.Versions)
	}
	return out
}
