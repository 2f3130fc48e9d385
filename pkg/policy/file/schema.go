package file

import (
	"time"

	"github.com/pkg/errors"
	"go.yaml.in/yaml/v3"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// document is the file as it is written. A nil pointer is a field that isn't there.
type document struct {
	Version          *int      `yaml:"version"`
	MaxLost          *limit    `yaml:"maxLost"`
	MaxStaging       *int      `yaml:"maxStaging"`
	CountUnavailable *bool     `yaml:"countUnavailable"`
	IgnoreAfter      *duration `yaml:"ignoreAfter"`
	Versions         *versions `yaml:"versions"`
	MaxFailed        *limit    `yaml:"maxFailed"`
	SingleNode       *string   `yaml:"singleNode"`
	Ungrouped        *string   `yaml:"ungrouped"`
	Alerts           *alerts   `yaml:"alerts"`
	Deadlines        *struct {
		Prepare *duration `yaml:"prepare"`
		Reboot  *duration `yaml:"reboot"`
		Return  *duration `yaml:"return"`
	} `yaml:"deadlines"`
	Retry *struct {
		Base *duration `yaml:"base"`
		Max  *duration `yaml:"max"`
	} `yaml:"retry"`
	HandsOff *duration `yaml:"handsOff"`
	rules    `yaml:",inline"`
	Groups   []group `yaml:"groups"`
}

// rules may be the fleet's or a group's.
type rules struct {
	MaxUnavailable *limit     `yaml:"maxUnavailable"`
	Topology       []topology `yaml:"topology"`
	Pause          *pause     `yaml:"pause"`
	Windows        *[]opening `yaml:"windows"`
	Freezes        *[]freeze  `yaml:"freezes"`
	FitWindow      *bool      `yaml:"fitWindow"`
	StageOutside   *bool      `yaml:"stageOutsideWindows"`
	WhenClosed     *ending    `yaml:"whenWindowCloses"`
	Soak           *duration  `yaml:"soak"`
	Drain          *drain     `yaml:"drain"`
	Balancers      *struct {
		Exclude *bool     `yaml:"exclude"`
		Wait    *duration `yaml:"wait"`
	} `yaml:"loadBalancers"`
	Autoscalers *string `yaml:"autoscalers"`
	Volumes     *struct {
		Wait      *duration  `yaml:"wait"`
		OnTimeout *onTimeout `yaml:"onTimeout"`
	} `yaml:"volumes"`
	Hooks *struct {
		AfterDrain     *[]hook `yaml:"afterDrain"`
		BeforeUncordon *[]hook `yaml:"beforeUncordon"`
	} `yaml:"hooks"`
	Verify *struct {
		Pods        *[]podSelector `yaml:"pods"`
		Deadline    *duration      `yaml:"deadline"`
		OnWorkloads *string        `yaml:"onWorkloads"`
	} `yaml:"verify"`
}

type group struct {
	Name      string    `yaml:"name"`
	Selector  *selector `yaml:"nodeSelector"`
	After     []string  `yaml:"after"`
	AfterSoak *duration `yaml:"afterSoak"`
	rules     `yaml:",inline"`
}

type selector struct {
	MatchLabels      map[string]string `yaml:"matchLabels"`
	MatchExpressions []struct {
		Key      string   `yaml:"key"`
		Operator string   `yaml:"operator"`
		Values   []string `yaml:"values"`
	} `yaml:"matchExpressions"`
}

type topology struct {
	Key            string `yaml:"key"`
	MaxUnavailable *limit `yaml:"maxUnavailable"`
	MaxDomains     *int   `yaml:"maxDomains"`
}

type hook struct {
	Name       string     `yaml:"name"`
	Annotation string     `yaml:"annotation"`
	Timeout    *duration  `yaml:"timeout"`
	OnTimeout  *onTimeout `yaml:"onTimeout"`
}

type pause struct {
	Reason   string  `yaml:"reason"`
	InFlight *ending `yaml:"inFlight"`
}

type opening struct {
	Schedule string    `yaml:"schedule"`
	Duration *duration `yaml:"duration"`
	TimeZone string    `yaml:"timeZone"`
}

type freeze struct {
	From   *moment `yaml:"from"`
	To     *moment `yaml:"to"`
	Reason string  `yaml:"reason"`
}

type versions struct {
	Allow     *versionRange `yaml:"allow"`
	Deny      *versionRange `yaml:"deny"`
	Hold      *string       `yaml:"hold"`
	Downgrade *bool         `yaml:"downgrade"`
	MinAge    *duration     `yaml:"minAge"`
}

// Values that are read from one word each; an error names its line.

type limit struct{ policy.Limit }

func (l *limit) UnmarshalYAML(n *yaml.Node) error { return read(n, &l.Limit, policy.ParseLimit) }

type duration struct{ time.Duration }

func (d *duration) UnmarshalYAML(n *yaml.Node) error {
	return read(n, &d.Duration, func(text string) (time.Duration, error) {
		parsed, err := time.ParseDuration(text)
		if err != nil {
			return 0, errors.Errorf("%q is no duration: give one such as 90s, 30m or 4h", text)
		}
		return parsed, nil
	})
}

type ending struct{ policy.Ending }

func (e *ending) UnmarshalYAML(n *yaml.Node) error {
	return read(n, &e.Ending, func(text string) (policy.Ending, error) {
		parsed := policy.Ending(text)
		if parsed != policy.Finish && parsed != policy.Return {
			return "", errors.Errorf("%q is neither %s nor %s", text, policy.Finish, policy.Return)
		}
		return parsed, nil
	})
}

type onTimeout struct{ policy.OnTimeout }

func (o *onTimeout) UnmarshalYAML(n *yaml.Node) error {
	return read(n, &o.OnTimeout, func(text string) (policy.OnTimeout, error) {
		parsed := policy.OnTimeout(text)
		if parsed != policy.Abort && parsed != policy.Ignore {
			return "", errors.Errorf("%q is neither %s nor %s", text, policy.Abort, policy.Ignore)
		}
		return parsed, nil
	})
}

type moment struct{ time.Time }

func (m *moment) UnmarshalYAML(n *yaml.Node) error {
	return read(n, &m.Time, func(text string) (time.Time, error) {
		parsed, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return time.Time{}, errors.Errorf("%q is no moment: give one such as 2026-12-20T18:00:00+01:00", text)
		}
		return parsed, nil
	})
}

// read turns a word into a value.
func read[T any](n *yaml.Node, into *T, parse func(string) (T, error)) error {
	text, err := word(n)
	if err != nil {
		return err
	}
	*into, err = parse(text)
	return at(n, err)
}

// word is what a value of one word says. A list or a mapping has none, which is not the same as an empty one.
func word(n *yaml.Node) (string, error) {
	if n.Kind != yaml.ScalarNode {
		return "", at(n, errors.New("a list or a mapping does not belong here: give one value"))
	}
	return n.Value, nil
}

// at puts the line before what is wrong with a value.
func at(n *yaml.Node, err error) error {
	if err == nil {
		return nil
	}
	return errors.WithMessagef(err, "line %d", n.Line)
}
