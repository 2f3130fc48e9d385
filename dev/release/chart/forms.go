package chart

import (
	"strings"

	"github.com/pkg/errors"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
)

// Namespace is where the files put the operator, as users who apply them know it.
const Namespace = "bottlerocket"

// Form is a file for kubectl and kustomize.
type Form struct {
	// File is its path in the repository.
	File string
	// Comment begins it.
	Comment string
	// Values are the chart's values that it is made with.
	Values map[string]any
	// Templates are the chart's templates that it is made of, in the order of the file.
	Templates []string
}

// Forms are all files.
func Forms() []Form {
	on := map[string]any{"enabled": true}
	return []Form{{
		File: "update-operator.yaml",
		Comment: `# The Bottlerocket update operator.
#
#   kubectl apply -f update-operator.yaml
#   kubectl label node NODE bottlerocket.aws/updater-interface-version=2.0.0
#
# It is always safe to apply this file again, also in the middle of a rollout. What the operator
# stores in the cluster (annotations on Nodes, the ConfigMap update-state, the proxy's certificates)
# is not in this file.
#
# Kubernetes 1.31 or newer is needed. Since 1.31 an agent's token names the node of its pod.
#
# This file is made of the Helm chart in charts/, with its defaults: see docs/development.md.
`,
		Values: map[string]any{"namespace": map[string]any{"create": true}},
		Templates: []string{"namespace.yaml", "service-accounts.yaml", "controller-rbac.yaml", "proxy-rbac.yaml", "proxy-admission.yaml",
			"controller-admission.yaml", "proxy.yaml", "controller.yaml", "agent.yaml"},
	}, {
		File: "components/force-drain/force-drain.yaml",
		Comment: `# The right that ` + "`drain.atDeadline: force`" + ` in the policy needs: to delete pods without asking the eviction API, which
# checks PodDisruptionBudgets. Without such a policy the controller deletes nothing.
#
#   kubectl apply -f components/force-drain/force-drain.yaml
#
# ` + "`make undeploy`" + ` removes it.
`,
		Values:    map[string]any{"forceDrain": true},
		Templates: []string{"force-drain.yaml"},
	}, {
		File: "components/grace-period/grace-period.yaml",
		Comment: `# The right that ` + "`drain.gracePeriod`" + ` in the policy needs: to set how long a pod gets to shut down. Without it, the
# controller may evict a pod only with the time that the pod asks for itself. The verb is not one of Kubernetes: the
# admission policy update-operator-controller-evictions checks it.
#
#   kubectl apply -f components/grace-period/grace-period.yaml
#
# ` + "`make undeploy`" + ` removes it.
`,
		Values:    map[string]any{"gracePeriod": true},
		Templates: []string{"grace-period.yaml"},
	}, {
		File: "components/network-policy/network-policy.yaml",
		Comment: `# Optional: which clients may reach the operator's pods, and what these pods may reach.
#
#   kubectl apply -f components/network-policy/network-policy.yaml
#
# This has an effect only if your cluster's network plugin enforces NetworkPolicies. It was not tried with any plugin; a
# test only compares its ports and selectors with the manifests.
#
# Egress is limited by port alone, because no selector names the API server: it is not a pod. If yours has another port
# than 443 or 6443, add it. To allow less, put the IP range of your API server into an ipBlock beside the ports.
#
# Ingress doesn't let the API server in, for the same reason: ` + "`kubectl bottlerocket plan`" + ` needs it. Add its address to
# the controller's port 8080 as an ipBlock.
#
# Label the namespace of your Prometheus, so that it may read metrics, or change the selector below:
#
#   kubectl label namespace monitoring bottlerocket.aws/metrics=allowed
#
# That of ` + "`make prometheus` and `make dashboard`" + ` has the label.
#
# A kubelet's probes come from its own node, and most plugins always allow that. If yours does not, probes fail as soon
# as this is applied: delete it again.
`,
		Values:    map[string]any{"networkPolicy": on},
		Templates: []string{"network-policy.yaml"},
	}, {
		File: "components/plans/plans.yaml",
		Comment: `# What the plans of the policy need (` + "`plans`" + `): the runner, which makes a pod on each node that a plan is to change, and a
# namespace for these pods and for the PodTemplates that they are made of. Without plans you need none of this.
#
#   kubectl apply -f update-operator.yaml
#   kubectl apply -f components/plans/plans.yaml
#
# A user who can write PodTemplates in the namespace bottlerocket-plans is root on the nodes of the plans that name
# them, and so is one who can create pods there. Give rights there only to users to whom you would give the nodes.
#
# It is always safe to apply this file again, also in the middle of a rollout. ` + "`make undeploy`" + ` removes it, but for three
# admission policies, which must stay if it is ever to be applied again: docs/uninstall.md#with-kubectl
`,
		Values:    map[string]any{"plans": on},
		Templates: []string{"plans.yaml"},
	}, {
		File: "components/pod-monitor/pod-monitor.yaml",
		Comment: `# Optional, for clusters with the Prometheus operator: what it is to scrape. For others the annotations prometheus.io/*
# in update-operator.yaml say the same.
#
#   kubectl apply -f components/pod-monitor/pod-monitor.yaml
#
# A Prometheus object chooses its PodMonitors by their labels (podMonitorSelector) and their namespaces. If yours wants a
# label, such as release, add it below. docs/monitoring.md has the rest.
`,
		Values:    map[string]any{"podMonitor": on},
		Templates: []string{"pod-monitor.yaml"},
	}}
}

// Text returns what the file says.
func (f Form) Text(c *chartv2.Chart) (string, error) {
	rendered, err := Render(c, Namespace, f.Values)
	if err != nil {
		return "", errors.WithMessage(err, f.File)
	}
	var b strings.Builder
	b.WriteString(f.Comment)
	for i, name := range f.Templates {
		text := strings.TrimSpace(rendered[name])
		if text == "" {
			return "", errors.Errorf("%s: template %s says nothing with %v", f.File, name, f.Values)
		}
		if i > 0 {
			b.WriteString("---\n")
		}
		b.WriteString(text + "\n")
	}
	return b.String(), nil
}
