package authorizer

import (
	"flag"
	"net"
	"time"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

// Options are the proxy's flags.
type Options struct {
	// Namespace is the operator's own, AgentAccount the agents' service account in it.
	Namespace, AgentAccount string
	// Audience is the audience that agents' tokens must have.
	Audience string
	// ServeAddress is the address for agents, ServerName the DNS name in the certificate.
	ServeAddress, ServerName string
	// SecretName and CAName are the Secret and the ConfigMap of the certificates, in Namespace.
	SecretName, CAName string
	// CALife and CertificateLife are for how long the proxy's own certificates are valid; each is renewed at two thirds of
	// that. CASettle is how long a new CA is published before it signs.
	CALife, CertificateLife, CASettle time.Duration
	// CertFile and KeyFile are a certificate of the user's own; if empty, the proxy makes one. CertCAFile is its CA, for
	// the ConfigMap CAName; if empty, the user writes it there.
	CertFile, KeyFile, CertCAFile string

	// Kubeconfig is empty inside a cluster.
	Kubeconfig string
	telemetry.Options
}

// DefaultOptions returns the defaults.
func DefaultOptions() Options {
	return Options{
		Namespace:       "bottlerocket",
		AgentAccount:    "update-operator-agent",
		Audience:        "bottlerocket-update-operator",
		ServeAddress:    ":8443",
		ServerName:      "update-operator-proxy.bottlerocket.svc",
		SecretName:      "update-operator-proxy-tls",
		CAName:          "update-operator-proxy-ca",
		CALife:          2 * 365 * 24 * time.Hour,
		CertificateLife: 90 * 24 * time.Hour,
		CASettle:        time.Hour,
		Options:         telemetry.DefaultOptions(),
	}
}

// AddFlags binds the options to fs.
func (o *Options) AddFlags(fs *flag.FlagSet) {
	fs.StringVar(&o.Namespace, "namespace", o.Namespace, "the operator's own namespace (default $POD_NAMESPACE)")
	fs.StringVar(&o.AgentAccount, "agent-service-account", o.AgentAccount, "the agents' service account in that namespace")
	fs.StringVar(&o.Audience, "audience", o.Audience, "audience that agents' tokens must have")
	fs.StringVar(&o.ServeAddress, "proxy-listen", o.ServeAddress, "address that agents are served on")
	fs.StringVar(&o.ServerName, "proxy-server-name", o.ServerName, "DNS name in the proxy's certificate")
	fs.StringVar(&o.SecretName, "tls-secret", o.SecretName, "Secret that holds key and certificates")
	fs.StringVar(&o.CAName, "ca-configmap", o.CAName, "ConfigMap with the CA that agents trust, under ca.crt")
	fs.DurationVar(&o.CALife, "ca-life", o.CALife, "how long a CA that the proxy makes is valid; renewed after two thirds of it")
	fs.DurationVar(&o.CertificateLife, "certificate-life", o.CertificateLife, "how long a certificate that the proxy makes is valid; renewed after two thirds of it")
	fs.DurationVar(&o.CASettle, "ca-settle", o.CASettle, "how long agents can learn of a new CA before it signs certificates")
	fs.StringVar(&o.CertFile, "tls-cert-file", o.CertFile, "file with a certificate of your own, read again when it changes (default: the proxy makes one)")
	fs.StringVar(&o.KeyFile, "tls-key-file", o.KeyFile, "file with the key of that certificate")
	fs.StringVar(&o.CertCAFile, "tls-ca-file", o.CertCAFile, "file with the CA of that certificate, to be written into -ca-configmap (default: you write it there)")
	fs.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "kubeconfig file, outside a cluster")
	o.Options.AddFlags(fs, "metrics and probes")
}

// Validate returns the first mistake, with the remedy.
func (o Options) Validate() error {
	for _, f := range []struct{ name, value string }{
		{"namespace", o.Namespace}, {"agent-service-account", o.AgentAccount}, {"audience", o.Audience},
		{"proxy-listen", o.ServeAddress}, {"proxy-server-name", o.ServerName}, {"tls-secret", o.SecretName},
		{"ca-configmap", o.CAName},
	} {
		if f.value == "" {
			return errors.Errorf("flag -%s is empty: give a value or leave the flag out", f.name)
		}
	}
	switch {
	case o.CertificateLife <= 0 || o.CALife < o.CertificateLife:
		return errors.Errorf("flags -ca-life and -certificate-life are %s and %s: give positive durations, the CA's not the shorter one",
			o.CALife, o.CertificateLife)
	case o.CASettle < 0 || o.CASettle > o.CALife/6:
		return errors.Errorf("flag -ca-settle is %s: give at most a sixth of -ca-life, %s", o.CASettle, o.CALife/6)
	case (o.CertFile == "") != (o.KeyFile == ""):
		return errors.New("flags -tls-cert-file and -tls-key-file belong together: give both or none")
	case o.CertFile == "" && o.CertCAFile != "":
		return errors.New("flag -tls-ca-file is given without -tls-cert-file: a CA goes with a certificate of your own")
	}
	if _, port, err := net.SplitHostPort(o.ServeAddress); err != nil || port == "" {
		return errors.Errorf("flag -proxy-listen is %q: give HOST:PORT, or :PORT for all addresses", o.ServeAddress)
	}
	return o.Options.Validate()
}
