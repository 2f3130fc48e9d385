package file

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pkg/errors"
	"go.yaml.in/yaml/v3"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/window"
)

// Version is the only one that this package reads.
const Version = 1

// maxSize is far above any policy, and below what a ConfigMap holds.
const maxSize = 512 << 10

// Zones finds a time zone by its IANA name; time.LoadLocation is one.
type Zones func(name string) (*time.Location, error)

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
	r := newReader()
	switch err := decoder.Decode(&second); {
	case err == nil:
		r.mistakes.add(second.Line, "something follows the policy: give one document")
	case !errors.Is(err, io.EOF):
		return policy.Settings{}, noYAML(err)
	}
	set := r.document(&root).settings(defaults, zones, r)
	r.judge(set)
	if err := r.mistakes.err(); err != nil {
		return policy.Settings{}, err
	}
	return set, nil
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

// document reads what stands in the file. What the YAML decoder refuses is refused, whatever the reader thinks of it:
// anchors that multiply beyond measure, for example.
func (r *reader) document(root *yaml.Node) *document {
	var d, strict document
	refused := root.Decode(&strict)
	r.read(root.Content[0], reflect.ValueOf(&d).Elem(), "")
	if refused != nil && len(r.mistakes) == 0 {
		r.mistakes = noYAML(refused)
	}
	return &d
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

func set[T any](into *T, value *T) {
	if value != nil {
		*into = *value
	}
}

func lasting(into *time.Duration, value *duration) {
	if value != nil {
		*into = value.Duration
	}
}

func (d *document) settings(s policy.Settings, zones Zones, r *reader) policy.Settings {
	if d.Version != nil && *d.Version != Version {
		r.wrong(policy.Mistake{Field: "version", Says: fmt.Sprintf("is %d: begin with version: %d", *d.Version, Version)})
	}
	s.Groups = nil
	if d.MaxLost != nil {
		s.MaxLost = d.MaxLost.Limit
	}
	if d.MaxFailed != nil {
		s.MaxFailed = d.MaxFailed.Limit
	}
	if d.SingleNode != nil {
		s.SingleNode = policy.SingleNode(*d.SingleNode)
	}
	if d.Ungrouped != nil {
		s.Ungrouped = policy.Ungrouped(*d.Ungrouped)
	}
	set(&s.MaxStaging, d.MaxStaging)
	set(&s.CountUnavailable, d.CountUnavailable)
	lasting(&s.IgnoreAfter, d.IgnoreAfter)
	lasting(&s.HandsOff, d.HandsOff)
	if t := d.Deadlines; t != nil {
		lasting(&s.Deadlines.Prepare, t.Prepare)
		lasting(&s.Deadlines.Reboot, t.Reboot)
		lasting(&s.Deadlines.Return, t.Return)
	}
	if t := d.Retry; t != nil {
		lasting(&s.RetryBase, t.Base)
		lasting(&s.RetryMax, t.Max)
	}
	d.Versions.into(&s.Versions, r)
	d.Alerts.into(&s.Alerts, r)
	d.rules.into(&s.Rules, zones, r, "")
	for i, g := range d.Groups {
		s.Groups = append(s.Groups, g.group(s.Rules, zones, r, fmt.Sprintf("groups[%d]", i)))
	}
	return s
}

func (v *versions) into(out *policy.Versions, r *reader) {
	if v == nil {
		return
	}
	if v.Allow != nil && v.Allow.set != nil {
		out.Allow = v.Allow
	}
	if v.Deny != nil && v.Deny.set != nil {
		out.Deny = v.Deny
	}
	set(&out.Hold, v.Hold)
	set(&out.Downgrade, v.Downgrade)
	lasting(&out.MinAge, v.MinAge)
	hold := func(format string, beside ...string) {
		r.wrong(policy.Mistake{Field: "versions.hold", Says: fmt.Sprintf(format, out.Hold), Beside: beside})
	}
	switch {
	case out.Hold == "":
	case !marker.ValidVersion(out.Hold):
		hold("is %q: give a version such as 1.27.0")
	case out.Deny != nil && out.Deny.Contains(out.Hold):
		hold("is %s, which versions.deny denies: nothing would ever start", "versions.deny")
	case out.Allow != nil && !out.Allow.Contains(out.Hold):
		hold("is %s, which versions.allow does not allow: nothing would ever start", "versions.allow")
	}
	if out.MinAge < 0 {
		r.wrong(policy.Mistake{Field: "versions.minAge", Says: fmt.Sprintf("is %s: give 0 or more", out.MinAge)})
	}
}

// into overlays what stands there; a pause, budgets and topologies are not handed down to groups.
func (u *rules) into(out *policy.Rules, zones Zones, r *reader, at string) {
	if u.MaxUnavailable != nil {
		out.MaxUnavailable = u.MaxUnavailable.Limit
	}
	u.topologies(out, r, below(at, "topology"))
	if p := u.Pause; p != nil {
		out.Pause = &policy.Pause{Reason: p.Reason, InFlight: policy.Finish}
		if p.InFlight != nil {
			out.Pause.InFlight = policy.Ending(*p.InFlight)
		}
	}
	if u.WhenClosed != nil {
		out.WhenClosed = policy.Ending(*u.WhenClosed)
	}
	set(&out.FitWindow, u.FitWindow)
	set(&out.StageOutside, u.StageOutside)
	lasting(&out.Soak, u.Soak)
	u.Drain.into(out, r, below(at, "drain"))
	if b := u.Balancers; b != nil {
		set(&out.Balancers.Exclude, b.Exclude)
		lasting(&out.Balancers.Wait, b.Wait)
	}
	if u.Autoscalers != nil {
		out.Protect = *u.Autoscalers == protect
	}
	if v := u.Volumes; v != nil {
		lasting(&out.Volumes.Wait, v.Wait)
		if v.OnTimeout != nil {
			out.Volumes.OnTimeout = policy.OnTimeout(*v.OnTimeout)
		}
	}
	if h := u.Hooks; h != nil {
		hooks(&out.Hooks.AfterDrain, h.AfterDrain)
		hooks(&out.Hooks.BeforeUncordon, h.BeforeUncordon)
	}
	if v := u.Verify; v != nil {
		lasting(&out.Verify.Deadline, v.Deadline)
		if v.OnWorkloads != nil {
			out.Verify.OnWorkloads = policy.OnWorkloads(*v.OnWorkloads)
		}
		choose(&out.Verify.Pods, v.Pods, r, below(at, "verify.pods"))
	}
	u.calendar(&out.Calendar, zones, r, at)
}

func (u *rules) topologies(out *policy.Rules, r *reader, at string) {
	for i, t := range u.Topology {
		place := fmt.Sprintf("%s[%d]", at, i)
		made := policy.Topology{Key: t.Key, MaxUnavailable: policy.Unlimited}
		if t.MaxUnavailable != nil {
			made.MaxUnavailable = t.MaxUnavailable.Limit
		}
		set(&made.MaxDomains, t.MaxDomains)
		switch {
		case t.MaxDomains != nil && *t.MaxDomains < 1:
			r.wrong(policy.Mistake{Field: below(place, "maxDomains"), Says: fmt.Sprintf("is %d: give 1 or more, or leave it out", *t.MaxDomains)})
			made.MaxDomains = 0
		case t.MaxUnavailable == nil && t.MaxDomains == nil:
			r.wrong(policy.Mistake{Field: place, Says: "has no limit: give maxUnavailable, maxDomains, or both"})
		}
		out.Topology = append(out.Topology, made)
	}
}

func hooks(into *[]policy.Hook, list *[]hook) {
	if list == nil {
		return
	}
	*into = nil
	for _, h := range *list {
		made := policy.Hook{Name: h.Name, Annotation: h.Annotation, OnTimeout: policy.Abort}
		lasting(&made.Timeout, h.Timeout)
		if h.OnTimeout != nil {
			made.OnTimeout = policy.OnTimeout(*h.OnTimeout)
		}
		*into = append(*into, made)
	}
}

func (u *rules) calendar(out *window.Calendar, zones Zones, r *reader, at string) {
	if u.Windows != nil {
		out.Windows = nil
		for i, w := range *u.Windows {
			out.Windows = append(out.Windows, w.window(zones, r, fmt.Sprintf("%s[%d]", below(at, "windows"), i)))
		}
	}
	if u.Freezes != nil {
		// A group's own come on top of the fleet's: a freeze wins over everything.
		out.Freezes = slices.Clone(out.Freezes)
		for i, f := range *u.Freezes {
			if f.From == nil || f.To == nil {
				continue
			}
			made := window.Freeze{From: f.From.Time, To: f.To.Time, Reason: f.Reason}
			r.about(fmt.Sprintf("%s[%d]", below(at, "freezes"), i), made.Validate())
			out.Freezes = append(out.Freezes, made)
		}
	}
}

func (o opening) window(zones Zones, r *reader, at string) window.Window {
	var made window.Window
	var err error
	made.Schedule, err = window.ParseCron(o.Schedule)
	r.about(at, err)
	name := cmp.Or(o.TimeZone, "UTC")
	if name == "Local" {
		r.wrong(policy.Mistake{Field: below(at, "timeZone"), Says: "is Local, which is whatever the controller's node has: give an IANA name such as Europe/Berlin"})
	} else if made.Zone, err = zones(name); err != nil {
		r.wrong(policy.Mistake{Field: below(at, "timeZone"), Says: fmt.Sprintf("is %q, which is not known: give an IANA name such as Europe/Berlin", name)})
	}
	lasting(&made.Duration, o.Duration)
	r.about(at, made.Validate())
	return made
}

func (g group) group(fleet policy.Rules, zones Zones, r *reader, at string) policy.Group {
	made := policy.Group{Name: g.Name, After: g.After, Rules: fleet}
	// What the fleet's own word is counted for the whole fleet already.
	made.MaxUnavailable, made.Topology, made.Pause = policy.Unlimited, nil, nil
	lasting(&made.AfterSoak, g.AfterSoak)
	if g.Selector != nil {
		made.Selector = g.Selector.selector(r, below(at, "nodeSelector"))
	}
	g.rules.into(&made.Rules, zones, r, at)
	return made
}

func (s *selector) selector(r *reader, at string) policy.Selector {
	var out policy.Selector
	for _, k := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		out = append(out, policy.Requirement{Key: k, Operator: policy.In, Values: []string{s.MatchLabels[k]}})
	}
	for i, e := range s.MatchExpressions {
		made := policy.Requirement{Key: e.Key, Operator: policy.Operator(e.Operator), Values: e.Values}
		values := policy.Mistake{Field: fmt.Sprintf("%s.matchExpressions[%d].values", at, i), Beside: []string{fmt.Sprintf("%s.matchExpressions[%d].operator", at, i)}}
		switch needs := made.Operator == policy.In || made.Operator == policy.NotIn; {
		case needs && len(made.Values) == 0:
			values.Says = fmt.Sprintf("is missing: operator %s needs some", made.Operator)
			r.wrong(values)
		case !needs && len(made.Values) > 0:
			values.Says = fmt.Sprintf("is there: operator %s takes none", made.Operator)
			r.wrong(values)
		}
		out = append(out, made)
	}
	return out
}
