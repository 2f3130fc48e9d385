package main

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
// stands there says otherwise stays, and so do the comments.
func withPause(text, group string, p policy.Pause) (string, error) {
	return edited(text, group, func(m *yaml.Node) {
		at := value(m, "pause")
		if at == nil || at.Kind != yaml.MappingNode {
			at = &yaml.Node{Kind: yaml.MappingNode}
			put(m, "pause", at)
		}
		put(at, "reason", scalar(p.Reason))
		if p.InFlight != "" {
			put(at, "inFlight", scalar(string(p.InFlight)))
		}
	}, func(s *policy.Pause) bool {
		return s != nil && s.Reason == p.Reason && (p.InFlight == "" || s.InFlight == p.InFlight)
	})
}

// withoutPause is a policy's text without that pause.
func withoutPause(text, group string) (string, error) {
	return edited(text, group, func(m *yaml.Node) { remove(m, "pause") }, func(s *policy.Pause) bool { return s == nil })
}

// edited changes the mapping of the fleet or a group, unless it is as it is wanted already. A policy with a mistake
// isn't in force, so nothing that is written into it would be.
func edited(text, group string, edit func(mapping *yaml.Node), wanted func(*policy.Pause) bool) (string, error) {
	now, err := pauseIn(text, group)
	if err != nil || wanted(now) {
		return text, err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return "", err
	}
	m := doc.Content[0]
	if group != "" {
		if m = groupIn(m, group); m == nil {
			return "", errors.Errorf("group %q is not written out where it stands: edit the policy by hand", group)
		}
	}
	edit(m)
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := e.Encode(&doc); err != nil {
		return "", err
	}
	after := spaced(out.String(), text)
	if now, err = pauseIn(after, group); err != nil || !wanted(now) {
		// Anchors and merged mappings can do this.
		return "", errors.New("the pause can't be changed without changing more: edit the policy by hand")
	}
	return after, nil
}

// pauseIn returns the pause of a group, or of the fleet.
func pauseIn(text, group string) (*policy.Pause, error) {
	set, err := file.Decode([]byte(text), policy.DefaultSettings(), time.LoadLocation)
	if err != nil {
		return nil, errors.WithMessage(err, "the policy has a mistake and is not in force, so a change of it would do nothing; correct it first")
	}
	if group == "" {
		return set.Pause, nil
	}
	var names []string
	for _, g := range set.Groups {
		if g.Name == group {
			return g.Pause, nil
		}
		names = append(names, g.Name)
	}
	return nil, errors.Errorf("group %q is not in the policy: it has %q", group, names)
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
