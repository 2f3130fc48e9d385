package authorizer

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pkg/errors"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"gotest.tools/v3/assert"
	"gotest.tools/v3/poll"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

var shared controlplane.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

var nodesResource = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}

// cluster is a namespace of its own on the real API server, with the rights that the manifest gives.
type cluster struct {
	t       *testing.T
	plane   *controlplane.ControlPlane
	admin   kubernetes.Interface
	options Options
	// wrap, if any, is around what proxies ask the API server with.
	wrap func(http.RoundTripper) http.RoundTripper
}

var clusters atomic.Int32

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, plane: shared.Get(t), options: DefaultOptions()}
	admin, err := kubernetes.NewForConfig(c.plane.AdminConfig())
	assert.NilError(t, err)
	c.admin = admin
	c.options.Namespace = fmt.Sprintf("bottlerocket-%d", clusters.Add(1))
	c.options.ServeAddress = "127.0.0.1:0"
	c.namespace(c.options.Namespace)
	ctx, ns := t.Context(), c.options.Namespace
	for _, account := range []string{c.options.AgentAccount, "update-operator-controller"} {
		c.account(ns, account)
	}
	_, err = admin.CoreV1().Secrets(ns).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: c.options.SecretName}}, metav1.CreateOptions{})
	assert.NilError(t, err)
	_, err = admin.CoreV1().ConfigMaps(ns).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: c.options.CAName}}, metav1.CreateOptions{})
	assert.NilError(t, err)
	c.rights()
	return c
}

func (c *cluster) namespace(name string) {
	c.t.Helper()
	_, err := c.admin.CoreV1().Namespaces().Create(c.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	assert.NilError(c.t, err)
}

func (c *cluster) account(namespace, name string) {
	c.t.Helper()
	_, err := c.admin.CoreV1().ServiceAccounts(namespace).Create(c.t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	assert.NilError(c.t, err)
}

// rights are those that doc.go lists.
func (c *cluster) rights() {
	ctx, ns := c.t.Context(), c.options.Namespace
	subject := []rbacv1.Subject{{Kind: "ServiceAccount", Name: "update-operator-proxy", Namespace: ns}}
	name := metav1.ObjectMeta{Name: "proxy-" + ns}
	_, err := c.admin.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: name, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}},
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "watch", "patch"}},
	}}, metav1.CreateOptions{})
	assert.NilError(c.t, err)
	_, err = c.admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: name, Subjects: subject,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name.Name}}, metav1.CreateOptions{})
	assert.NilError(c.t, err)
	_, err = c.admin.RbacV1().Roles(ns).Create(ctx, &rbacv1.Role{ObjectMeta: name, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{c.options.SecretName}, Verbs: []string{"get", "update"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{c.options.CAName}, Verbs: []string{"get", "update"}},
	}}, metav1.CreateOptions{})
	assert.NilError(c.t, err)
	_, err = c.admin.RbacV1().RoleBindings(ns).Create(ctx, &rbacv1.RoleBinding{ObjectMeta: name, Subjects: subject,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name.Name}}, metav1.CreateOptions{})
	assert.NilError(c.t, err)
}

// proxy is one replica.
type proxy struct {
	*Proxy
	url string
	// stop ends it and waits for its end.
	stop func() error
}

// proxyConfig is what the proxy's account reaches the API server by.
func (c *cluster) proxyConfig() (*rest.Config, error) {
	return c.plane.UserConfig("system:serviceaccount:"+c.options.Namespace+":update-operator-proxy", "system:serviceaccounts", "system:authenticated")
}

func (c *cluster) proxy(adjust ...func(*Proxy)) *proxy {
	c.t.Helper()
	config, err := c.proxyConfig()
	assert.NilError(c.t, err)
	if c.wrap != nil {
		config.Wrap(c.wrap)
	}
	log := logrus.New()
	log.SetLevel(logrus.DebugLevel)
	log.SetOutput(testWriter{c.t})
	p, err := New(c.options, config, prometheus.NewRegistry(), log)
	assert.NilError(c.t, err)
	for _, f := range adjust {
		f(p)
	}
	l, err := net.Listen("tcp", c.options.ServeAddress)
	assert.NilError(c.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Serve(ctx, l) }()
	stop := sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	c.t.Cleanup(func() { assert.NilError(c.t, stop()) })
	until(c.t, p.Ready)
	return &proxy{Proxy: p, url: "https://" + l.Addr().String(), stop: stop}
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(line []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(line)))
	return len(line), nil
}

// until waits until check has nothing to complain of.
func until(t *testing.T, check func() error) {
	t.Helper()
	poll.WaitOn(t, func(poll.LogT) poll.Result {
		if err := check(); err != nil {
			return poll.Continue("%v", err)
		}
		return poll.Success()
	}, poll.WithTimeout(time.Minute), poll.WithDelay(20*time.Millisecond))
}

// node creates a cordoned Node.
func (c *cluster) node(name string, annotations map[string]string) *corev1.Node {
	c.t.Helper()
	n, err := c.admin.CoreV1().Nodes().Create(c.t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations, Labels: map[string]string{"bottlerocket.aws/updater-interface-version": "2.0.0"}},
		Spec:       corev1.NodeSpec{Unschedulable: true},
	}, metav1.CreateOptions{})
	assert.NilError(c.t, err)
	c.t.Cleanup(func() {
		_ = c.admin.CoreV1().Nodes().Delete(context.Background(), name, metav1.DeleteOptions{})
	})
	return n
}

// pod creates a pod on a node; without one it waits for a scheduler that isn't there.
func (c *cluster) pod(namespace, account, name, node string) *corev1.Pod {
	c.t.Helper()
	p, err := c.admin.CoreV1().Pods(namespace).Create(c.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{ServiceAccountName: account, NodeName: node, Containers: []corev1.Container{{Name: "agent", Image: "agent"}}},
	}, metav1.CreateOptions{})
	assert.NilError(c.t, err)
	return p
}

// token issues a token as the kubelet does; without a pod it is bound to nothing.
func (c *cluster) token(namespace, account string, pod *corev1.Pod, audience string) string {
	c.t.Helper()
	req := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}}}
	if pod != nil {
		req.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}
	}
	tr, err := c.admin.CoreV1().ServiceAccounts(namespace).CreateToken(c.t.Context(), account, req, metav1.CreateOptions{})
	assert.NilError(c.t, err)
	return tr.Status.Token
}

// agentToken makes a pod of an agent on a node and issues its token.
func (c *cluster) agentToken(node string) (*corev1.Pod, string) {
	c.t.Helper()
	pod := c.pod(c.options.Namespace, c.options.AgentAccount, "agent-"+node, node)
	return pod, c.token(c.options.Namespace, c.options.AgentAccount, pod, c.options.Audience)
}

// ca is what agents find mounted.
func (c *cluster) ca() []byte {
	c.t.Helper()
	config, err := c.admin.CoreV1().ConfigMaps(c.options.Namespace).Get(c.t.Context(), c.options.CAName, metav1.GetOptions{})
	assert.NilError(c.t, err)
	return []byte(config.Data["ca.crt"])
}

func (c *cluster) config(p *proxy, token string) *rest.Config {
	c.t.Helper()
	return c.configWith(p, token, c.ca())
}

// configWith makes a connection of its own each time.
func (c *cluster) configWith(p *proxy, token string, ca []byte) *rest.Config {
	return &rest.Config{Host: p.url, BearerToken: token, QPS: -1, Proxy: func(*http.Request) (*url.URL, error) { return nil, nil },
		TLSClientConfig: rest.TLSClientConfig{CAData: ca, ServerName: c.options.ServerName}}
}

// client is what an agent uses.
func (c *cluster) client(p *proxy, token string) metadata.Getter {
	c.t.Helper()
	client, err := metadata.NewForConfig(c.config(p, token))
	assert.NilError(c.t, err)
	return client.Resource(nodesResource)
}

func (c *cluster) live(name string) *corev1.Node {
	c.t.Helper()
	n, err := c.admin.CoreV1().Nodes().Get(c.t.Context(), name, metav1.GetOptions{})
	assert.NilError(c.t, err)
	return n
}

// annotate changes a node as controller or user do.
func (c *cluster) annotate(name string, annotations map[string]string) {
	c.t.Helper()
	n := c.live(name)
	n.Annotations = annotations
	_, err := c.admin.CoreV1().Nodes().Update(c.t.Context(), n, metav1.UpdateOptions{})
	assert.NilError(c.t, err)
}

// reportOf is an agent's patch.
func reportOf(resourceVersion string, p Patch) []byte {
	p.ResourceVersion = resourceVersion
	body, err := p.Body()
	if err != nil {
		panic(err)
	}
	return body
}

func factOf(resourceVersion string, k marker.Key, v string) []byte {
	return reportOf(resourceVersion, Patch{Annotations: map[string]*string{string(k): &v}})
}

func patchNode(ctx context.Context, nodes metadata.Getter, name string, body []byte) (*metav1.PartialObjectMetadata, error) {
	return nodes.Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{})
}

// roundTrip lets a test look at what goes to a server.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

var errUnlike = errors.New("not yet")
