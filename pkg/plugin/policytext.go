package plugin

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/pkg/errors"
	"go.yaml.in/yaml/v3"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/file"
)

// emptyPolicy says nothing but that it is one.
const emptyPolicy = "version: 1\n"

// withPause is a policy's text with a pause of a group, or of the fleet if there is no group. What the pause that
// stands there says otherwise stays, and so do the comments. A pause for the same reason by the same person stays as it
// is.
func withPause(text, group string, w word, inFlight policy.Ending) (after string, mistake, err error) {
	return edited(text, group, func(m *yaml.Node) {
		at := value(m, "pause")
		if at == nil || at.Kind != yaml.MappingNode {
			at = &yaml.Node{Kind: yaml.MappingNode}
			put(m, "pause", at)
		}
		put(at, "reason", scalar(w.String()))
		if inFlight != "" {
			put(at, "inFlight", scalar(string(inFlight)))
		}
	}, func(p *policy.Pause) bool {
		return p != nil && w.repeats(p.Reason) && (inFlight == "" || p.InFlight == inFlight)
	})
}

// withoutPause is a policy's text without that pause.
func withoutPause(text, group string) (after string, mistake, err error) {
	return edited(text, group, func(m *yaml.Node) { remove(m, "pause") }, func(p *policy.Pause) bool { return p == nil })
}

// edited changes the mapping of the fleet or a group, unless it is as it is wanted already. A mistake elsewhere in the
// policy is no error where the pause of the fleet is changed, which counts all the same.
func edited(text, group string, edit func(mapping *yaml.Node), wanted func(*policy.Pause) bool) (after string, mistake, err error) {
	now, mistake, err := pauseIn(text, group)
	if err != nil {
		return "", mistake, err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil || len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return "", mistake, errors.Errorf("what stands there is no policy, so no pause can stand in it: %v; correct it, or pause nodes by name. "+
			"A controller that read a good one before goes on by that, any other starts nothing", mistake)
	}
	if wanted(now) {
		return text, mistake, nil
	}
	m := doc.Content[0]
	if group != "" {
		if m = groupIn(m, group); m == nil {
			return "", nil, errors.Errorf("group %q is not written out where it stands: edit the policy by hand", group)
		}
	}
	edit(m)
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := e.Encode(&doc); err != nil {
		return "", mistake, err
	}
	after = spaced(out.String(), text)
	if now, mistake, err = pauseIn(after, group); err != nil || !wanted(now) {
		// Anchors and merged mappings can do this.
		return "", mistake, errors.New("the pause can't be changed without changing more: edit the policy by hand")
	}
	return after, mistake, nil
}

// pauseIn returns the pause of a group, or of the fleet, which counts also beside a mistake.
func pauseIn(text, group string) (pause *policy.Pause, mistake, err error) {
	set, mistake := file.Decode([]byte(text), policy.DefaultSettings(), time.LoadLocation)
	switch {
	case group == "" && mistake != nil:
		return file.Pause([]byte(text)), mistake, nil
	case group == "":
		return set.Pause, nil, nil
	case mistake != nil:
		return nil, mistake, errors.WithMessage(mistake, "the policy has a mistake, and only the pause of the fleet counts in it; correct it first, or pause the fleet")
	}
	var names []string
	for _, g := range set.Groups {
		if g.Name == group {
			return g.Pause, nil, nil
		}
		names = append(names, g.Name)
	}
	return nil, nil, errors.Errorf("group %q is not in the policy: it has %q", group, names)
}

// groupIn finds a group's mapping.
func groupIn(m *yaml.Node, name string) *yaml.Node {
	groups := value(m, "groups")
	if groups == nil {
		return nil
	}
	i := slices.IndexFunc(groups.Content, func(g *yaml.Node) bool {
		n := value(g, "name")
		return n != nil && n.Value == name
	})
	if i < 0 {
		return nil
	}
	return groups.Content[i]
}

func scalar(text string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(text)
	return n
}

// value is what stands at a key of a mapping; nil if nothing does.
func value(m *yaml.Node, key string) *yaml.Node {
	if i := index(m, key); i >= 0 {
		return m.Content[i+1]
	}
	return nil
}

func index(m *yaml.Node, key string) int {
	if m.Kind != yaml.MappingNode {
		return -1
	}
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			return i
		}
	}
	return -1
}

// put sets a key, in its place if it is there.
func put(m *yaml.Node, key string, n *yaml.Node) {
	if i := index(m, key); i >= 0 {
		n.LineComment = m.Content[i+1].LineComment
		m.Content[i+1] = n
		return
	}
	m.Content = append(m.Content, scalar(key), n)
}

// remove takes a key away, and gives the comment above it to what comes after.
func remove(m *yaml.Node, key string) {
	i := index(m, key)
	if i < 0 {
		return
	}
	comment := m.Content[i].HeadComment
	m.Content = slices.Delete(m.Content, i, i+2)
	switch {
	case comment == "":
	case i < len(m.Content):
		m.Content[i].HeadComment = join(comment, m.Content[i].HeadComment)
	case i > 0:
		m.Content[i-2].FootComment = join(m.Content[i-2].FootComment, comment)
	}
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n\n" + b
}

// spaced puts the empty lines back that the encoder drops: one before each line that one stood before.
func spaced(text, was string) string {
	old := strings.Split(was, "\n")
	var out []string
	next := 0
	for _, line := range strings.Split(text, "\n") {
		if i := slices.Index(old[next:], line); line != "" && i >= 0 {
			next += i + 1
			if next >= 2 && old[next-2] == "" && len(out) > 0 && out[len(out)-1] != "" {
				out = append(out, "")
			}
		}
		out = append(out, line)
	}
	spaced := strings.Join(out, "\n")
	// In a text of several lines an empty one is no space.
	var a, b any
	if yaml.Unmarshal([]byte(text), &a) != nil || yaml.Unmarshal([]byte(spaced), &b) != nil || !reflect.DeepEqual(a, b) {
		return text
	}
	return spaced
}
