package sim

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/sim/apiserver"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/authorizer"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/authorizer/rule"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/platform/updateapi"
)

// agentProcess is a machine's agent: its pod, and the process in it while the pod runs.
type agentProcess struct {
	m       *machine
	process *process
	// pod is the name of the pod, whose token the process has.
	pod string
	// identity is what its token says.
	identity authorizer.Identity
	// offset is how far the clock of the next process is off.
	offset time.Duration
	// judged is the proxy's clock when it judged the last write.
	judged time.Time
	// ready is what its own probe says, and unready since when the kubelet has said that it isn't; zero: it doesn't.
	ready   bool
	unready time.Time
}

// podScheduled makes the pod on the machine's node.
func (a *agentProcess) podScheduled() {
	m, w := a.m, a.m.w
	n := m.node()
	if n == nil || m.isPlanned || !a.wanted() {
		return
	}
	owner := true
	w.cluster.names++
	a.pod = fmt.Sprintf("agent-%d", w.cluster.names)
	must(w.cluster.client.CoreV1().Pods(namespace).Create(background, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: a.pod, Labels: map[string]string{appLabel: appName, partLabel: agentPart},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: agentPart, UID: "agents", Controller: &owner}}},
		Spec: corev1.PodSpec{NodeName: m.nodeName, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}, metav1.CreateOptions{}))
	if m.up {
		w.after(w.between(time.Second, 5*time.Second), m.inBoot(a.podStarts))
	}
}

// podRemoved ends the pod, as when its node isn't meant any more.
func (a *agentProcess) podRemoved() {
	if p := a.m.w.server.Pod(namespace, a.pod); p != nil {
		a.kill()
		a.m.w.cluster.remove(p)
	}
	a.pod = ""
}

// podStarts is the kubelet starting the pod's container.
func (a *agentProcess) podStarts() {
	w, m := a.m.w, a.m
	p := w.server.Pod(namespace, a.pod)
	if p == nil || a.process != nil && !a.process.dead || p.DeletionTimestamp != nil {
		return
	}
	n := m.node()
	if n == nil {
		return
	}
	a.identity = authorizer.Identity{NodeName: n.Name, NodeUID: string(n.UID), PodName: p.Name, PodUID: string(p.UID)}
	a.process, a.ready = w.newProcess("agent-"+m.name), false
	a.process.clock = a.offset
	a.process.spawn(0, a.main)
}

func (a *agentProcess) kill() {
	if a.process != nil {
		a.process.kill()
	}
}

// crash kills the process; the kubelet starts it again.
func (a *agentProcess) crash() {
	a.kill()
	a.m.w.cluster.agentReady(a, false)
	a.m.w.after(a.m.w.between(time.Second, 20*time.Second), a.m.inBoot(a.podStarts))
}

func (a *agentProcess) main(t *thread) {
	w, m, p := a.m.w, a.m, a.process
	node := &proxied{a: a, p: p}
	api := w.server.Client("proxy", p.around)
	node.nodes = api
	ag, err := agent.New(agent.Config{
		Node: node,
		Host: updateapi.New(updateapi.Config{
			Transport: hostWay{m: m, api: m.host.Transport()},
			BootID:    func() (string, error) { return m.host.BootID(), nil },
		}),
		Log: w.log, Version: "sim", RefreshEvery: w.scenario.Refresh, LiveEvery: w.scenario.Live,
		Metrics: w.agentMetrics, Now: p.now, Rand: w.rng.Float64,
	})
	if err != nil {
		panic(err)
	}
	w.open(p, apiserver.Selection{Resource: "nodes", FieldSelector: "metadata.name=" + m.nodeName}, &agentSink{a: a, agent: ag})
	for {
		pause, err := ag.Turn(background)
		if err != nil {
			// The process ends, and the kubelet starts it again with the new socket.
			w.note(p.name, "%v", err)
			w.strike("F11")
			w.after(0, a.crash)
			t.pause(time.Minute)
		}
		if !a.ready && ag.Ready() == nil {
			a.ready = true
			w.after(w.between(time.Second, 10*time.Second), func() {
				if !p.dead {
					w.cluster.agentReady(a, true)
				}
			})
		}
		t.sleep(max(pause, time.Millisecond), ag.Woken())
	}
}

// agentReady is the kubelet's probe.
func (k *cluster) agentReady(a *agentProcess, ready bool) {
	if p := k.w.server.Pod(namespace, a.pod); p != nil && a.m.up {
		a.unready = time.Time{}
		if !ready {
			a.unready = k.w.now
		}
		k.setPodReady(p, ready)
	}
}

// deafAfter is how long no proxy answers before a kubelet has found out that the agent hears nothing.
const deafAfter = 40 * time.Second

// deafen has agents that hear nothing for long not be Ready until a proxy answers again.
func (w *world) deafen() {
	w.after(deafAfter, func() {
		if !w.now.Before(w.proxyDown) {
			return
		}
		w.note("proxies", "are away for long: no agent is Ready")
		for _, m := range w.machines {
			if a := &m.agent; a.ready && !a.process.dead && m.up && a.unready.IsZero() {
				w.cluster.agentReady(a, false)
				w.hearAgain(a, a.process)
			}
		}
	})
}

func (w *world) hearAgain(a *agentProcess, p *process) {
	w.after(w.between(2*time.Second, 20*time.Second), func() {
		switch {
		case p.dead || a.process != p:
		case w.now.Before(w.proxyDown):
			w.hearAgain(a, p)
		default:
			w.cluster.agentReady(a, true)
		}
	})
}

// agentSink is the agent's watch through the proxy.
type agentSink struct {
	a     *agentProcess
	agent *agent.Agent
}

func (s *agentSink) replace(objects []runtime.Object) {
	for _, o := range objects {
		s.see(o)
	}
	if len(objects) == 0 {
		s.agent.Update(nil)
	}
}

func (s *agentSink) event(e apiserver.Event) {
	if e.Type == watch.Deleted {
		s.agent.Update(nil)
		return
	}
	s.see(e.Object)
}

func (s *agentSink) see(o runtime.Object) {
	// A watch of a node that isn't the token's any more is ended by the proxy.
	if n, ok := o.(*corev1.Node); ok && string(n.UID) == s.a.identity.NodeUID {
		s.agent.Update(agent.SnapshotOf(&n.ObjectMeta))
	}
}

// proxied is agent.Node: the way through a proxy, which looks live, judges by the real rule and passes on.
type proxied struct {
	a     *agentProcess
	p     *process
	nodes *apiserver.Client
}

// arrive is the way to a proxy, which reviews the token.
func (x *proxied) arrive() error {
	w, t := x.p.w, x.p.w.running
	t.pause(w.hop())
	switch {
	case w.now.Before(w.proxyDown):
		w.strike(ProxyDown)
		t.pause(w.between(time.Millisecond, time.Second))
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	case x.p.net.meets(LostRequest):
		return apiserver.ConnectionLost(apiserver.Request{Verb: "get", Resource: "nodes"})
	}
	pod := w.server.Pod(namespace, x.a.identity.PodName)
	if pod == nil || string(pod.UID) != x.a.identity.PodUID {
		return apierrors.NewUnauthorized("the token is not valid")
	}
	return nil
}

func (x *proxied) live(ctx context.Context) (*corev1.Node, error) {
	n, err := x.nodes.CoreV1().Nodes().Get(ctx, x.a.identity.NodeName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) || err == nil && string(n.UID) != x.a.identity.NodeUID:
		return nil, apierrors.NewForbidden(corev1.Resource("nodes"), x.a.identity.NodeName, nil)
	case err != nil:
		return nil, apierrors.NewServiceUnavailable(err.Error())
	}
	return n, nil
}

// Get is for agent.Node.
func (x *proxied) Get(ctx context.Context) (*agent.Snapshot, error) {
	if err := x.arrive(); err != nil {
		return nil, err
	}
	n, err := x.live(ctx)
	if err != nil {
		return nil, err
	}
	return agent.SnapshotOf(&n.ObjectMeta), nil
}

// Patch is for agent.Node.
func (x *proxied) Patch(ctx context.Context, patch agent.Patch) (*agent.Snapshot, error) {
	w := x.p.w
	body, err := patch.Body()
	if err != nil {
		return nil, err
	}
	if err := x.arrive(); err != nil {
		return nil, err
	}
	p, refusal := authorizer.ParsePatch(body)
	if refusal != nil {
		return nil, &apierrors.StatusError{ErrStatus: authorizer.Status(refusal)}
	}
	n, err := x.live(ctx)
	if err != nil {
		return nil, err
	}
	live := rule.Live{Name: n.Name, UID: string(n.UID), ResourceVersion: n.ResourceVersion, Annotations: n.Annotations, Unschedulable: n.Spec.Unschedulable}
	x.a.judged = w.now.Add(w.proxyClock)
	if refusal := rule.Judge(rule.Write{NodeName: x.a.identity.NodeName, NodeUID: x.a.identity.NodeUID, Live: live, Patch: p, Now: x.a.judged}); refusal != nil {
		w.note(x.p.name, "the proxy refuses: %s: %s", refusal.Reason, refusal.Message)
		return nil, &apierrors.StatusError{ErrStatus: authorizer.Status(refusal)}
	}
	if body, err = p.Body(); err != nil {
		return nil, err
	}
	n, err = x.nodes.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, body, metav1.PatchOptions{})
	if err != nil {
		if _, ok := err.(apierrors.APIStatus); ok {
			return nil, err
		}
		return nil, apierrors.NewServiceUnavailable(err.Error())
	}
	if x.p.net.meets(LostAnswer) {
		w.note(x.p.name, "the proxy's answer is lost")
		return nil, apiserver.ConnectionLost(apiserver.Request{Verb: "patch", Resource: "nodes", Name: n.Name})
	}
	return agent.SnapshotOf(&n.ObjectMeta), nil
}

// Watch is for agent.Node; the feed shows what it would.
func (x *proxied) Watch(context.Context, func(*agent.Snapshot)) {}

// WatchErr is for agent.Node.
func (x *proxied) WatchErr() error {
	if x.p.w.now.Before(x.p.w.proxyDown) {
		return apierrors.NewServiceUnavailable("no proxy answers")
	}
	return nil
}

// hostWay is the way to the host's API.
type hostWay struct {
	m   *machine
	api http.RoundTripper
}

// RoundTrip is for http.RoundTripper.
func (h hostWay) RoundTrip(r *http.Request) (*http.Response, error) {
	w := h.m.w
	t := w.running
	t.pause(w.between(200*time.Microsecond, 3*time.Millisecond))
	if command, is := strings.CutPrefix(r.URL.Path, "/actions/"); is {
		h.m.w.checks.command(h.m, command)
	}
	lock := h.m.host.Snapshot().Settings.VersionLock
	answer, err := h.api.RoundTrip(r)
	if set := h.m.host.Snapshot().Settings.VersionLock; set != lock {
		w.checks.changedLock(h.m, lock, set)
	}
	w.transcript.act("%s asks its host: %s %s", h.m.name, r.Method, r.URL.RequestURI())
	h.m.countStrikes()
	if r.Method == http.MethodGet {
		h.m.sawReady = h.m.host.Snapshot().State == hostsim.Ready
	}
	if at, due := h.m.host.NextEvent(); due && r.Method == http.MethodPost {
		// A command goes on when no request asks for its status.
		w.after(max(0, at.Sub(w.now)), func() { h.m.host.Settle() })
	}
	if w.chance(4) {
		t.pause(w.between(0, 20*time.Millisecond))
	}
	return answer, err
}
