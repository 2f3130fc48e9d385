package fleet

import "github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"

// NodeInfo is what a kubelet says of its node, for the proofs of plans: status.nodeInfo
// (https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/node-v1/).
type NodeInfo struct {
	Kubelet, OSImage, Kernel, Runtime string
}

// Shows returns the value at a proof; empty for content, which no kubelet shows.
func (i *NodeInfo) Shows(p marker.Proof) string {
	if i == nil {
		return ""
	}
	switch p {
	case marker.ProofKubelet:
		return i.Kubelet
	case marker.ProofOSImage:
		return i.OSImage
	case marker.ProofKernel:
		return i.Kernel
	case marker.ProofRuntime:
		return i.Runtime
	case marker.ProofContent:
	}
	return ""
}

// PlanTarget is what the runner has found out of a plan of the policy.
type PlanTarget struct {
	// Prepare and Apply are the templates that it has looked at.
	Prepare string `json:"prepare,omitempty"`
	Apply   string `json:"apply"`
	// Digest is of these templates and all that they mount; empty while there is a Problem.
	Digest string `json:"digest,omitempty"`
	// Sources names the versions of all objects that Digest is of. While they stand, it stands: another key, and what a
	// newer Kubernetes fills into them, make the content no other one.
	Sources string `json:"sources,omitempty"`
	// Channel is the address of the plan's channel, and Version what it shows.
	Channel string `json:"channel,omitempty"`
	Version string `json:"version,omitempty"`
	// Missing: a template, or what it mounts, is not there. Problem is a sentence on that, or on why the channel can't be
	// read.
	Missing bool   `json:"missing,omitempty"`
	Problem string `json:"problem,omitempty"`
}
