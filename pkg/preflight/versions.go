package preflight

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/semver"
)

// oldest is the first minor version of Kubernetes whose tokens name the node of their pod.
const oldest = 31

// minor returns the minor version of a version like v1.36.3+k3s1 or v1.31.0-eks-1a2b3c; false if it is none.
func minor(version string) (int, bool) {
	n, err := strconv.Atoi(strings.TrimPrefix(semver.MajorMinor(version), "v1."))
	return n, err == nil
}

func apiServer(s *Snapshot) []Finding {
	if b := blind(s.Server); b != nil {
		return b
	}
	n, known := minor(s.Server.Value)
	switch {
	case !known:
		return warned(fmt.Sprintf("the API server's version %q can't be read", s.Server.Value),
			fmt.Sprintf("see that it is 1.%d or newer: kubectl version", oldest))
	case n < oldest:
		return failed(fmt.Sprintf("the API server is %s: tokens of its pods don't name their node, so proxies refuse every agent", s.Server.Value),
			fmt.Sprintf("upgrade the control plane to Kubernetes 1.%d or newer, then run kubectl bottlerocket check again", oldest))
	}
	return well("the API server is " + s.Server.Value)
}

// kubelets looks at nodes that are, or could be, updated: a kubelet may be three minor versions older than its API
// server, and never newer.
func kubelets(s *Snapshot) []Finding {
	if b := blind(s.Nodes); b != nil {
		return b
	}
	server, serverKnown := minor(s.Server.Value)
	var old, behind, ahead []string
	seen := 0
	for i := range s.Nodes.Value {
		n := &s.Nodes.Value[i]
		v, known := minor(n.Kubelet)
		if !n.Concerned() || !known {
			continue
		}
		seen++
		name := n.Name + " (" + n.Kubelet + ")"
		switch {
		case v < oldest:
			old = append(old, name)
		case serverKnown && v < server-3:
			behind = append(behind, name)
		case serverKnown && v > server:
			ahead = append(ahead, name)
		}
	}
	const replace = "replace these nodes by ones of a newer variant: kubectl get nodes -o wide; an update in place never changes the Kubernetes version"
	var found []Finding
	if len(old) > 0 {
		found = append(found, failed(fmt.Sprintf("kubelets older than 1.%d on %s", oldest, of(old, "node")),
			replace)...)
	}
	if len(behind) > 0 {
		found = append(found, warned("kubelets more than three minor versions older than the API server on "+of(behind,
			"node"), replace)...)
	}
	if len(ahead) > 0 {
		found = append(found, warned("kubelets newer than the API server on "+of(ahead, "node"),
			"upgrade the control plane first: kubectl version")...)
	}
	if found == nil {
		return well("kubelets of " + count(seen, "node") + " fit the API server")
	}
	return found
}
