package file

import (
	"cmp"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"time"

	"github.com/Masterminds/semver/v3"
	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/window"
)

// values are the types that are read from one word each. An error follows the name of the field.
type values map[reflect.Type]func(text string, into any) error

func newValues(zones Zones) values {
	v := values{}
	add(v, policy.ParseLimit)
	add(v, parseRange)
	add(v, window.ParseCron)
	add(v, zones.find)
	add(v, func(text string) (time.Duration, error) {
		parsed, err := time.ParseDuration(text)
		return parsed, remedy(err, "%q is no duration: give one such as 90s, 30m or 4h", text)
	})
	add(v, func(text string) (time.Time, error) {
		parsed, err := time.Parse(time.RFC3339, text)
		return parsed, remedy(err, "%q is no moment: give one such as 2026-12-20T18:00:00+01:00", text)
	})
	add(v, func(text string) (*regexp.Regexp, error) {
		parsed, err := regexp.Compile(text)
		return parsed, remedy(err, "is %q, which is no regular expression: give one such as ^Watchdog$", text)
	})
	return v
}

func add[T any](v values, parse func(text string) (T, error)) {
	v[reflect.TypeFor[T]()] = func(text string, into any) (err error) {
		*into.(*T), err = parse(text)
		return err
	}
}

// remedy is what to tell instead of an error.
func remedy(err error, format, text string) error {
	if err == nil {
		return nil
	}
	return errors.Errorf(format, text)
}

func (z Zones) find(name string) (*time.Location, error) {
	if name == "Local" {
		return nil, errors.New("is Local, which is whatever the controller's node has: give an IANA name such as Europe/Berlin")
	}
	zone, err := z(cmp.Or(name, "UTC"))
	return zone, remedy(err, "is %q, which is not known: give an IANA name such as Europe/Berlin", name)
}

// versionRange is a set of versions in the syntax of Masterminds/semver: `>=1.20.0 <2`, `1.27.x`, `~1.26`, with
// `||` between alternatives.
type versionRange struct {
	text string
	set  *semver.Constraints
}

// parseRange reads a range; an empty one is as if there were none.
func parseRange(text string) (policy.Range, error) {
	if text == "" {
		return nil, nil
	}
	set, err := semver.NewConstraint(text)
	if err != nil {
		return nil, remedy(err, `%q is no range of versions: give one such as ">=1.20.0 <2" or "1.27.x"`, text)
	}
	// A pre-release is in a range by its place in the order, like any other version.
	set.IncludePrerelease = true
	return versionRange{text, set}, nil
}

// Contains reports whether a version is in the range; what is no version isn't.
func (r versionRange) Contains(version string) bool {
	v, err := semver.StrictNewVersion(version)
	return err == nil && r.set.Check(v)
}

func (r versionRange) String() string { return r.text }

// selector is a policy.Selector as Kubernetes writes it.
type selector struct {
	MatchLabels      map[string]string    `yaml:"matchLabels"`
	MatchExpressions []policy.Requirement `yaml:"matchExpressions"`
}

func (s selector) requirements() policy.Selector {
	var out policy.Selector
	for _, k := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		out = append(out, policy.Requirement{Key: k, Operator: policy.In, Values: []string{s.MatchLabels[k]}})
	}
	return append(out, s.MatchExpressions...)
}
