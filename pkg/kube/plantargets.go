package kube

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

const (
	// PlansNamespace holds the PodTemplates of plans, what these mount, and the pods that the runner makes of them.
	PlansNamespace = "bottlerocket-plans"
	// PlanTargetsConfigMap is the runner's, in the operator's namespace: each key is a plan of the policy.
	PlanTargetsConfigMap = "plan-targets"
)

// What the runner adds to a pod beside its template.
const (
	// PlanLabel names the plan, and finds all such pods.
	PlanLabel = marker.Prefix + "plan"
	// PlanFinalizer keeps the pod until the runner needs it no more.
	PlanFinalizer = marker.Prefix + "plan"
	// PlanIntent, PlanNodeUID and PlanTemplate are the intent, the node and the PodTemplate that the pod is made for.
	PlanIntent   = marker.Prefix + "intent-id"
	PlanNodeUID  = marker.Prefix + "node-uid"
	PlanTemplate = marker.Prefix + "plan-template"
	// PlanTarget is what the node is to show, and PlanTag the same as the tag of an image may be written: + becomes -.
	PlanTarget = marker.Prefix + "target"
	PlanTag    = marker.Prefix + "tag"
)

// PlanPodName names the one pod of an intent on a node.
func PlanPodName(plan, nodeUID, intentID string) string {
	sum := sha256.Sum256([]byte(nodeUID + "/" + intentID))
	return plan + "-" + hex.EncodeToString(sum[:8])
}

// EncodePlanTarget returns the value of a plan's key in PlanTargetsConfigMap.
func EncodePlanTarget(t fleet.PlanTarget) (string, error) {
	out, err := json.Marshal(t)
	return string(out), errors.Wrap(err, "encoding the target of a plan")
}

// DecodePlanTargets reads the ConfigMap's data. A key that can't be read is as one that isn't there: its plan waits. So
// does one with a digest that the marks of a node can't hold; what its channel has shown counts all the same.
func DecodePlanTargets(data map[string]string) map[string]fleet.PlanTarget {
	out := make(map[string]fleet.PlanTarget, len(data))
	for name, value := range data {
		var t fleet.PlanTarget
		if json.Unmarshal([]byte(value), &t) != nil {
			continue
		}
		if t.Digest != "" && !marker.ValidPlanDigest(t.Digest) {
			t.Digest, t.Problem = "", "the runner's digest can't be read"
		}
		out[name] = t
	}
	return out
}
