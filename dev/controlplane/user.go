package controlplane

import (
	"net"
	"path/filepath"

	"github.com/pkg/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// UserConfig makes a client certificate for a user in groups and returns a
// client configuration with it. Nothing limits its rate of requests.
func (c *ControlPlane) UserConfig(user string, groups ...string) (*rest.Config, error) {
	p, err := c.authority.client(user, groups)
	if err != nil {
		return nil, err
	}
	out := &rest.Config{
		Host: c.URL(),
		QPS:  -1,
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   c.authority.pem,
			CertData: p.cert,
			KeyData:  p.key,
		},
	}
	if n := c.config.Network; n != nil {
		out.Dial = n.Dial
	}
	return out, nil
}

// ServingCertificate makes a certificate for a server at an address, with its key, both PEM.
func (c *ControlPlane) ServingCertificate(name string, address net.IP) (cert, key []byte, err error) {
	p, err := c.authority.server(name, []string{name}, []net.IP{address})
	return p.cert, p.key, err
}

// AdminConfig is the client configuration of the cluster's administrator.
func (c *ControlPlane) AdminConfig() *rest.Config {
	cfg := rest.CopyConfig(c.admin)
	cfg.Host = c.URL()
	return cfg
}

// WriteKubeconfig writes a client configuration made here to a kubeconfig file.
func WriteKubeconfig(path string, cfg *rest.Config) error {
	const name = "local"
	out := clientcmdapi.NewConfig()
	out.Clusters[name] = &clientcmdapi.Cluster{Server: cfg.Host, CertificateAuthorityData: cfg.CAData}
	out.AuthInfos[name] = &clientcmdapi.AuthInfo{
		ClientCertificateData: cfg.CertData,
		ClientKeyData:         cfg.KeyData,
		Token:                 cfg.BearerToken,
	}
	out.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	out.CurrentContext = name
	return errors.Wrap(clientcmd.WriteToFile(*out, path), "writing a kubeconfig")
}

// componentKubeconfig makes the kubeconfig of a program of the control plane.
func (c *ControlPlane) componentKubeconfig(name, user string) (string, error) {
	cfg, err := c.UserConfig(user)
	if err != nil {
		return "", err
	}
	path := filepath.Join(c.dir, name+".kubeconfig")
	return path, WriteKubeconfig(path, cfg)
}
