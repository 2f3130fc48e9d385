package agent

import (
	"context"
	"flag"
	"io"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/pkg/errors"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/sirupsen/logrus"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/platform/updateapi"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

// minRefresh protects the host and the update repository from a mistake.
const minRefresh = time.Second

// Options are the agent's flags; AddFlags has what each means.
type Options struct {
	NodeName        string
	ProxyServer     string
	ProxyServerName string
	CAFile          string
	TokenFile       string
	HostSocket      string
	BootIDFile      string
	RefreshInterval time.Duration
	telemetry.Options
}

// DefaultOptions returns the options that fit the manifest, which itself gives the node and the proxy.
func DefaultOptions() Options {
	return Options{
		ProxyServerName: ProxyIn("bottlerocket"),
		CAFile:          "/var/run/secrets/bottlerocket.aws/proxy-ca/ca.crt",
		TokenFile:       "/var/run/secrets/bottlerocket.aws/proxy/token",
		HostSocket:      updateapi.DefaultSocket,
		BootIDFile:      updateapi.DefaultBootIDPath,
		RefreshInterval: DefaultRefreshEvery,
		Options:         telemetry.DefaultOptions(),
	}
}

// ProxyIn returns the DNS name of the proxy's Service in a namespace; the proxy's certificate has the same.
func ProxyIn(namespace string) string { return "update-operator-proxy." + namespace + ".svc" }

// AddFlags defines the flags on fs, with o's values as defaults.
func (o *Options) AddFlags(fs *flag.FlagSet) {
	fs.StringVar(&o.NodeName, "node-name", o.NodeName,
		"name of the node that this agent runs on (default from the environment: NODE_NAME)")
	fs.StringVar(&o.ProxyServer, "proxy-server", o.ProxyServer,
		"https URL of the proxy, best with the Service's cluster IP, which needs no DNS")
	fs.StringVar(&o.ProxyServerName, "proxy-server-name", o.ProxyServerName,
		"DNS name that the proxy's certificate must have; also tried if -proxy-server doesn't answer")
	fs.StringVar(&o.CAFile, "proxy-ca-file", o.CAFile, "file with the proxy's CA, read again when it changes")
	fs.StringVar(&o.TokenFile, "token-file", o.TokenFile, "file with the token for the proxy, read again when it changes")
	fs.StringVar(&o.HostSocket, "host-socket", o.HostSocket, "socket of the host's API")
	fs.StringVar(&o.BootIDFile, "boot-id-file", o.BootIDFile, "file with the boot ID of the host's kernel")
	fs.DurationVar(&o.RefreshInterval, "refresh-interval", o.RefreshInterval,
		"how often the host looks for updates, plus or minus a tenth")
	o.Options.AddFlags(fs, "metrics and probes")
}

// Validate returns an error that names the first flag which can't be used, and the remedy.
func (o Options) Validate() error {
	for _, f := range []struct{ name, value, remedy string }{
		{"node-name", o.NodeName, "give it, or set NODE_NAME to spec.nodeName in the pod's environment"},
		{"proxy-server", o.ProxyServer, "give the proxy's URL, like https://10.96.0.20"},
		{"proxy-server-name", o.ProxyServerName, "give the name in the proxy's certificate"},
		{"proxy-ca-file", o.CAFile, "give the file with the proxy's CA"},
		{"token-file", o.TokenFile, "give the file with the token for the proxy"},
		{"host-socket", o.HostSocket, "give the path of the host's API socket"},
		{"boot-id-file", o.BootIDFile, "give the path of the file with the boot ID"},
	} {
		if f.value == "" {
			return errors.Errorf("flag -%s is empty: %s", f.name, f.remedy)
		}
	}
	u, err := url.Parse(bracketed(o.ProxyServer))
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return errors.Errorf("flag -proxy-server: %q is not an https URL: give one like https://10.96.0.20", o.ProxyServer)
	}
	if o.RefreshInterval < minRefresh {
		return errors.Errorf("flag -refresh-interval: %s is too short: give %s or more", o.RefreshInterval, minRefresh)
	}
	return o.Options.Validate()
}

// bracketed returns a URL with its IPv6 address in brackets. The manifest composes the URL from the Service's host and
// port, and can't know of which family they are.
func bracketed(server string) string {
	rest, ok := strings.CutPrefix(server, "https://")
	if !ok || strings.Contains(rest, "[") || strings.Count(rest, ":") < 2 {
		return server
	}
	at := strings.LastIndex(rest, ":")
	return "https://" + net.JoinHostPort(rest[:at], rest[at+1:])
}

// lookup returns the function that finds the proxy's Service by its name: none for a proxy on the loopback, which is a
// tunnel or a test.
func lookup(server string) func(context.Context, string) ([]string, error) {
	u, err := url.Parse(bracketed(server))
	if err != nil || net.ParseIP(u.Hostname()).IsLoopback() {
		return nil
	}
	return net.DefaultResolver.LookupHost
}

// Start runs an agent with its probes and metrics until ctx ends; it logs to out. Options must be valid.
func Start(ctx context.Context, o Options, out io.Writer) error {
	log, err := o.Logger(out)
	if err != nil {
		return err
	}
	node, err := NewProxy(ProxyConfig{
		NodeName: o.NodeName, Server: bracketed(o.ProxyServer), ServerName: o.ProxyServerName,
		TokenFile: o.TokenFile, CAFile: o.CAFile, Lookup: lookup(o.ProxyServer),
	})
	if err != nil {
		return err
	}
	metrics, registry := NewMetrics(), prometheus.NewRegistry()
	metrics.Register(registry)
	telemetry.RegisterBuildInfo(registry, "agent")
	registry.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	a, err := New(Config{
		Node:         node,
		Host:         updateapi.New(updateapi.Config{Socket: o.HostSocket, BootIDPath: o.BootIDFile}),
		Log:          log.WithField(telemetry.FieldNode, o.NodeName),
		Version:      telemetry.Version,
		RefreshEvery: o.RefreshInterval,
		Metrics:      metrics,
	})
	if err != nil {
		return err
	}
	log.WithFields(logrus.Fields{
		telemetry.FieldNode:    o.NodeName,
		telemetry.FieldVersion: telemetry.Version,
	}).Info("Starting the agent")
	return telemetry.RunAndServe(ctx, a.Run, o.ListenAddress, telemetry.Config{
		Gatherer: registry, Ready: a.Ready, Healthy: a.Healthy, Log: log,
	})
}
