package controlplane

import "github.com/bottlerocket-os/bottlerocket-update-operator/dev/process"

// schedulerEnds is how often the scheduler may end by itself. It does when its cache is wrong after an outage of the API
// server ("Scheduler cache is corrupted"), and counts on being started again.
const schedulerEnds = 3

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
	if c.scheduler, err = c.run("kube-scheduler", c.config.Binaries.Scheduler, flags...); err != nil {
		return err
	}
	go c.keepScheduler(c.scheduler)
	return nil
}

// keepScheduler starts the scheduler again when it ends by itself, as a kubelet would.
func (c *ControlPlane) keepScheduler(p *process.Process) {
	<-p.Done()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped || c.ended == schedulerEnds {
		return
	}
	c.ended++
	if c.startScheduler() != nil {
		// Alive tells of it.
		c.scheduler, c.ended = p, schedulerEnds
	}
}
