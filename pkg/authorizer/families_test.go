package authorizer

import (
	"net"
	"testing"

	"gotest.tools/v3/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
)

// TestAddressFamilies holds that a proxy on all addresses, as the manifest has it, serves IPv4 and IPv6 alike.
func TestAddressFamilies(t *testing.T) {
	hosts := []string{"127.0.0.1"}
	if l, err := net.Listen("tcp", "[::1]:0"); err == nil {
		assert.NilError(t, l.Close())
		hosts = append(hosts, "::1")
	} else {
		t.Logf("IPv6 is not tried: this machine has none: %v", err)
	}
	c := newCluster(t)
	c.options.ServeAddress = ":0"
	p := c.proxy()
	c.node("own-7", nil)
	_, token := c.agentToken("own-7")
	_, port, err := net.SplitHostPort(p.url[len("https://"):])
	assert.NilError(t, err)
	for _, host := range hosts {
		config := c.config(p, token)
		config.Host = "https://" + net.JoinHostPort(host, port)
		client, err := metadata.NewForConfig(config)
		assert.NilError(t, err)
		n, err := client.Resource(nodesResource).Get(t.Context(), "own-7", metav1.GetOptions{})
		assert.NilError(t, err, host)
		assert.Equal(t, n.Name, "own-7")
	}
}
