package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/port"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/process"
	"github.com/pkg/errors"
)

const (
	serviceRange = "10.96.0.0/16"
	issuer       = "https://kubernetes.default.svc.cluster.local"

	readyPoll   = 50 * time.Millisecond
	readyWithin = 2 * time.Minute
)

// firstAPIServer finds a port, which is the API server's until Stop, and starts the API server on it.
func (c *ControlPlane) firstAPIServer(ctx context.Context) error {
	if c.config.Network != nil {
		// The network is this cluster's own.
		c.port = 6443
		return c.launchAPIServer(ctx)
	}
	kept, err := port.Reserve(c.config.Port)
	if err != nil {
		return err
	}
	c.kept, c.port = kept, kept.Number()
	return c.launchAPIServer(ctx)
}

func (c *ControlPlane) launchAPIServer(ctx context.Context) error {
	p, err := c.run("kube-apiserver", c.config.Binaries.APIServer, c.apiServerFlags()...)
	if err != nil {
		return err
	}
	c.apiServer, c.outage = p, false
	return c.awaitAPIServer(ctx, p)
}

func (c *ControlPlane) apiServerFlags() []string {
	file := func(name string) string { return filepath.Join(c.dir, name) }
	flags := []string{
		"--bind-address=" + c.address().String(),
		"--advertise-address=" + c.address().String(),
		"--secure-port=" + strconv.Itoa(c.port),
		"--etcd-servers=" + etcdEndpoint,
		"--cert-dir=" + file("certs"),
		"--tls-cert-file=" + file("apiserver.crt"),
		"--tls-private-key-file=" + file("apiserver.key"),
		"--client-ca-file=" + file("ca.crt"),
		"--service-account-issuer=" + issuer,
		"--service-account-key-file=" + file("sa.pub"),
		"--service-account-signing-key-file=" + file("sa.key"),
		"--service-cluster-ip-range=" + serviceRange,
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--profiling=false",
		"--event-ttl=1h",
	}
	if c.config.Network == nil {
		// No endpoint of the default Service: loopback addresses aren't allowed.
		flags = append(flags, "--endpoint-reconciler-type=none")
	} else {
		flags = append(flags,
			"--kubelet-client-certificate="+file("kubelets.crt"),
			"--kubelet-client-key="+file("kubelets.key"),
			"--kubelet-certificate-authority="+file("ca.crt"),
			"--kubelet-preferred-address-types=InternalIP",
			// No kube-proxy runs beside the API server: it reaches Services by their endpoints.
			"--enable-aggregator-routing=true",
		)
	}
	if !c.config.ControllerManager {
		flags = append(flags, "--disable-admission-plugins=ServiceAccount")
	}
	if c.config.AuditLog {
		flags = append(flags,
			"--audit-policy-file="+file("audit-policy.yaml"),
			"--audit-log-path="+file("audit.log"),
			"--audit-log-format=json",
			// In MiB; 0 would be 100. A log that begins anew elsewhere would look as if requests were missing.
			"--audit-log-maxsize=8192",
		)
	}
	flags = append(flags, featureGates(c.config.serverGates())...)
	return append(flags, c.config.APIServerFlags...)
}

// awaitAPIServer waits until the server p says that it is ready.
func (c *ControlPlane) awaitAPIServer(ctx context.Context, p *process.Process) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	client, err := c.probeClient()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	last := "no answer yet"
	for {
		if code, body, err := get(ctx, client, c.URL()+"/readyz"); err != nil {
			last = err.Error()
		} else if code == http.StatusOK {
			return nil
		} else {
			last = tail(body, 5)
		}
		select {
		case <-p.Done():
			log := process.LogTail(c.logPath("kube-apiserver"), 4096)
			return errors.Errorf("kube-apiserver ended before it was ready: %s", tail(log, 10))
		case <-c.etcd.Done():
			p.Kill()
			return errors.Errorf("etcd ended: %s", tail(process.LogTail(c.logPath("etcd"), 4096), 5))
		case <-ctx.Done():
			return errors.Wrapf(ctx.Err(), "waiting for kube-apiserver (%s)", last)
		case <-time.After(readyPoll):
		}
	}
}

// probeClient is a plain client with the administrator's certificate.
func (c *ControlPlane) probeClient() (*http.Client, error) {
	cert, err := tls.X509KeyPair(c.admin.CertData, c.admin.KeyData)
	if err != nil {
		return nil, errors.Wrap(err, "reading the administrator's certificate")
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.authority.pem)
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12},
	}
	if n := c.config.Network; n != nil {
		transport.DialContext = n.Dial
	}
	return &http.Client{Timeout: 10 * time.Second, Transport: transport}, nil
}

func get(ctx context.Context, client *http.Client, url string) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", errors.Wrap(err, "making a request")
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	return resp.StatusCode, string(body), err
}

// apiServerNames are what the serving certificate stands for.
func apiServerNames() ([]string, []net.IP) {
	return []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
		[]net.IP{net.ParseIP(port.Loopback), net.ParseIP("10.96.0.1")}
}
