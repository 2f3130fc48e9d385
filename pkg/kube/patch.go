package kube

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// patch returns the merge patch that turns a node, as it was read, into c, or nil if nothing changes. The
// resourceVersion in it makes it fail if anything was written to the node since: no taint is lost that was added.
func patch(read *corev1.Node, c *plan.Change) ([]byte, error) {
	diff := map[string]*string{}
	for k, v := range c.Diff(read.Annotations) {
		diff[string(k)] = v
	}
	maps.Copy(diff, c.Annotations)
	spec := map[string]any{}
	if c.Unschedulable != nil {
		spec["unschedulable"] = nil
		if *c.Unschedulable {
			spec["unschedulable"] = true
		}
	}
	if c.DropFresh && slices.ContainsFunc(read.Spec.Taints, isFresh) {
		spec["taints"] = slices.DeleteFunc(slices.Clone(read.Spec.Taints), isFresh)
	}
	if len(diff) == 0 && len(c.Labels) == 0 && len(spec) == 0 {
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
	if len(spec) > 0 {
		body["spec"] = spec
	}
	return json.Marshal(body)
}
