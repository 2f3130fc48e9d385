package file

import (
	"time"

	"github.com/pkg/errors"
	"go.yaml.in/yaml/v3"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// document is the file as it is written. A nil pointer is a field that isn't there. The tag need is on fields that must
// be there, with the remedy if one is missing.
type document struct {
	Version          *int        `yaml:"version" need:"begin with version: 1"`
	MaxLost          *limit      `yaml:"maxLost"`
	MaxStaging       *int        `yaml:"maxStaging"`
	CountUnavailable *bool       `yaml:"countUnavailable"`
	IgnoreAfter      *duration   `yaml:"ignoreAfter"`
	Versions         *versions   `yaml:"versions"`
	MaxFailed        *limit      `yaml:"maxFailed"`
	SingleNode       *singleNode `yaml:"singleNode"`
	Ungrouped        *ungrouped  `yaml:"ungrouped"`
	Alerts           *alerts     `yaml:"alerts"`
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
	Autoscalers *autoscalers `yaml:"autoscalers"`
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
		OnWorkloads *onWorkloads   `yaml:"onWorkloads"`
	} `yaml:"verify"`
}

type group struct {
	Name      string    `yaml:"name" need:"give each group one"`
	Selector  *selector `yaml:"nodeSelector" need:"give one; {} chooses every node"`
	After     []string  `yaml:"after"`
	AfterSoak *duration `yaml:"afterSoak"`
	rules     `yaml:",inline"`
}

type selector struct {
	MatchLabels      map[string]string `yaml:"matchLabels"`
	MatchExpressions []struct {
		Key      string   `yaml:"key" need:"name a label"`
		Operator operator `yaml:"operator" need:"give In, NotIn, Exists or DoesNotExist"`
		Values   []string `yaml:"values"`
	} `yaml:"matchExpressions"`
}

type topology struct {
	Key            string `yaml:"key" need:"name a label such as topology.kubernetes.io/zone"`
	MaxUnavailable *limit `yaml:"maxUnavailable"`
	MaxDomains     *int   `yaml:"maxDomains"`
}

type hook struct {
	Name       string     `yaml:"name" need:"give each hook one"`
	Annotation string     `yaml:"annotation" need:"give a key of your own, such as example.com/done"`
	Timeout    *duration  `yaml:"timeout" need:"give a duration such as 5m"`
	OnTimeout  *onTimeout `yaml:"onTimeout"`
}

type pause struct {
	Reason   string  `yaml:"reason" need:"say why, people will read it"`
	InFlight *ending `yaml:"inFlight"`
}

type opening struct {
	Schedule string    `yaml:"schedule" need:"give one such as 0 2 * * sat"`
	Duration *duration `yaml:"duration" need:"give one such as 4h"`
	TimeZone string    `yaml:"timeZone"`
}

type freeze struct {
	From   *moment `yaml:"from" need:"give one such as 2026-12-20T18:00:00+01:00"`
	To     *moment `yaml:"to" need:"give one such as 2027-01-07T08:00:00+01:00"`
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
	parsed, err := parse(text)
	if err != nil {
		return mistaken(err.Error())
	}
	*into = parsed
	return nil
}

// word is what a value of one word says. A list or a mapping has none, which is not the same as an empty one.
func word(n *yaml.Node) (string, error) {
	if n.Kind != yaml.ScalarNode {
		return "", mistaken(given(n) + ": give one value")
	}
	return n.Value, nil
}

// mistaken is an error that doesn't keep the decoder from going on. It follows the name of the field.
func mistaken(says string) error { return &yaml.TypeError{Errors: []string{says}} }
