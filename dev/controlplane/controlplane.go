package controlplane

import (
	"context"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/port"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/process"
	"github.com/pkg/errors"
	"k8s.io/client-go/rest"
)

// stopGrace is what each program gets to end by itself; nothing of a cluster
// that is thrown away is worth more.
const stopGrace = 2 * time.Second

// ControlPlane is one running control plane.
type ControlPlane struct {
	config    Config
	dir       string
	made      *runDir // nil if the caller gave the folder
	authority *authority
	admin     *rest.Config
	port      int

	mu                                            sync.Mutex
	etcd, apiServer, controllerManager, scheduler *process.Process
	outage                                        bool // made by StopAPIServer
	etcdOutage                                    bool // made by StopEtcd
	stopped                                       bool
	kept                                          *port.Port // the API server's; nil in a network of its own
	ended                                         int        // how often the scheduler was started again
}

// Start starts a control plane and waits until it serves. If it can't, nothing
// of it is left.
func Start(ctx context.Context, config Config) (_ *ControlPlane, err error) {
	if config.Binaries.APIServer == "" {
		return nil, errors.New("no binaries given: call Build first")
	}
	c := &ControlPlane{config: config, dir: config.Dir}
	defer func() {
		if err != nil {
			c.Stop()
		}
	}()
	if c.dir == "" {
		if c.made, err = newRunDir(ctx); err != nil {
			return nil, err
		}
		c.dir = c.made.path
	} else {
		if err := os.MkdirAll(c.dir, 0o700); err != nil {
			return nil, errors.Wrap(err, "making the cluster's folder")
		}
		if c.dir, err = filepath.Abs(c.dir); err != nil {
			return nil, errors.Wrap(err, "finding the cluster's folder")
		}
	}
	if c.config.AuditPolicy == "" {
		c.config.AuditPolicy = auditPolicy
	}
	if err := c.prepare(); err != nil {
		return nil, err
	}
	if err := c.startEtcd(); err != nil {
		return nil, err
	}
	if err := c.firstAPIServer(ctx); err != nil {
		return nil, err
	}
	if err := WriteKubeconfig(c.Kubeconfig(), c.AdminConfig()); err != nil {
		return nil, err
	}
	if config.ControllerManager {
		if err := c.startControllerManager(); err != nil {
			return nil, err
		}
	}
	if config.Scheduler {
		if err := c.startScheduler(); err != nil {
			return nil, err
		}
	}
	if config.ControllerManager {
		if err := c.awaitDefaults(ctx); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// prepare makes keys, certificates and files before anything runs.
func (c *ControlPlane) prepare() (err error) {
	if c.config.AuthorityDir == "" {
		c.authority, err = newAuthority()
	} else {
		c.authority, err = keptAuthority(c.config.AuthorityDir)
	}
	if err != nil {
		return err
	}
	dns, ips := apiServerNames()
	serving, err := c.authority.server("kube-apiserver", dns, append(ips, c.address()))
	if err != nil {
		return err
	}
	kubelets, err := c.authority.client("kube-apiserver-kubelet-client", []string{"system:masters"})
	if err != nil {
		return err
	}
	tokens, err := newKey()
	if err != nil {
		return err
	}
	private, err := keyPEM(tokens)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKIXPublicKey(tokens.Public())
	if err != nil {
		return errors.Wrap(err, "encoding a key")
	}
	for name, content := range map[string][]byte{
		"ca.crt":            c.authority.pem,
		"apiserver.crt":     serving.cert,
		"apiserver.key":     serving.key,
		"kubelets.crt":      kubelets.cert,
		"kubelets.key":      kubelets.key,
		"sa.key":            private,
		"sa.pub":            pemBlock("PUBLIC KEY", der),
		"audit-policy.yaml": []byte(c.config.AuditPolicy),
	} {
		if _, err := c.write(name, content); err != nil {
			return err
		}
	}
	c.admin, err = c.UserConfig("admin", "system:masters")
	return err
}

// URL is the API server's address.
func (c *ControlPlane) URL() string {
	return "https://" + net.JoinHostPort(c.address().String(), strconv.Itoa(c.port))
}

func (c *ControlPlane) address() net.IP {
	if n := c.config.Network; n != nil {
		return n.Address
	}
	return net.ParseIP(port.Loopback)
}

// Dir is the folder with the cluster's files; each program's output is in
// <program>.log.
func (c *ControlPlane) Dir() string { return c.dir }

// Kubeconfig is the path of the administrator's kubeconfig.
func (c *ControlPlane) Kubeconfig() string { return filepath.Join(c.dir, "admin.kubeconfig") }

// AuditLog is the path of the audit log: one JSON event a line.
func (c *ControlPlane) AuditLog() string { return filepath.Join(c.dir, "audit.log") }

// APIServerLog is the path of what the API server itself logs.
func (c *ControlPlane) APIServerLog() string { return c.logPath("kube-apiserver") }

// CACert is the certificate of the cluster's authority, PEM.
func (c *ControlPlane) CACert() []byte { return c.authority.pem }

// CAFile is the path of the same certificate.
func (c *ControlPlane) CAFile() string { return filepath.Join(c.dir, "ca.crt") }

// Binaries are the programs that run here.
func (c *ControlPlane) Binaries() Binaries { return c.config.Binaries }

// Stop ends every program and, if Start chose the folder, removes it. It may be
// called more than once.
func (c *ControlPlane) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	// Clients first: without its clients the API server ends at once.
	for _, p := range []*process.Process{c.scheduler, c.controllerManager} {
		if p != nil {
			p.Stop(stopGrace)
		}
	}
	for _, p := range []*process.Process{c.apiServer, c.etcd} {
		if p != nil {
			p.Kill()
		}
	}
	if c.kept != nil {
		c.kept.Release()
		c.kept = nil
	}
	if c.made != nil {
		_ = c.made.remove()
		c.made = nil
	}
}
