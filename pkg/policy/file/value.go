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

// values has the parsers of types that are one text in the file. Their errors follow the name of the field.
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
		return parsed, remedy(err, "%q is no time with a zone: give one such as 2026-12-20T18:00:00+01:00", text)
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

// remedy replaces an error by one with the remedy; it keeps nil.
func remedy(err error, format, text string) error {
	if err == nil {
		return nil
	}
	return errors.Errorf(format, text)
}

func (z Zones) find(name string) (*time.Location, error) {
	if name == "Local" {
		return nil, errors.New("is Local, which depends on the controller's node: give an IANA name such as Europe/Berlin")
	}
	zone, err := z(cmp.Or(name, "UTC"))
	return zone, remedy(err, "is %q, which is not known: give an IANA name such as Europe/Berlin", name)
}

// versionRange is a set of versions in the syntax of Masterminds/semver: `>=1.20.0 <2`, `1.27.x`, `~1.26`; `||`
// separates alternatives.
type versionRange struct {
	text string
	set  *semver.Constraints
}

// parseRange reads a range; it returns nil for an empty one.
func parseRange(text string) (policy.Range, error) {
	if text == "" {
		return nil, nil
	}
	set, err := semver.NewConstraint(text)
	if err != nil {
		return nil, remedy(err, `%q is no range of versions: give one such as ">=1.20.0 <2" or "1.27.x"`, text)
	}
	// Pre-releases are compared like other versions.
	set.IncludePrerelease = true
	return versionRange{text, set}, nil
}

// Contains reports whether a version is in the range. A text that is no version isn't.
func (r versionRange) Contains(version string) bool {
	v, err := semver.StrictNewVersion(version)
	return err == nil && r.set.Check(v)
}

func (r versionRange) String() string { return r.text }

// selector is a policy.Selector in the form of Kubernetes' label selectors.
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
