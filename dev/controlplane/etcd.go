package controlplane

import (
	"context"
	"path/filepath"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/process"
	"github.com/pkg/errors"
)

// etcdEndpoint is a unix socket in the cluster's folder, reached by its relative
// name: the working folder of etcd and of the API server is that folder, so its
// length doesn't count against the limit for socket paths. etcd wants a port in
// every address; of a unix socket it is a part of the name.
const (
	etcdEndpoint = "unix://etcd.sock:0"
	etcdPeer     = "unix://peer.sock:0"
)

func (c *ControlPlane) startEtcd() (err error) {
	c.etcd, err = c.run("etcd", c.config.Binaries.Etcd,
		"--name=local",
		"--data-dir="+filepath.Join(c.dir, "etcd"),
		"--listen-client-urls="+etcdEndpoint,
		"--advertise-client-urls="+etcdEndpoint,
		"--listen-peer-urls="+etcdPeer,
		"--initial-advertise-peer-urls="+etcdPeer,
		"--initial-cluster=local="+etcdPeer,
		"--unsafe-no-fsync",
		"--log-level=warn",
		// A small cluster keeps a small log in memory.
		"--snapshot-count=5000",
		"--quota-backend-bytes=2147483648",
	)
	return err
}

// awaitEtcd waits until etcd answers from its store.
func (c *ControlPlane) awaitEtcd(ctx context.Context, p *process.Process) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		_, err := c.revision(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.Done():
			return errors.Errorf("etcd ended: %s", tail(process.LogTail(c.logPath("etcd"), 4096), 5))
		case <-ctx.Done():
			return errors.WithMessage(err, "waiting for etcd")
		case <-time.After(readyPoll):
		}
	}
}
