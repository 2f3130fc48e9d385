package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"gotest.tools/v3/assert"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/manifest"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/process"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/simcluster"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/authorizer"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// proxied is an API server with the manifest and no kubelet, the proxies' processes, and agents that run in
// this one.
type proxied struct {
	plane   *controlplane.ControlPlane
	client  kubernetes.Interface
	audit   auditLog
	proxies [proxies]*proxyProcess
	agents  [proxiedAgents]*watchedNode
	hosts   [proxiedAgents]*quickHost
	// pen bounds how many changes of nodes are under way.
	pen chan struct{}
	// reported is what it took from the agents' start until all had reported and watched.
	reported time.Duration
	minor    int
}

func newProxied(b *testing.B) *proxied {
	b.Helper()
	w := &proxied{plane: controlplane.ForTest(b, controlplane.Config{AuditLog: true}), minor: 50, pen: make(chan struct{}, 32)}
	w.audit = auditLog{path: w.plane.AuditLog()}
	path, err := manifest.Path()
	assert.NilError(b, err)
	out, err := exec.CommandContext(b.Context(), w.plane.Binaries().Kubectl, "--kubeconfig", w.plane.Kubeconfig(), "apply", "-f", path).CombinedOutput()
	assert.NilError(b, err, "%s", out)
	w.client, err = kubernetes.NewForConfig(w.plane.AdminConfig())
	assert.NilError(b, err)
	createFleet(b, w.client, proxiedAgents, func(n *corev1.Node) {
		n.Labels[string(marker.KeyInterfaceVersion)] = "2.0.0"
		for k, v := range marker.Encode(marker.Marks{Intent: newIntent(n.Name, marker.ActionStabilize)}) {
			n.Annotations[string(k)] = v
		}
	})
	tokens := w.tokens(b)
	program := operator(b, w.plane)
	for i := range w.proxies {
		w.proxies[i] = w.startProxy(b, program, i)
	}
	w.startAgents(b, tokens)
	return w
}

// proxyProcess is the real program in its mode -proxy.
type proxyProcess struct {
	*process.Process
	// server is for agents, url for metrics and probes.
	server, url string
}

// startProxy starts a proxy with a token of its service account.
func (w *proxied) startProxy(b *testing.B, program string, i int) *proxyProcess {
	b.Helper()
	name := fmt.Sprintf("proxy-%d", i+1)
	admin := w.plane.AdminConfig()
	token, err := w.token(b.Context(), "update-operator-proxy", authenticationv1.TokenRequestSpec{})
	assert.NilError(b, err)
	kubeconfig := filepath.Join(w.plane.Dir(), name+".kubeconfig")
	assert.NilError(b, controlplane.WriteKubeconfig(kubeconfig, &rest.Config{
		Host: admin.Host, TLSClientConfig: rest.TLSClientConfig{CAData: admin.CAData},
		BearerToken: token,
	}))
	serve, listen := freeAddress(b), freeAddress(b)
	p := &proxyProcess{server: "https://" + serve, url: "http://" + listen}
	var log string
	p.Process, log = start(b, w.plane, name, program, "-proxy", "-kubeconfig="+kubeconfig, "-proxy-listen="+serve, "-listen="+listen)
	awaitReady(b, name, p.Process, p.url, log)
	return p
}

func (p *proxyProcess) cpu(b *testing.B) time.Duration {
	b.Helper()
	d, err := cpuOf(p.Pid())
	assert.NilError(b, err)
	return d
}

func (w *proxied) token(ctx context.Context, account string, spec authenticationv1.TokenRequestSpec) (string, error) {
	tr, err := w.client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, &authenticationv1.TokenRequest{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return tr.Status.Token, nil
}

// tokens are files with each agent's token, bound to its pod.
func (w *proxied) tokens(b *testing.B) []string {
	b.Helper()
	dir := b.TempDir()
	pods := agentPods(b, w.client, proxiedAgents)
	files := make([]string, len(pods))
	eachOf(b, len(pods), func(ctx context.Context, i int) error {
		token, err := w.token(ctx, pods[i].Spec.ServiceAccountName, authenticationv1.TokenRequestSpec{
			Audiences:      []string{authorizer.DefaultOptions().Audience},
			BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pods[i].Name, UID: pods[i].UID},
		})
		if err != nil {
			return err
		}
		files[i] = filepath.Join(dir, fmt.Sprintf("token-%d", i))
		return os.WriteFile(files[i], []byte(token), 0o600)
	})
	return files
}

// startAgents starts all agents at once and waits until each has reported and has its watch.
func (w *proxied) startAgents(b *testing.B, tokens []string) {
	b.Helper()
	o := authorizer.DefaultOptions()
	ca, err := w.client.CoreV1().ConfigMaps(namespace).Get(b.Context(), o.CAName, metav1.GetOptions{})
	assert.NilError(b, err)
	caFile := filepath.Join(b.TempDir(), "ca.crt")
	assert.NilError(b, os.WriteFile(caFile, []byte(ca.Data["ca.crt"]), 0o600))
	log := logrus.New()
	log.SetOutput(io.Discard)
	var loops []*agent.Agent
	for i, token := range tokens {
		proxy, err := agent.NewProxy(agent.ProxyConfig{NodeName: nodeName(i), Server: w.proxies[i%proxies].server,
			ServerName: o.ServerName, TokenFile: token, CAFile: caFile})
		assert.NilError(b, err)
		w.agents[i], w.hosts[i] = watched(proxy), newQuickHost(i)
		a, err := agent.New(agent.Config{Node: w.agents[i], Host: w.hosts[i], Log: log, Version: "v2.0.0"})
		assert.NilError(b, err)
		loops = append(loops, a)
	}
	ctx, cancel := context.WithCancel(b.Context())
	var wg sync.WaitGroup
	b.Cleanup(func() { cancel(); wg.Wait() })
	began := time.Now()
	for _, a := range loops {
		wg.Go(func() { _ = a.Run(ctx) })
	}
	assert.NilError(b, simcluster.Await(b.Context(), "all agents have reported and watch", patience, func() (bool, error) {
		watches := 0
		for _, p := range w.proxies {
			watches += counted(b, p.url, "bottlerocket_update_proxy_watches")[""]
		}
		reported := w.count(func(a *watchedNode) int { return min(a.written, 1) })
		return watches >= proxiedAgents && reported == proxiedAgents, nil
	}))
	w.reported = time.Since(began)
}

// count sums something up over all agents.
func (w *proxied) count(of func(*watchedNode) int) int {
	n := 0
	for _, a := range w.agents {
		a.mu.Lock()
		n += of(a)
		a.mu.Unlock()
	}
	return n
}

func (w *proxied) failed() int { return w.count(func(a *watchedNode) int { return a.failed }) }

// refused counts what the proxies have refused so far.
func (w *proxied) refused(b *testing.B) int {
	b.Helper()
	all := 0
	for _, p := range w.proxies {
		for reason, n := range counted(b, p.url, "bottlerocket_update_proxy_refused_total") {
			if n > 0 {
				b.Logf("refused so far: %d times %s", n, reason)
			}
			all += n
		}
	}
	return all
}

// reportMemory reports the larger of what the proxies occupy.
func (w *proxied) reportMemory(b *testing.B, when string) []memory {
	b.Helper()
	var all []memory
	var top memory
	for i, p := range w.proxies {
		m, err := memoryOf(p.Pid())
		assert.NilError(b, err)
		all = append(all, m)
		top = memory{anon: max(top.anon, m.anon), resident: max(top.resident, m.resident), most: max(top.most, m.most)}
		b.Logf("proxy %d: %.1f MiB resident, %.1f of them anonymous, %.1f at most so far; %.1f of heap and %.1f of stacks for %d goroutines", i+1,
			float64(m.resident)/mebibyte, float64(m.anon)/mebibyte, float64(m.most)/mebibyte,
			float64(counted(b, p.url, "go_memstats_heap_inuse_bytes")[""])/mebibyte,
			float64(counted(b, p.url, "go_memstats_stack_inuse_bytes")[""])/mebibyte, counted(b, p.url, "go_goroutines")[""])
	}
	b.ReportMetric(float64(top.anon)/mebibyte, "MiB-anon-"+when)
	b.ReportMetric(float64(top.resident)/mebibyte, "MiB-RSS-"+when)
	b.ReportMetric(float64(top.most)/mebibyte, "MiB-RSS-peak")
	return all
}
