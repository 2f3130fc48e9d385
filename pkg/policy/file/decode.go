package file

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pkg/errors"
	"go.yaml.in/yaml/v3"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/window"
)

// Version is the only one that this package reads.
const Version = 1

// maxSize is far above any policy, and below what a ConfigMap holds.
const maxSize = 512 << 10

// Zones finds a time zone by its IANA name; time.LoadLocation is one.
type Zones func(name string) (*time.Location, error)

// document is what stands in the file.
type document struct {
	Version         int `yaml:"version" need:"begin with version: 1"`
	policy.Settings `yaml:",inline"`
}

// Decode reads a policy file. What it leaves out is as in defaults. An error is Mistakes: all that are in the file, or
// the one that keeps the others from being found.
func Decode(content []byte, defaults policy.Settings, zones Zones) (policy.Settings, error) {
	if len(content) > maxSize {
		return policy.Settings{}, Mistakes{{Says: fmt.Sprintf("the policy is longer than %d bytes", maxSize)}}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	var root, second yaml.Node
	switch err := decoder.Decode(&root); {
	case errors.Is(err, io.EOF):
		return policy.Settings{}, Mistakes{{Says: fmt.Sprintf("the policy is empty: begin with version: %d, or delete the ConfigMap for the defaults", Version)}}
	case err != nil:
		return policy.Settings{}, noYAML(err)
	}
	d := document{Settings: defaults}
	d.Groups = nil
	r := newReader(&d.Settings, zones)
	switch err := decoder.Decode(&second); {
	case err == nil:
		r.mistakes.add(second.Line, "something follows the policy: give one document")
	case !errors.Is(err, io.EOF):
		return policy.Settings{}, noYAML(err)
	}
	if r.tidy(root.Content[0], ""); !r.whole(&root) {
		return policy.Settings{}, r.mistakes.err()
	}
	r.read(root.Content[0], reflect.ValueOf(&d).Elem(), nil, "")
	r.judge(d.Settings)
	if err := r.mistakes.err(); err != nil {
		return policy.Settings{}, err
	}
	for i := range d.Groups {
		// A group's freezes come on top of the fleet's.
		freezes := &d.Groups[i].Calendar.Freezes
		*freezes = slices.Concat(d.Calendar.Freezes, *freezes)
	}
	return d.Settings, nil
}

var atLine = regexp.MustCompile(`^line (\d+): `)

// noYAML is the mistake of a file that can't be taken apart.
func noYAML(err error) Mistakes {
	text, line := strings.TrimPrefix(err.Error(), "yaml: "), 0
	if m := atLine.FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1])
		text = text[len(m[0]):]
	}
	var found Mistakes
	found.add(line, "the policy can't be read as YAML: %s", text)
	return found
}

// judge adds what is wrong with the settings as a whole. What a group has from the fleet is the fleet's mistake.
func (r *reader) judge(set policy.Settings) {
	fleet := map[string]bool{}
	for _, m := range set.Mistakes() {
		field := m.Field
		if group := groupOf.FindString(field); group != "" {
			field = field[len(group):]
			if _, own := r.lines[m.Field]; !own && fleet[field+" "+m.Says] {
				continue
			}
		}
		fleet[m.Error()] = true
		r.wrong(m)
	}
}

// groupOf is what a field of a group begins with.
var groupOf = regexp.MustCompile(`^groups\[\d+\]\.`)

// prepare fills what a part has of its own until the file says something else.
func (r *reader) prepare(part any) {
	switch p := part.(type) {
	case *policy.Group:
		p.Rules = r.set.Rules
		// The fleet's own word is counted for the whole fleet already.
		p.MaxUnavailable, p.Topology, p.Pause, p.Calendar.Freezes = policy.Unlimited, nil, nil, nil
	case *policy.Pause:
		p.InFlight = policy.Finish
	case *policy.Topology:
		p.MaxUnavailable = policy.Unlimited
	case *policy.Hook:
		p.OnTimeout = policy.Abort
	case *window.Window:
		p.Zone = time.UTC
	}
}

// check finds what only the file shows, in a part that has been read: a field that is there without need.
func (r *reader) check(part any, at string) {
	switch p := part.(type) {
	case *document:
		if p.Version != Version && r.has("version") {
			r.wrong(policy.Mistake{Field: "version", Says: fmt.Sprintf("is %d: begin with version: %d", p.Version, Version)})
		}
	case *policy.Draining:
		if field := below(at, "gracePeriod"); p.Eviction.GracePeriod == 0 && r.has(field) {
			r.wrong(policy.Mistake{Field: field,
				Says: "is 0s, which would kill every pod at once: give 1s or more, or leave it out for what each pod asks for"})
		}
	case *policy.Topology:
		domains := below(at, "maxDomains")
		switch {
		case p.MaxDomains == 0 && r.has(domains):
			r.wrong(policy.Mistake{Field: domains, Says: "is 0: give 1 or more, or leave it out"})
		case !r.has(domains) && !r.has(below(at, "maxUnavailable")):
			r.wrong(policy.Mistake{Field: at, Says: "has no limit: give maxUnavailable, maxDomains, or both"})
		}
	case *policy.Requirement:
		values := policy.Mistake{Field: below(at, "values"), Beside: []string{below(at, "operator")}}
		switch needs := p.Operator == policy.In || p.Operator == policy.NotIn; {
		case needs && len(p.Values) == 0:
			values.Says = fmt.Sprintf("is missing: operator %s needs some", p.Operator)
			r.wrong(values)
		case !needs && len(p.Values) > 0:
			values.Says = fmt.Sprintf("is there: operator %s takes none", p.Operator)
			r.wrong(values)
		}
	}
}
