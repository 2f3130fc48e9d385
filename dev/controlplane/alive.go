package controlplane

import (
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/process"
	"github.com/pkg/errors"
)

// Alive returns an error that names a program which ended by itself. An outage
// made by StopAPIServer or StopEtcd is none.
func (c *ControlPlane) Alive() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range []struct {
		name string
		p    *process.Process
	}{
		{"etcd", c.etcd},
		{"kube-apiserver", c.apiServer},
		{"kube-controller-manager", c.controllerManager},
		{"kube-scheduler", c.scheduler},
	} {
		if p.p == nil || p.p.Running() || p.p == c.apiServer && c.outage || p.p == c.etcd && c.etcdOutage || p.p == c.scheduler && c.ended < schedulerEnds {
			continue
		}
		return errors.Errorf("%s ended: %s", p.name, tail(process.LogTail(c.logPath(p.name), 4096), 5))
	}
	return nil
}
