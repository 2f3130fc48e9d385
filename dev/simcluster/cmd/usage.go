package main

import (
	"context"
	"fmt"
	"strings"
)

// usage is how to go on with the cluster: lines for a shell, and comments.
func (k *kept) usage(ctx context.Context) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("export KUBECONFIG=%s", k.Plane.Kubeconfig())
	line("export PATH=%s:$PATH", k.at.bin)
	line("kubectl label node --all --overwrite bottlerocket.aws/updater-interface-version=2.0.0")
	line("kubectl bottlerocket status")
	line("# machines: %s; released: %s", strings.Join(k.nodes(), ", "), strings.Join(k.released(), ", "))
	if s := k.failing.String(); s != "" {
		line("# told to fail: %s; make cluster-heal ends that", s)
	}
	line("# go on with: make cluster-release OS=%s", following(k.released()))
	line("#             make cluster-fail ON=NODE|VERSION HOW=%s", strings.Join(failureNames(), "|"))
	line("#             make cluster-up NODES=%d, make cluster-down", len(k.nodes())+1)
	logs := k.Fleet.Logs()
	line("# logs of the controller: %s/*-update-operator-controller-*.log (kubectl logs has none)", logs)
	line("#     of the proxies:     %s/*-update-operator-proxy-*.log", logs)
	line("#     of a node's agent:  %s/NODE-update-operator-agent-*.log", logs)
	line("#     of Kubernetes:      %s/*.log", k.Plane.Dir())
	if plan, err := k.PlanURL(ctx); err == nil && plan != "" {
		line("# the controller's own pages, until its pod is replaced: curl %s", plan)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
