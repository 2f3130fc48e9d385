package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	"gotest.tools/v3/golden"
	"gotest.tools/v3/poll"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// upToDate is a host to which nothing is offered.
func upToDate(name string) host {
	h := idleHost(name)
	h.marks.Report.Available, h.noAgent = "", false
	return h
}

// What is refused before anything is written, and what the command would do without its flag: it writes nothing.
func TestE2ERefuses(t *testing.T) {
	for _, tc := range []struct {
		name, args string
		change     func(*host)
		alone      bool
		want       string
	}{
		{name: "no node", args: "--yes-reboot-it", want: "name the node with --node"},
		{name: "another", args: "--node b --yes-reboot-it", want: `node "b" not found`},
		{name: "no flag", args: "--node a", want: `nothing was done: with --yes-reboot-it the operator is asked to cordon node "a"`},
		{name: "no label", args: "--node a --yes-reboot-it", change: func(h *host) { h.notLabelled = true }, want: "is not in the operator's care: label it"},
		{name: "paused", args: "--node a --yes-reboot-it", change: func(h *host) { h.annotations = map[marker.Key]string{marker.KeyPaused: "Ann"} }, want: "is paused: Ann"},
		{name: "not Ready", args: "--node a --yes-reboot-it", change: func(h *host) { h.notReady = true }, want: "is not Ready"},
		{name: "no agent", args: "--node a --yes-reboot-it", change: func(h *host) { h.noAgent = true }, want: "no agent pod is Ready on it"},
		{name: "an agent of before", args: "--node a --yes-reboot-it", change: func(h *host) { h.marks.Report.Protocol = 2 }, want: "cycles need 3"},
		{name: "another set is activated", args: "--node a --yes-reboot-it", change: func(h *host) {
			h.marks.Report.State, h.marks.Report.Message = marker.StateError, "the host has activated 1.60.0"
		}, want: "its agent reports: the host has activated 1.60.0"},
		{name: "asked for already", args: "--node a --yes-reboot-it", change: func(h *host) { h.annotations = map[marker.Key]string{marker.KeyCycle: "x"} }, want: "is asked for already, by x"},
		{name: "in the middle", args: "--node a --yes-reboot-it", change: func(h *host) {
			h.marks.Disruption, h.cordoned = &marker.Disruption{Since: ago(time.Minute)}, true
		}, want: "is in the middle of an attempt (Verifying)"},
		{name: "unreadable", args: "--node a --yes-reboot-it", change: func(h *host) { h.annotations = map[marker.Key]string{marker.KeyDisruption: "{"} }, want: "is left alone by the operator: annotation"},
		{name: "no controller", args: "--node a --yes-reboot-it", alone: true, want: "no controller has ever led"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCluster(t)
			h := upToDate("a")
			if tc.change != nil {
				tc.change(&h)
			}
			c.node(h)
			if !tc.alone {
				c.leads("a")
				c.plans()
			}
			got := c.run(append([]string{"e2e"}, strings.Fields(tc.args)...)...)
			assert.Equal(t, got.status, 1)
			assert.Assert(t, strings.Contains(got.errs, tc.want), got.errs)
			assert.Assert(t, len(writes(got)) == 0, writes(got))
		})
	}
}

// plans has the leader plan by the default policy.
func (c *cluster) plans() {
	c.t.Helper()
	c.configMap(kube.PolicyConfigMap, kube.PolicyKey, "version: 1\n")
	c.leader = atNoon{c: c, node: "a"}
}

// testRun is a run of the command beside a test that plays the operator.
type testRun struct {
	*cluster
	mu   sync.Mutex
	out  bytes.Buffer
	errs bytes.Buffer
	stop context.CancelFunc
	done chan int
}

func (r *testRun) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.Write(p)
}

func (r *testRun) printed() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.String()
}

func (c *cluster) e2e(t *testing.T, args ...string) *testRun {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r := &testRun{cluster: c, stop: stop, done: make(chan int, 1)}
	p := newPlugin(genericiooptions.IOStreams{In: strings.NewReader(""), Out: r, ErrOut: &r.errs})
	p.now, p.again = func() time.Time { return noon }, 20*time.Millisecond
	p.flags.WrapConfigFn = func(cfg *rest.Config) *rest.Config {
		cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return c.proxied(next) })
		return cfg
	}
	go func() {
		r.done <- p.run(ctx, append([]string{"--kubeconfig", c.kubeconfig, "-n", c.namespace, "e2e", "--node", "a", "--yes-reboot-it"}, args...))
	}()
	t.Cleanup(stop)
	r.says(t, "node/a asked for by e2e-")
	return r
}

// says waits until a line was printed.
func (r *testRun) says(t *testing.T, want string) {
	t.Helper()
	poll.WaitOn(t, func(poll.LogT) poll.Result {
		if strings.Contains(r.printed(), want) {
			return poll.Success()
		}
		return poll.Continue("%q is not in:\n%s", want, r.printed())
	}, poll.WithTimeout(time.Minute), poll.WithDelay(10*time.Millisecond))
}

// sets writes what the operator and the kubelet would.
func (r *testRun) sets(t *testing.T, m marker.Marks, cordoned bool, boot string) {
	t.Helper()
	n, err := r.client.CoreV1().Nodes().Get(t.Context(), "a", metav1.GetOptions{})
	assert.NilError(t, err)
	status := fmt.Sprintf(`{"status":{"nodeInfo":{"bootID":%q}}}`, boot)
	_, err = r.client.CoreV1().Nodes().Patch(t.Context(), "a", types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status")
	assert.NilError(t, err)
	changes := map[string]any{}
	for k := range n.Annotations {
		if marker.Owns(marker.WriterController, k) || marker.Owns(marker.WriterAgent, k) || k == string(marker.KeyCycle) && m.Cycle == "" {
			changes[k] = nil
		}
	}
	for _, part := range []map[marker.Key]string{marker.Encode(m), marker.EncodeReport(m.Report)} {
		for k, v := range part {
			changes[string(k)] = v
		}
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": changes}, "spec": map[string]any{"unschedulable": cordoned}})
	assert.NilError(t, err)
	_, err = r.client.CoreV1().Nodes().Patch(t.Context(), "a", types.MergePatchType, body, metav1.PatchOptions{})
	assert.NilError(t, err)
}

// asked waits for the request, and returns the marks of the node with it.
func (r *testRun) asked(t *testing.T) marker.Marks {
	t.Helper()
	id, there := r.annotation("a", marker.KeyCycle)
	assert.Assert(t, there && marker.ValidCycle(id), id)
	m := upToDate("a").marks
	m.Cycle = id
	return m
}

const bootBefore, bootAfter = "3b2a1c00-boot", "77aa0000-boot"

// A whole run with nothing offered: each step with its time, pods, hooks, boots and the time out of service.
func TestE2ECycle(t *testing.T) {
	c := newCluster(t)
	c.node(upToDate("a"))
	c.leads("a")
	c.plans()
	c.pod("web-1", "a", corev1.Container{Name: "web", Image: "web"}, "none")
	r := c.e2e(t)
	m := r.asked(t)

	m.Intent.Action, m.Intent.Target, m.Report.ActiveID = marker.ActionPrepareUpdate, v1, ""
	m.Report.State = marker.StateNone
	r.sets(t, m, false, bootBefore)
	r.says(t, "the agent is asked whether it runs "+v1)

	m.Report.ActiveID, m.Report.State = m.Intent.ID, marker.StateReady
	m.Disruption, m.Intent.RebootFrom = &marker.Disruption{Since: noon, Cycle: m.Cycle}, bootBefore
	m.Waiting = &marker.Waiting{Reason: string(plan.ReasonDraining), Message: "the node's pods are being evicted"}
	r.sets(t, m, true, bootBefore)
	r.says(t, "taken out of service for a cycle on "+v1)
	// An API server marks a pod before it deletes it even without grace, so the journal may show either unless it is held.
	for _, step := range []struct {
		grace int64
		says  string
	}{{30, "web-1 is evicted, and shuts down"}, {0, "web-1 has left the node"}} {
		assert.NilError(t, c.client.CoreV1().Pods(c.namespace).Delete(t.Context(), "web-1", metav1.DeleteOptions{GracePeriodSeconds: &step.grace}))
		r.says(t, step.says)
	}

	m.Waiting = &marker.Waiting{Reason: string(plan.ReasonHookAwaited), Message: "hook storage is awaited since 12:00: the annotation example.com/storage is to have the value of hook-id"}
	r.sets(t, m, true, bootBefore)
	r.says(t, "HookAwaited: hook storage is awaited")

	m.Intent.ID, m.Intent.Action, m.Waiting = "8-y", marker.ActionRebootUpdate, &marker.Waiting{Reason: string(plan.ReasonRebooting), Message: "x"}
	r.sets(t, m, true, bootBefore)
	r.says(t, "nothing is left to evict: the reboot is asked for")
	m.Report.ActiveID, m.Report.State = "8-y", marker.StateBusy
	r.sets(t, m, true, bootBefore)
	r.says(t, "from here on the reboot can't be taken back")

	m.Report.State, m.Report.BootID = marker.StateReady, bootAfter
	r.sets(t, m, true, bootAfter)
	r.says(t, "the agent answers from boot "+bootAfter)
	back := noon.Add(83 * time.Second)
	m.Intent.Action, m.Disruption.Soak, m.Disruption.Returned = marker.ActionStabilize, &back, &back
	r.sets(t, m, false, bootAfter)
	r.says(t, "back in service; the soak runs")

	m.History = []marker.Attempt{{Version: v1, Outcome: marker.OutcomeCycled, Reason: string(plan.ReasonCycled), Started: noon, Ended: noon.Add(143 * time.Second), Cycle: m.Cycle}}
	m.Disruption, m.Waiting, m.Cycle, m.Intent.Target = nil, nil, "", ""
	r.sets(t, m, false, bootAfter)
	assert.Equal(t, <-r.done, 0, r.errs.String())
	text := regexp.MustCompile(`e2e-20260105t120000-[a-z0-9]{6}`).ReplaceAllString(r.printed(), "e2e-ID")
	golden.Assert(t, strings.ReplaceAll(text, c.namespace+"/", "NAMESPACE/"), "e2e-cycle.golden")
}

// A failure is a verdict with its reason, and a status; so is what contradicts the operator's word.
func TestE2EFails(t *testing.T) {
	for _, tc := range []struct {
		name    string
		attempt marker.Attempt
		boot    string
		cordon  bool
		want    string
	}{
		{"the drain did not end", marker.Attempt{Version: v1, Outcome: marker.OutcomeFailed, Reason: "DrainDeadline", Cycle: "ID"}, bootBefore, false,
			"error: FAILED: the attempt at 1.50.0 on a ended as failed: DrainDeadline"},
		{"the boot is the old one", marker.Attempt{Version: v1, Outcome: marker.OutcomeCycled, Reason: "Cycled", Cycle: "ID"}, bootBefore, false,
			"error: FAILED: the operator calls it done, and the kubelet is in the boot from before"},
		{"it ends cordoned", marker.Attempt{Version: v1, Outcome: marker.OutcomeCycled, Reason: "Cycled", Cycle: "ID"}, bootAfter, true,
			"error: FAILED: the node ends with cordoned=true, and it was false before"},
		{"the request was refused", marker.Attempt{Version: v1, Outcome: marker.OutcomeFailed, Reason: "X", Cycle: "another"}, bootBefore, false,
			"error: FAILED: the request was removed, and no attempt for it has ended"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCluster(t)
			c.node(upToDate("a"))
			c.leads("a")
			c.plans()
			r := c.e2e(t)
			m := r.asked(t)
			tc.attempt.Cycle = strings.Replace(tc.attempt.Cycle, "ID", m.Cycle, 1)
			tc.attempt.Started, tc.attempt.Ended = noon, noon
			m.History, m.Cycle, m.Report.BootID = []marker.Attempt{tc.attempt}, "", tc.boot
			r.sets(t, m, tc.cordon, tc.boot)
			assert.Equal(t, <-r.done, 1)
			assert.Assert(t, strings.Contains(r.errs.String(), tc.want), r.errs.String())
		})
	}
}

// An interrupted run takes the request back if nothing has begun; else it says where the node is, and what goes on.
func TestE2EInterrupted(t *testing.T) {
	c := newCluster(t)
	c.node(upToDate("a"))
	c.leads("a")
	c.plans()
	r := c.e2e(t)
	r.stop()
	assert.Equal(t, <-r.done, 1)
	assert.Equal(t, r.errs.String(), "error: interrupted: the request is taken back, and node \"a\" was not taken out of service\n")
	_, there := c.annotation("a", marker.KeyCycle)
	assert.Assert(t, !there)

	r = c.e2e(t)
	m := r.asked(t)
	m.Intent.Action, m.Intent.Target, m.Intent.RebootFrom = marker.ActionRebootUpdate, v1, bootBefore
	m.Disruption = &marker.Disruption{Since: noon, Cycle: m.Cycle}
	m.Report.State = marker.StateNone
	r.sets(t, m, true, bootBefore)
	r.says(t, "the reboot is asked for")
	r.stop()
	assert.Equal(t, <-r.done, 1)
	assert.Equal(t, r.errs.String(), "error: interrupted while node \"a\" is Rebooting. The operator goes on by itself until the node is back in service, "+
		"unless you take the request back before its reboot begins: kubectl annotate node a bottlerocket.aws/cycle-; kubectl bottlerocket status a --watch follows it\n")
	_, there = c.annotation("a", marker.KeyCycle)
	assert.Assert(t, there, "what has begun is the operator's to end")
}
