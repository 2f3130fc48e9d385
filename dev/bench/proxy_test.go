package bench

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

const (
	// proxiedAgents are served by proxies, as many by each.
	proxiedAgents = 500
	proxies       = 2
	// proxyMost is what a proxy's memory may have come to.
	proxyMost = 150 * mebibyte
	// proxyRest is how long the proxies are measured while the operator has nothing to do.
	proxyRest = time.Minute
	// statusEvery is how often a kubelet writes its node's status if nothing changes.
	statusEvery = 5 * time.Minute
	// echoes are the changes of a node that are timed until its agent knows of them.
	echoes = 100
)

// What two proxies ask for while the agents rest: their watches' tokens are reviewed again, and their
// certificates looked after. A live read of an agent is two of the proxy's.
var proxyRests = []request{"create tokenreviews", "get nodes", "get secrets", "get configmaps"}

// BenchmarkProxy measures two real proxies with 250 agents on each, which have the real loop and the real
// client, tokens of their own pods, and hosts that carry out every command at once. All agents come at the
// same moment, rest, and then go through an update at the same time, with no limit but what they and the
// proxies can do.
func BenchmarkProxy(b *testing.B) {
	needProc(b)
	w := newProxied(b)
	b.Run("AtRest", w.rest)
	b.Run("Wave", w.wave)
}

// rest measures a minute in which kubelets write their status, and agents look at their nodes live, as often
// as they do, and afterwards how soon an agent hears of a change. Watches, which clients renew after five to
// ten minutes, stand all the time.
func (w *proxied) rest(b *testing.B) {
	b.Logf("all %d agents had reported and watched after %s; %d requests failed until then", proxiedAgents, w.reported, w.failed())
	b.ReportMetric(w.reported.Seconds(), "s-to-reports")
	pass(b, settleTime)
	var worked [proxies]time.Duration
	for i, p := range w.proxies {
		worked[i] = p.cpu(b)
	}
	w.audit.mark(b)
	w.still(b)
	got := w.audit.count(b, proxyUser)
	reportRequests(b, fmt.Sprintf("%d proxies for %d agents", proxies, proxiedAgents), got, proxyRest, proxyRests...)
	b.ReportMetric(float64(got["create tokenreviews"])/proxyRest.Minutes(), "reviews/min")
	for i, p := range w.proxies {
		worked[i] = p.cpu(b) - worked[i]
	}
	b.Logf("they worked %s", worked)
	b.ReportMetric(max(worked[0], worked[1]).Seconds()/proxyRest.Minutes(), "s-CPU/min")
	w.reportMemory(b, "rest")
	heard := w.echo(b)
	b.ReportMetric(heard.median().Seconds(), "s-to-agent-median")
	b.ReportMetric(slices.Max(heard).Seconds(), "s-to-agent-max")
	assert.Equal(b, w.refused(b), 0, "requests were refused")
	b.ReportMetric(0, "ns/op")
}

// still lets time go by in which the nodes' status is written and agents read live, each at its turn.
func (w *proxied) still(b *testing.B) {
	b.Helper()
	const every = statusEvery / proxiedAgents
	const reads = agent.DefaultLiveEvery / statusEvery
	end := time.Now().Add(proxyRest)
	for i := 0; time.Until(end) > every; i++ {
		pass(b, time.Until(end.Add(time.Duration(i+1)*every-proxyRest)))
		node := i % proxiedAgents
		body := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Ready","lastHeartbeatTime":%q}]}}`, time.Now().UTC().Format(time.RFC3339))
		_, err := w.client.CoreV1().Nodes().Patch(b.Context(), nodeName(node), types.StrategicMergePatchType, body, metav1.PatchOptions{}, "status")
		assert.NilError(b, err)
		if i%int(reads) == 0 {
			_, err := w.agents[node].Get(b.Context())
			assert.NilError(b, err)
		}
	}
	pass(b, time.Until(end))
}

// echo changes nodes one after the other, and returns how long it took until their agents' watches showed it.
func (w *proxied) echo(b *testing.B) durations {
	b.Helper()
	var out durations
	for i := range echoes {
		node, text := i*7%proxiedAgents, fmt.Sprintf("echo %d", i)
		began := time.Now()
		body := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, marker.KeyWaitingFor, text)
		_, err := w.client.CoreV1().Nodes().Patch(b.Context(), nodeName(node), types.MergePatchType, body, metav1.PatchOptions{})
		assert.NilError(b, err)
		assert.NilError(b, w.agents[node].await(b.Context(), func(a *watchedNode) bool {
			return a.shown.Annotations[string(marker.KeyWaitingFor)] == text
		}))
		out = append(out, time.Since(began))
	}
	return out
}

// wave takes all nodes through an update at once: the agents write six reports: busy and ready to stage, busy and activated to reboot, ready after it, and at rest.
func (w *proxied) wave(b *testing.B) {
	w.minor++
	before, failed, refused := w.count(func(a *watchedNode) int { return a.written }), w.failed(), w.refused(b)
	began := time.Now()
	eachAtOnce(b, proxiedAgents, proxiedAgents, func(ctx context.Context, i int) error { return w.update(ctx, i) })
	took := time.Since(began)
	reports := w.count(func(a *watchedNode) int { return a.written }) - before
	if reports != 6*proxiedAgents {
		b.Errorf("%d reports were written, not 6 by each of %d agents", reports, proxiedAgents)
	}
	if n := w.failed() - failed; n != 0 {
		b.Errorf("%d requests of agents failed", n)
	}
	if n := w.refused(b) - refused; n != 0 {
		b.Errorf("%d requests of agents were refused", n)
	}
	b.ReportMetric(took.Seconds(), "s")
	b.ReportMetric(float64(reports)/took.Seconds(), "reports/s")
	for _, m := range w.reportMemory(b, "after") {
		if m.most > proxyMost {
			b.Errorf("a proxy's memory came to %d MiB, it may come to %d", m.most/mebibyte, proxyMost/mebibyte)
		}
	}
	b.ReportMetric(0, "ns/op")
}
