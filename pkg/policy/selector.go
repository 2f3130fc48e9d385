package policy

import (
	"slices"
	"strings"
)

// Operator compares a label with the values of a Requirement, as in Kubernetes' label selectors.
type Operator string

// The operators.
const (
	In           Operator = "In"
	NotIn        Operator = "NotIn"
	Exists       Operator = "Exists"
	DoesNotExist Operator = "DoesNotExist"
)

// Requirement is one condition on a node's labels.
type Requirement struct {
	Key      string   `yaml:"key" need:"name a label"`
	Operator Operator `yaml:"operator" words:"In,NotIn,Exists,DoesNotExist" need:"give In, NotIn, Exists or DoesNotExist"`
	Values   []string `yaml:"values"`
}

// Selector chooses nodes by their labels: by those that meet all requirements. With none it chooses all.
type Selector []Requirement

// Matches reports whether the selector chooses a node with these labels. As in Kubernetes, NotIn lets through a node
// that has no such label.
func (s Selector) Matches(labels map[string]string) bool {
	for _, r := range s {
		v, has := labels[r.Key]
		ok := false
		switch r.Operator {
		case In:
			ok = has && slices.Contains(r.Values, v)
		case NotIn:
			ok = !has || !slices.Contains(r.Values, v)
		case Exists:
			ok = has
		case DoesNotExist:
			ok = !has
		}
		if !ok {
			return false
		}
	}
	return true
}

func (s Selector) String() string {
	var out []string
	for _, r := range s {
		switch r.Operator {
		case Exists:
			out = append(out, r.Key)
		case DoesNotExist:
			out = append(out, "!"+r.Key)
		case In:
			if len(r.Values) == 1 {
				out = append(out, r.Key+"="+r.Values[0])
				continue
			}
			out = append(out, r.Key+" in ("+strings.Join(r.Values, ",")+")")
		case NotIn:
			out = append(out, r.Key+" notin ("+strings.Join(r.Values, ",")+")")
		}
	}
	return strings.Join(out, ",")
}
