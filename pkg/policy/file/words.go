package file

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// closed is a word of a closed list.
type closed interface {
	~string
	words() []string
}

// oneOf reads a word of a closed list.
func oneOf[T closed](n *yaml.Node, into *T) error {
	return read(n, into, func(text string) (T, error) {
		known := T("").words()
		if !slices.Contains(known, text) {
			last := len(known) - 1
			return "", fmt.Errorf("is %q: give %s or %s%s", text, strings.Join(known[:last], ", "), known[last], policy.Suggestion(text, known))
		}
		return T(text), nil
	})
}

// What autoscalers and atDeadline say, beside return.
const (
	protect = "protect"
	ignore  = "ignore"
	force   = "force"
)

type (
	// ending is what becomes of what has begun.
	ending string
	// handling is what a drain does with pods of some kind.
	handling string
	// lastResort is what becomes of a drain that has taken too long.
	lastResort string
	// onTimeout is what becomes of a node that waited in vain.
	onTimeout string
	// onWorkloads is what is made of workloads that are less Ready than before.
	onWorkloads string
	// autoscalers is what they are told.
	autoscalers string
	// singleNode is what becomes of the only node of a cluster.
	singleNode string
	// ungrouped is what becomes of nodes that no group chooses.
	ungrouped string
	// operator compares a label with values.
	operator string
)

func (ending) words() []string     { return []string{string(policy.Finish), string(policy.Return)} }
func (handling) words() []string   { return []string{string(policy.Evict), string(policy.Block)} }
func (lastResort) words() []string { return []string{string(policy.Return), force} }
func (onTimeout) words() []string  { return []string{string(policy.Abort), string(policy.Ignore)} }
func (onWorkloads) words() []string {
	return []string{string(policy.FailOnWorkloads), string(policy.IgnoreWorkloads)}
}
func (autoscalers) words() []string { return []string{protect, ignore} }
func (singleNode) words() []string {
	return []string{string(policy.SingleNodeNever), string(policy.SingleNodeAllow)}
}
func (ungrouped) words() []string {
	return []string{string(policy.UngroupedGo), string(policy.UngroupedWait)}
}
func (operator) words() []string {
	var list []string
	for _, o := range policy.Operators() {
		list = append(list, string(o))
	}
	return list
}

// UnmarshalYAML reads the word.
func (w *ending) UnmarshalYAML(n *yaml.Node) error      { return oneOf(n, w) }
func (w *handling) UnmarshalYAML(n *yaml.Node) error    { return oneOf(n, w) }
func (w *lastResort) UnmarshalYAML(n *yaml.Node) error  { return oneOf(n, w) }
func (w *onTimeout) UnmarshalYAML(n *yaml.Node) error   { return oneOf(n, w) }
func (w *onWorkloads) UnmarshalYAML(n *yaml.Node) error { return oneOf(n, w) }
func (w *autoscalers) UnmarshalYAML(n *yaml.Node) error { return oneOf(n, w) }
func (w *singleNode) UnmarshalYAML(n *yaml.Node) error  { return oneOf(n, w) }
func (w *ungrouped) UnmarshalYAML(n *yaml.Node) error   { return oneOf(n, w) }
func (w *operator) UnmarshalYAML(n *yaml.Node) error    { return oneOf(n, w) }
