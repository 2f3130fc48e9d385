package kube

import (
	"encoding/json"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// patch returns the merge patch that turns a node with these annotations into c, or nil if nothing
// changes. The resourceVersion in it makes it fail if anything was written to the node since.
func patch(annotations map[string]string, c *policy.Change) ([]byte, error) {
	diff := c.Diff(annotations)
	if len(diff) == 0 && c.Unschedulable == nil {
		return nil, nil
	}
	metadata := map[string]any{"resourceVersion": c.ResourceVersion}
	if len(diff) > 0 {
		metadata["annotations"] = diff
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
