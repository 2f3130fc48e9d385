package controlplane

func (c *ControlPlane) startScheduler() error {
	kubeconfig, err := c.componentKubeconfig("scheduler", "system:kube-scheduler")
	if err != nil {
		return err
	}
	flags := []string{
		"--kubeconfig=" + kubeconfig,
		"--leader-elect=false",
		"--secure-port=0",
		"--profiling=false",
	}
	flags = append(flags, featureGates(c.config.FeatureGates)...)
	c.scheduler, err = c.run("kube-scheduler", c.config.Binaries.Scheduler, flags...)
	return err
}
