package controlplane

import (
	"context"
	"syscall"

	"github.com/pkg/errors"
)

// StartAPIServer starts the API server on its port and waits until it is ready.
// It is for ending an outage that StopAPIServer made.
func (c *ControlPlane) StartAPIServer(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.apiServer != nil && c.apiServer.Running() {
		return errors.New("the API server runs already")
	}
	return c.launchAPIServer(ctx)
}

// StopAPIServer makes an outage: the API server is killed without warning.
func (c *ControlPlane) StopAPIServer() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.apiServer != nil {
		c.outage = true
		c.apiServer.Kill()
	}
}

// PauseAPIServer stops the API server in the middle of what it does, until ResumeAPIServer. Its
// connections stay open and are not answered.
func (c *ControlPlane) PauseAPIServer() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.apiServer.Signal(syscall.SIGSTOP)
}

// ResumeAPIServer lets a paused API server go on.
func (c *ControlPlane) ResumeAPIServer() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.apiServer.Signal(syscall.SIGCONT)
}

// StopEtcd makes an outage of the store: etcd is killed without warning. What it answered for stays.
func (c *ControlPlane) StopEtcd() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.etcd != nil {
		c.etcdOutage = true
		c.etcd.Kill()
	}
}

// StartEtcd starts etcd on the data that it left and waits until it answers.
func (c *ControlPlane) StartEtcd(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.etcd != nil && c.etcd.Running() {
		return errors.New("etcd runs already")
	}
	if err := c.startEtcd(); err != nil {
		return err
	}
	c.etcdOutage = false
	return c.awaitEtcd(ctx, c.etcd)
}

// AwaitAPIServer waits until the API server says that it is ready, after an outage of etcd.
func (c *ControlPlane) AwaitAPIServer(ctx context.Context) error {
	c.mu.Lock()
	p := c.apiServer
	c.mu.Unlock()
	return c.awaitAPIServer(ctx, p)
}
