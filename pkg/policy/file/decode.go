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

// Version is the only version of the format.
const Version = 1

// maxSize is far above the size of a policy, and below the limit of a ConfigMap, in bytes.
const maxSize = 512 << 10

// Zones returns the time zone of an IANA name; time.LoadLocation is one.
type Zones func(name string) (*time.Location, error)

// document is the content of the file.
type document struct {
	Version         int `yaml:"version" need:"begin with version: 1"`
	policy.Settings `yaml:",inline"`
}

// Decode reads a policy file. Missing fields are as in defaults. The error is of type Mistakes: all mistakes of the
// file, or the one that prevents finding the others.
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
		r.mistakes.add(second.Line, "there is another document after the policy: give one document")
	case !errors.Is(err, io.EOF):
		return policy.Settings{}, noYAML(err)
	}
	if r.tidy(root.Content[0], ""); !r.whole(&root) {
		return policy.Settings{}, r.mistakes.err()
	}
	r.read(root.Content[0], reflect.ValueOf(&d).Elem(), nil, "")
	r.judge(d.Settings)
	r.templates(string(content), &d.Settings)
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

// noYAML returns the mistake of a file that is no YAML.
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

// judge adds the mistakes of the settings as a whole. A mistake that groups inherit from the fleet is listed once.
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

// groupOf matches the beginning of the path of a group's field.
var groupOf = regexp.MustCompile(`^groups\[\d+\]\.`)

// prepare sets the defaults of a part that the file has.
func (r *reader) prepare(part any) {
	switch p := part.(type) {
	case *policy.Group:
		p.Rules = r.set.Rules
		// The fleet's own values of these hold for the whole fleet already.
		p.MaxUnavailable, p.Topology, p.Pause, p.Calendar.Freezes = policy.Unlimited, nil, nil, nil
	case *policy.Plan:
		p.Deadline = policy.DefaultPlanDeadline
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

// check adds the mistakes of a part that depend on which fields the file has.
func (r *reader) check(part any, at string) {
	switch p := part.(type) {
	case *document:
		if p.Version != Version && r.has("version") {
			r.wrong(policy.Mistake{Field: "version", Says: fmt.Sprintf("is %d: begin with version: %d", p.Version, Version)})
		}
	case *policy.Draining:
		if field := below(at, "gracePeriod"); p.Eviction.GracePeriod == 0 && r.has(field) {
			r.wrong(policy.Mistake{Field: field,
				Says: "is 0s, which would kill every pod at once: give 1s or more, or leave it out for each pod's own grace period"})
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
			values.Says = fmt.Sprintf("is missing: operator %s needs values", p.Operator)
			r.wrong(values)
		case !needs && len(p.Values) > 0:
			values.Says = fmt.Sprintf("is given, but operator %s takes no values: take it out", p.Operator)
			r.wrong(values)
		}
	}
}
