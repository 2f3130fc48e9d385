package controlplane

import (
	"path/filepath"
	"strings"
	"time"
)

// controllers are those that a cluster of Deployments, DaemonSets, Jobs and
// nodes lives on; the others would only cost memory and requests.
var controllers = []string{
	"clusterrole-aggregation-controller",
	"daemonset-controller",
	"deployment-controller",
	"disruption-controller",
	"endpointslice-controller",
	"garbage-collector-controller",
	"job-controller",
	"namespace-controller",
	"node-lifecycle-controller",
	"pod-garbage-collector-controller",
	"replicaset-controller",
	"root-ca-certificate-publisher-controller",
	"serviceaccount-controller",
	"statefulset-controller",
	"taint-eviction-controller",
	"validatingadmissionpolicy-status-controller",
}

func (c *ControlPlane) startControllerManager() error {
	kubeconfig, err := c.componentKubeconfig("controller-manager", "system:kube-controller-manager")
	if err != nil {
		return err
	}
	flags := []string{
		"--kubeconfig=" + kubeconfig,
		"--controllers=" + strings.Join(controllers, ","),
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + filepath.Join(c.dir, "sa.key"),
		"--root-ca-file=" + filepath.Join(c.dir, "ca.crt"),
		"--leader-elect=false",
		"--secure-port=0",
		"--profiling=false",
		"--kube-api-qps=200",
		"--kube-api-burst=400",
	}
	if grace := c.config.NodeMonitorGracePeriod; grace > 0 {
		flags = append(flags, "--node-monitor-grace-period="+grace.String())
		// Silence must be looked for often enough to be seen in time.
		if period := grace / 4; period < 5*time.Second {
			flags = append(flags, "--node-monitor-period="+period.String())
		}
	}
	flags = append(flags, featureGates(c.config.FeatureGates)...)
	c.controllerManager, err = c.run("kube-controller-manager", c.config.Binaries.ControllerManager, flags...)
	return err
}
