package simcluster

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/fields"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podNetwork is the API server's way to pods, whose addresses nothing listens on: it asks for each connection by CONNECT
// over a unix socket, and gets one to the pod's process.
type podNetwork struct {
	dir    string
	server *http.Server
	// find returns where the process listens that has an address of a pod; an error if there is none.
	find func(ctx context.Context, host, port string) (string, error)
}

// egress is the API server's configuration for that socket.
const egress = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection: {proxyProtocol: HTTPConnect, transport: {uds: {udsName: %q}}}
`

func newPodNetwork(find func(ctx context.Context, host, port string) (string, error)) (*podNetwork, error) {
	// A socket's path must be short.
	dir, err := os.MkdirTemp("", "pods")
	if err != nil {
		return nil, errors.Wrap(err, "making a folder for a socket")
	}
	n := &podNetwork{dir: dir, find: find}
	socket := filepath.Join(dir, "socket")
	if err := os.WriteFile(n.config(), fmt.Appendf(nil, egress, socket), 0o600); err != nil {
		return nil, errors.Wrap(err, "writing the API server's way to pods")
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return nil, errors.Wrap(err, "listening for connections to pods")
	}
	n.server = &http.Server{Handler: n}
	go func() { _ = n.server.Serve(l) }()
	return n, nil
}

func (n *podNetwork) config() string { return filepath.Join(n.dir, "egress.yaml") }

// ServeHTTP implements http.Handler.
func (n *podNetwork) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	host, port, err := net.SplitHostPort(r.Host)
	if r.Method != http.MethodConnect || err != nil {
		http.Error(w, "only CONNECT", http.StatusMethodNotAllowed)
		return
	}
	at, err := n.find(r.Context(), host, port)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	out, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", at)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	in, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = out.Close()
		return
	}
	_, _ = io.WriteString(in, "HTTP/1.1 200 Connection established\r\n\r\n")
	join(in, out)
}

func (n *podNetwork) close() {
	_ = n.server.Close()
	_ = os.RemoveAll(n.dir)
}

// join copies between two connections until one of them ends, and closes both.
func join(a, b net.Conn) {
	var both sync.WaitGroup
	pipe := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		_ = to.Close()
		_ = from.Close()
	}
	both.Go(func() { pipe(a, b) })
	both.Go(func() { pipe(b, a) })
	both.Wait()
}

// processAt returns where the process of a pod of the operator listens, for an address of the pod.
func (c *Cluster) processAt(ctx context.Context, host, port string) (string, error) {
	pods, err := c.Client.CoreV1().Pods(Namespace).List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("status.podIP", host).String()})
	if err != nil {
		return "", errors.Wrapf(err, "looking for the pod at %s", host)
	}
	for i := range pods.Items {
		for _, container := range pods.Items[i].Spec.Containers {
			for _, p := range container.Ports {
				if fmt.Sprint(p.ContainerPort) == port {
					return c.port(string(pods.Items[i].UID), p.Name)
				}
			}
		}
	}
	return "", errors.Errorf("no pod of the operator listens on %s", net.JoinHostPort(host, port))
}
