package kube

import (
	"encoding/json"
	"maps"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// patch returns the merge patch that turns a node with these annotations into c, or nil if nothing
// changes. The resourceVersion in it makes it fail if anything was written to the node since.
func patch(annotations map[string]string, c *plan.Change) ([]byte, error) {
	diff := map[string]*string{}
	for k, v := range c.Diff(annotations) {
		diff[string(k)] = v
	}
	maps.Copy(diff, c.Annotations)
	if len(diff) == 0 && len(c.Labels) == 0 && c.Unschedulable == nil {
		return nil, nil
	}
	metadata := map[string]any{"resourceVersion": c.ResourceVersion}
	if len(diff) > 0 {
		metadata["annotations"] = diff
	}
	if len(c.Labels) > 0 {
		metadata["labels"] = c.Labels
	}
	body := map[string]any{"metadata": metadata}
	if c.Unschedulable != nil {
		var value any
		if *c.Unschedulable {
			value = true
		}
		body["spec"] = map[string]any{"unschedulable": value}
	}
	return json.Marshal(body)
}
