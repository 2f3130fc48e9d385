package bench

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	proxyUser = "system:serviceaccount:bottlerocket:update-operator-proxy"
	// alone is how many nodes go one after the other; together how many slots there are then.
	alone    = 4
	together = 3
	// heartbeats is how often every other node's status changes while an agent is measured.
	heartbeats = 10
	// agentRest is how long an agent is measured, twice.
	agentRest = 20 * time.Second
)

// BenchmarkFleet measures agents and rollouts in one cluster of 31 machines, all programs being the real
// ones: each agent, proxy and controller is a process of its own.
func BenchmarkFleet(b *testing.B) {
	needProc(b)
	w := newWorld(b)
	b.Run("AgentAtRest", w.agentAtRest)
	b.Run("OneAfterAnother", w.oneAfterAnother)
	b.Run("ThreeSlots", w.threeSlots)
}

// agentAtRest measures one agent for a while in which nothing happens, and for as long again while the
// status of all other nodes changes all the time. It is asked for its readiness every second.
func (w *world) agentAtRest(b *testing.B) {
	node := w.managed()[0]
	agents, err := find("bottlerocket-update-agent", "-boot-id-file="+w.Fleet.Machine(node).BootIDFile())
	assert.NilError(b, err)
	assert.Equal(b, len(agents), 1)
	pid := agents[0].pid
	pass(b, settleTime)

	audit := auditLog{path: w.Plane.AuditLog()}
	audit.mark(b)
	before := w.proxied(b)
	quiet := input(b, pid, func() { pass(b, agentRest) })
	written := 0
	loud := input(b, pid, func() { written = w.beat(b, node) })
	after := w.proxied(b)

	got := map[request]int{}
	for verb, n := range after {
		if n > before[verb] {
			got[request(verb)] = n - before[verb]
		}
	}
	// An agent also reads its node every ten minutes, but not in the first minutes of its life.
	reportRequests(b, fmt.Sprintf("%d agents", managedNodes), got, 2*agentRest, "watch")
	b.Logf("the proxies for them: %s", kinds(audit.count(b, proxyUser)))
	each := float64(loud-quiet) / float64(written)
	b.Logf("read by the agent in %s: %d bytes at rest, %d while %d heartbeats of other nodes were written", agentRest, quiet, loud, written)
	if each > 10 {
		b.Errorf("each heartbeat of another node costs the agent %.0f bytes", each)
	}
	b.ReportMetric(each, "B/heartbeat")
	reportMemory(b, pid, "rest")
	b.ReportMetric(0, "ns/op")
}

// input is what a process reads in the meantime.
func input(b *testing.B, pid int, meantime func()) int64 {
	b.Helper()
	before, err := received(pid)
	assert.NilError(b, err)
	meantime()
	after, err := received(pid)
	assert.NilError(b, err)
	return after - before
}

// beat changes the status of all nodes but one, again and again, for agentRest, and counts.
func (w *world) beat(b *testing.B, except string) int {
	b.Helper()
	end := time.Now().Add(agentRest)
	written := 0
	for range heartbeats {
		for _, m := range w.Fleet.Machines() {
			if m.Name() == except {
				continue
			}
			body := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"MemoryPressure","lastHeartbeatTime":%q}]}}`,
				time.Now().Add(time.Duration(written)*time.Second).UTC().Format(time.RFC3339))
			_, err := w.Client.CoreV1().Nodes().Patch(b.Context(), m.Name(), types.StrategicMergePatchType, body, metav1.PatchOptions{}, "status")
			assert.NilError(b, err)
			written++
		}
		pass(b, agentRest/(heartbeats*2))
	}
	pass(b, time.Until(end))
	return written
}

// proxied counts the agents' requests by verb, as the proxies do.
func (w *world) proxied(b *testing.B) map[string]int {
	b.Helper()
	proxies, err := find("bottlerocket-update-operator", "-proxy")
	assert.NilError(b, err)
	total := map[string]int{}
	for _, p := range proxies {
		// Another cluster may run on this machine.
		if !strings.HasPrefix(p.flag("kubeconfig"), w.Plane.Dir()) {
			continue
		}
		for verb, n := range counted(b, "http://"+p.flag("listen"), "bottlerocket_update_proxy_requests_total") {
			total[verb] += n
		}
	}
	assert.Assert(b, len(total) > 0, "no proxy counts requests")
	return total
}

// oneAfterAnother measures a node's way out of service and back, and how soon the next one goes.
func (w *world) oneAfterAnother(b *testing.B) {
	spans := w.update(b, w.managed()[:alone], 1)
	var cycles, gaps durations
	for i, s := range spans {
		cycles = append(cycles, s.length())
		if i > 0 {
			gaps = append(gaps, s.cordon.Sub(spans[i-1].release))
		}
	}
	w.cycle = cycles.mean()
	cycles.report(b, "cycle")
	gaps.report(b, "to-next")
	b.ReportMetric(0, "ns/op")
}

// threeSlots measures how much longer thirty nodes take, three at a time, than ten rounds of one.
func (w *world) threeSlots(b *testing.B) {
	w.limit(b, together)
	spans := w.update(b, w.managed(), together)
	var cycles durations
	last := spans[0].release
	for _, s := range spans {
		cycles = append(cycles, s.length())
		if s.release.After(last) {
			last = s.release
		}
	}
	whole := last.Sub(spans[0].cordon)
	one := w.cycle
	if one == 0 {
		one = cycles.mean()
	}
	rounds := float64(managedNodes / together)
	b.ReportMetric(whole.Seconds(), "s-whole")
	b.ReportMetric(100*whole.Seconds()/(rounds*one.Seconds()), "%-of-ten-cycles")
	cycles.report(b, "cycle")
	b.ReportMetric(0, "ns/op")
}
