package simcluster

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/manifest"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/prometheus"
)

// Targets returns where the operator's pods serve their metrics, with the labels that components/pod-monitor/pod-monitor.yaml gives
// them. A pod that is on no node yet is left out.
func (c *Cluster) Targets(ctx context.Context) ([]prometheus.Target, error) {
	var out []prometheus.Target
	for _, what := range []string{manifest.Controller, manifest.Proxy, manifest.Agent, manifest.Runner} {
		pods, err := c.Pods(ctx, what)
		if err != nil {
			return nil, err
		}
		for i := range pods {
			p := &pods[i]
			if p.Spec.NodeName == "" || p.Status.Phase == corev1.PodFailed {
				continue
			}
			address, err := c.port(string(p.UID), "http")
			if err != nil {
				return nil, err
			}
			out = append(out, prometheus.Target{Address: address, Labels: map[string]string{
				"namespace": p.Namespace, "pod": p.Name, "node": p.Spec.NodeName, "component": what,
			}})
		}
	}
	return out, nil
}
