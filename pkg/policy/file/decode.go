package file

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
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

// Decode reads a policy file. What it leaves out is as in defaults. An error is a sentence for people, with the
// line where it can be told.
func Decode(content []byte, defaults policy.Settings, zones Zones) (policy.Settings, error) {
	if len(content) > maxSize {
		return policy.Settings{}, errors.Errorf("the policy is longer than %d bytes", maxSize)
	}
	var d document
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	switch err := decoder.Decode(&d); {
	case errors.Is(err, io.EOF):
		return policy.Settings{}, errors.Errorf("the policy is empty: begin with version: %d, or delete the ConfigMap for the defaults", Version)
	case err != nil:
		return policy.Settings{}, plain(err)
	}
	if err := decoder.Decode(&document{}); !errors.Is(err, io.EOF) {
		return policy.Settings{}, errors.New("something follows the policy: give one document")
	}
	if d.Version == nil || *d.Version != Version {
		return policy.Settings{}, errors.Errorf("version is missing or is not %d: begin with version: %d", Version, Version)
	}
	set, err := d.settings(defaults, zones)
	if err != nil {
		return policy.Settings{}, err
	}
	return set, set.Validate()
}

var (
	unknownField = regexp.MustCompile(`line (\d+): field (\S+) not found in type \S+`)
	wrongType    = regexp.MustCompile("line (\\d+): cannot unmarshal !!(\\w+) (`[^`]*` )?into \\S+")
	names        = map[string]string{"seq": "a list", "map": "a mapping", "str": "a text", "int": "a number", "bool": "true or false", "float": "a number with a fraction", "null": "nothing"}
)

// plain says in this project's words what the decoder found first.
func plain(err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	var several *yaml.TypeError
	if errors.As(err, &several) {
		text = several.Errors[0]
	}
	text = unknownField.ReplaceAllString(text, "line $1: there is no field $2")
	text = wrongType.ReplaceAllStringFunc(text, func(s string) string {
		m := wrongType.FindStringSubmatch(s)
		return fmt.Sprintf("line %s: %s%s does not belong here", m[1], m[3], names[m[2]])
	})
	return errors.New(text)
}

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

func (d *document) settings(s policy.Settings, zones Zones) (policy.Settings, error) {
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
	if err := d.Versions.into(&s.Versions); err != nil {
		return s, err
	}
	if err := d.Alerts.into(&s.Alerts); err != nil {
		return s, err
	}
	if err := d.rules.into(&s.Rules, zones); err != nil {
		return s, err
	}
	for _, g := range d.Groups {
		made, err := g.group(s.Rules, zones)
		if err != nil {
			return s, errors.WithMessagef(err, "group %q", g.Name)
		}
		s.Groups = append(s.Groups, made)
	}
	return s, nil
}

func (v *versions) into(out *policy.Versions) error {
	if v == nil {
		return nil
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
	switch {
	case out.Hold != "" && !marker.ValidVersion(out.Hold):
		return errors.Errorf("versions.hold is %q: give a version such as 1.27.0", out.Hold)
	case out.Hold != "" && out.Deny != nil && out.Deny.Contains(out.Hold):
		return errors.Errorf("versions.hold is %s, which versions.deny denies: nothing would ever start", out.Hold)
	case out.Hold != "" && out.Allow != nil && !out.Allow.Contains(out.Hold):
		return errors.Errorf("versions.hold is %s, which versions.allow does not allow: nothing would ever start", out.Hold)
	case out.MinAge < 0:
		return errors.Errorf("versions.minAge is %s: give 0 or more", out.MinAge)
	}
	return nil
}

// What autoscalers is.
const (
	protect = "protect"
	ignore  = "ignore"
)

// into overlays what stands there; a pause, budgets and topologies are not handed down to groups.
func (r *rules) into(out *policy.Rules, zones Zones) error {
	if r.MaxUnavailable != nil {
		out.MaxUnavailable = r.MaxUnavailable.Limit
	}
	for _, t := range r.Topology {
		made := policy.Topology{Key: t.Key, MaxUnavailable: policy.Unlimited}
		if t.MaxUnavailable != nil {
			made.MaxUnavailable = t.MaxUnavailable.Limit
		}
		if t.MaxDomains != nil && *t.MaxDomains < 1 {
			return errors.Errorf("maxDomains of topology %s is %d: give 1 or more, or leave it out", t.Key, *t.MaxDomains)
		}
		set(&made.MaxDomains, t.MaxDomains)
		if t.MaxUnavailable == nil && t.MaxDomains == nil {
			return errors.Errorf("topology %q has no limit: give maxUnavailable, maxDomains, or both", t.Key)
		}
		out.Topology = append(out.Topology, made)
	}
	if p := r.Pause; p != nil {
		if p.Reason == "" {
			return errors.New("a pause has no reason: say why, people will read it")
		}
		out.Pause = &policy.Pause{Reason: p.Reason, InFlight: policy.Finish}
		if p.InFlight != nil {
			out.Pause.InFlight = p.InFlight.Ending
		}
	}
	if r.WhenClosed != nil {
		out.WhenClosed = r.WhenClosed.Ending
	}
	set(&out.FitWindow, r.FitWindow)
	set(&out.StageOutside, r.StageOutside)
	lasting(&out.Soak, r.Soak)
	if err := r.Drain.into(out); err != nil {
		return err
	}
	if b := r.Balancers; b != nil {
		set(&out.Balancers.Exclude, b.Exclude)
		lasting(&out.Balancers.Wait, b.Wait)
	}
	if r.Autoscalers != nil {
		if *r.Autoscalers != protect && *r.Autoscalers != ignore {
			return errors.Errorf("autoscalers is %q: give %s or %s", *r.Autoscalers, protect, ignore)
		}
		out.Protect = *r.Autoscalers == protect
	}
	if v := r.Volumes; v != nil {
		lasting(&out.Volumes.Wait, v.Wait)
		if v.OnTimeout != nil {
			out.Volumes.OnTimeout = v.OnTimeout.OnTimeout
		}
	}
	if h := r.Hooks; h != nil {
		hooks(&out.Hooks.AfterDrain, h.AfterDrain)
		hooks(&out.Hooks.BeforeUncordon, h.BeforeUncordon)
	}
	if err := r.verify(&out.Verify); err != nil {
		return err
	}
	return r.calendar(&out.Calendar, zones)
}

func (r *rules) verify(out *policy.Verify) error {
	v := r.Verify
	if v == nil {
		return nil
	}
	lasting(&out.Deadline, v.Deadline)
	if v.OnWorkloads != nil {
		out.OnWorkloads = policy.OnWorkloads(*v.OnWorkloads)
		if out.OnWorkloads != policy.FailOnWorkloads && out.OnWorkloads != policy.IgnoreWorkloads {
			return errors.Errorf("verify.onWorkloads is %q: give %s or %s", *v.OnWorkloads, policy.FailOnWorkloads, policy.IgnoreWorkloads)
		}
	}
	return errors.WithMessage(choose(&out.Pods, v.Pods), "verify.pods")
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
			made.OnTimeout = h.OnTimeout.OnTimeout
		}
		*into = append(*into, made)
	}
}

func (r *rules) calendar(out *window.Calendar, zones Zones) error {
	if r.Windows != nil {
		out.Windows = nil
		for i, w := range *r.Windows {
			made, err := w.window(zones)
			if err != nil {
				return errors.WithMessagef(err, "windows[%d]", i)
			}
			out.Windows = append(out.Windows, made)
		}
	}
	if r.Freezes != nil {
		// A group's own come on top of the fleet's: a freeze wins over everything.
		out.Freezes = slices.Clone(out.Freezes)
		for i, f := range *r.Freezes {
			if f.From == nil || f.To == nil {
				return errors.Errorf("freezes[%d] has no from or no to: give both", i)
			}
			out.Freezes = append(out.Freezes, window.Freeze{From: f.From.Time, To: f.To.Time, Reason: f.Reason})
		}
	}
	return out.Validate()
}

func (o opening) window(zones Zones) (window.Window, error) {
	if o.Duration == nil {
		return window.Window{}, errors.New("it has no duration: give one such as 4h")
	}
	schedule, err := window.ParseCron(o.Schedule)
	if err != nil {
		return window.Window{}, err
	}
	name := o.TimeZone
	if name == "" {
		name = "UTC"
	}
	if name == "Local" {
		return window.Window{}, errors.New("timeZone Local is whatever the controller's node has: give an IANA name such as Europe/Berlin")
	}
	zone, err := zones(name)
	if err != nil {
		return window.Window{}, errors.Errorf("timeZone %q is not known: give an IANA name such as Europe/Berlin", name)
	}
	return window.Window{Schedule: schedule, Duration: o.Duration.Duration, Zone: zone}, nil
}

func (g group) group(fleet policy.Rules, zones Zones) (policy.Group, error) {
	made := policy.Group{Name: g.Name, After: g.After, Rules: fleet}
	// What the fleet's own word is counted for the whole fleet already.
	made.MaxUnavailable, made.Topology, made.Pause = policy.Unlimited, nil, nil
	lasting(&made.AfterSoak, g.AfterSoak)
	if g.Selector == nil {
		return made, errors.New("it has no nodeSelector: give one; {} chooses every node")
	}
	var err error
	if made.Selector, err = g.Selector.selector("nodeSelector"); err != nil {
		return made, err
	}
	return made, g.rules.into(&made.Rules, zones)
}

// selector is called what for people.
func (s *selector) selector(what string) (policy.Selector, error) {
	var out policy.Selector
	for _, k := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		out = append(out, policy.Requirement{Key: k, Operator: policy.In, Values: []string{s.MatchLabels[k]}})
	}
	for _, e := range s.MatchExpressions {
		r := policy.Requirement{Key: e.Key, Operator: policy.Operator(e.Operator), Values: e.Values}
		needs := r.Operator == policy.In || r.Operator == policy.NotIn
		switch {
		case r.Key == "":
			return nil, errors.Errorf("an expression of its %s has no key", what)
		case !slices.Contains(policy.Operators(), r.Operator):
			return nil, errors.Errorf("operator %q of its %s is none of %v", e.Operator, what, policy.Operators())
		case needs && len(r.Values) == 0:
			return nil, errors.Errorf("operator %s on %q of its %s needs values", r.Operator, r.Key, what)
		case !needs && len(r.Values) > 0:
			return nil, errors.Errorf("operator %s on %q of its %s takes no values", r.Operator, r.Key, what)
		}
		out = append(out, r)
	}
	return out, nil
}
