package sim

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/sim/apiserver"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/controller"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/drain"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// The times of the election, as the manifest has them.
const (
	leaseDuration = 45 * time.Second
	renewDeadline = 30 * time.Second
	retryPeriod   = 10 * time.Second
	// passPause is the loop's pause between two passes.
	passPause = 20 * time.Millisecond
	// passTime bounds an eviction pass: lookTime, beginTime and answerTime of pkg/drain. Contexts know the real clock alone.
	passTime = 27 * time.Second
)

// controllerProcess is a pod of the controller: the real kube.Cluster, drain.Drainer and controller.Term,
// an election by the rules of client-go's, and the loop around them.
type controllerProcess struct {
	w    *world
	name string
	// home is the machine that it runs on.
	home    *machine
	process *process
	// settings are what it was started with, and hold where the policy file says nothing.
	settings policy.Settings
	// policy is what it makes of the policy file, and told what it was shown of it; decided is on what the pass
	// under way decides.
	policy  *kube.Policy
	told    told
	decided decision
	// asked: the pass under way has asked for the policy.
	asked bool
	// hadPolicy: it must know that there has been a policy.
	hadPolicy bool
	// nodes and agents are its watches.
	nodes, agents *feed
	leading       bool
	// renewed is when its lease was renewed last.
	renewed time.Time
	// lives counts its processes.
	lives int
	// looked is the revision at which it last listed a node's pods, and alone that at which it last saw that there was
	// no other node.
	looked, alone map[string]int64
	// foreseen are its last looks at a node before the cordon, and checked its last looks at what a node carries.
	foreseen map[string]glances
	checked  map[lookedFor]glances
	term     *controller.Term
	// jumped: its clock did, jumpedAt the last time, so nothing that it measures can be measured again.
	jumped   bool
	jumpedAt time.Time
}

func (w *world) newController(i int, home *machine) *controllerProcess {
	c := &controllerProcess{w: w, name: fmt.Sprintf("controller-%c", 'a'+i), home: home}
	w.controllers = append(w.controllers, c)
	return c
}

// start starts a new process, with a memory of nothing.
func (c *controllerProcess) start() {
	if c.process != nil && !c.process.dead || c.home != nil && !c.home.up {
		return
	}
	offset := time.Duration(0)
	if c.process != nil {
		offset = c.process.clock
	}
	c.lives++
	c.settings = c.w.settings
	c.process = c.w.newProcess(c.name)
	c.process.clock = offset
	c.leading, c.term, c.looked = false, nil, map[string]int64{}
	c.alone, c.foreseen, c.checked = map[string]int64{}, map[string]glances{}, map[lookedFor]glances{}
	c.told, c.decided = told{w: c.w, defaults: c.settings, last: c.settings, none: true}, decision{}
	c.process.spawn(c.w.between(0, time.Second), c.main)
}

// crash kills the process; it is started again after a while.
func (c *controllerProcess) crash(back time.Duration) {
	c.process.kill()
	c.leading, c.term = false, nil
	c.w.after(back, c.start)
}

func (c *controllerProcess) main(t *thread) {
	w, p := c.w, c.process
	client := w.server.Client(c.name, p.around)
	nodes, agents := newInformer(cache.Indexers{}), newInformer(kube.AgentIndexers())
	changed := func() {
		if c.term != nil {
			c.term.Changed()
		}
	}
	cluster := must(kube.NewCluster(kube.ClusterConfig{
		Client: client, Namespace: namespace, Nodes: nodes, Agents: agents, Now: p.now, Log: w.log, Changed: changed,
	}))
	file, pauses, acknowledged, targets := newInformer(cache.Indexers{}), newInformer(cache.Indexers{}), newInformer(cache.Indexers{}), newInformer(cache.Indexers{})
	c.policy = must(kube.NewPolicy(kube.PolicyConfig{Policy: file, Pauses: pauses, Acknowledged: acknowledged, PlanTargets: targets, Defaults: c.settings, Changed: changed}))
	t.pause(w.hop())
	c.nodes = w.open(p, apiserver.Selection{Resource: "nodes"}, nodes)
	c.agents = w.open(p, apiserver.Selection{Resource: "pods", Namespace: namespace, LabelSelector: kube.AgentSelector}, agents)
	if w.scenario.PlanNodes > 0 {
		w.open(p, named(kube.PlanTargetsConfigMap), targets)
	}
	if w.scenario.governed() {
		w.open(p, named(kube.PolicyConfigMap), &telling{sink: file, tell: c.told.file})
		w.open(p, named(kube.AcknowledgedConfigMap), &telling{sink: acknowledged, tell: c.told.acknowledge})
		if w.scenario.pausesBeside() {
			w.open(p, named(kube.PauseConfigMap), &telling{sink: pauses, tell: c.told.pause})
		}
	} else {
		c.told.file(nil)
	}
	c.policy.WaitForSync(background)
	lease := &election{c: c, t: t, client: client, identity: fmt.Sprintf("%s_%d", c.name, c.lives)}
	for {
		for !lease.acquire() {
			t.pause(retryPeriod + w.between(0, 2*time.Second))
		}
		c.serve(t, lease, client, cluster)
	}
}

// serve is one term.
func (c *controllerProcess) serve(t *thread, lease *election, client *apiserver.Client, cluster *kube.Cluster) {
	w, p := c.w, c.process
	ctx, cancel := context.WithCancel(context.Background())
	p.ctx = ctx
	c.leading, c.renewed, c.hadPolicy = true, w.now, w.hadPolicy
	w.note(c.name, "leads")
	ended := false
	p.spawn(retryPeriod, func(t *thread) {
		lease.t = t
		for !ended {
			if lease.acquire() {
				c.renewed = w.now
			} else if w.now.Sub(c.renewed) >= renewDeadline {
				break
			}
			t.pause(retryPeriod)
		}
		c.leading = false
		cancel()
	})
	drains := 0
	leading := func() bool { return ctx.Err() == nil && c.leading && w.now.Sub(c.renewed) < renewDeadline }
	term := controller.NewTerm(controller.TermConfig{
		Cluster: lookingAround{c, cluster},
		Drainer: looking{c, &drain.Drainer{Client: client, Evictor: client, Own: ownPod, Now: p.now, MayEvict: leading}},
		Leading: leading,
		Events:  recorder{c}, Policies: c, NodeName: c.nodeName(), Now: p.now,
		Spawn: func(f func()) {
			drains++
			by := c.judged()
			p.spawn(0, func(t *thread) {
				t.deadline, t.judged = w.now.Add(passTime), &by
				f()
				drains--
			})
		},
		Metrics: w.controllerMetrics, Log: w.log,
	})
	c.term = term
	t.cancelled = func() bool { return ctx.Err() != nil }
	for ctx.Err() == nil {
		c.asked = false
		pause := term.Turn(ctx)
		w.transcript.act("%s rests for %s", c.name, pause)
		if ctx.Err() != nil {
			break
		}
		t.pause(passPause)
		if pause > passPause {
			t.sleep(pause-passPause, term.Woken())
		}
	}
	c.term = nil
	ended = true
	for drains > 0 {
		t.pause(100 * time.Millisecond)
	}
	p.ctx = context.Background()
	w.note(c.name, "does not lead any more")
}

// looking takes a note of when the pods of a node were listed just before its reboot.
type looking struct {
	c *controllerProcess
	*drain.Drainer
}

// Pods is for controller.Drainer.
func (l looking) Pods(ctx context.Context, node string, e policy.Eviction) ([]corev1.Pod, error) {
	pods, err := l.Drainer.Pods(ctx, node, e)
	if t := l.c.w.running; err == nil && t != nil {
		l.c.looked[node] = t.listed
	}
	return pods, err
}

// Forecast is for controller.Drainer.
func (l looking) Forecast(ctx context.Context, node string, e policy.Eviction) (fleet.Obstacle, string, error) {
	look := glance{revision: l.c.w.server.Revision(), at: l.c.w.now}
	o, message, err := l.Drainer.Forecast(ctx, node, e)
	if err == nil && l.c.w.running != nil {
		look.ended = l.c.w.now
		l.c.foreseen[node] = glances{look, l.c.foreseen[node][0]}
	}
	return o, message, err
}

// glance is the revision that the server was at when a look at it began, when that was, and when it ended.
type glance struct {
	revision  int64
	at, ended time.Time
}

// glances are the last one, and the one before that.
type glances [2]glance

// decided is the glance that a plan of that moment was made with: one that ended later told it nothing.
func (g glances) decided(at time.Time) glance {
	if g[0].ended.After(at) {
		return g[1]
	}
	return g[0]
}

// lookedFor is what is looked for on a node.
type lookedFor struct {
	node string
	what fleet.CheckFor
}

// lookingAround takes a note of when a node was the only one, and of when what it carries was looked at.
type lookingAround struct {
	c *controllerProcess
	*kube.Cluster
}

// Alone is for controller.Cluster.
func (l lookingAround) Alone(ctx context.Context, uid string) (bool, error) {
	alone, err := l.Cluster.Alone(ctx, uid)
	if t := l.c.w.running; alone && err == nil && t != nil {
		l.c.alone[uid] = t.listed
	}
	return alone, err
}

// Check is for controller.Cluster.
func (l lookingAround) Check(ctx context.Context, node string, q plan.LiveCheck) (fleet.Checked, error) {
	look, what := glance{revision: l.c.w.server.Revision(), at: l.c.w.now}, lookedFor{node, q.For}
	found, err := l.Cluster.Check(ctx, node, q)
	if err == nil && l.c.w.running != nil {
		look.ended = l.c.w.now
		l.c.checked[what] = glances{look, l.c.checked[what][0]}
	}
	return found, err
}

func (w *world) controllerNamed(name string) *controllerProcess {
	for _, c := range w.controllers {
		if c.name == name {
			return c
		}
	}
	return nil
}

func (c *controllerProcess) nodeName() string {
	if c.home == nil {
		return ""
	}
	return c.home.nodeName
}

// Current is for controller.Policies. A pass decides by what it is told before it looks at anything else.
func (c *controllerProcess) Current() kube.PolicyState {
	if c.asked {
		return c.policy.Current()
	}
	c.asked = true
	by := c.told
	if c.hadPolicy && c.w.struck[PersonEditsSlots] == 0 {
		by = by.required()
	}
	c.decided = decision{told: by, at: c.process.now(), real: c.w.now, shown: c.nodes.shown(), agents: c.agents.shown()}
	return c.policy.Current()
}

// recorder is controller.Events.
type recorder struct{ c *controllerProcess }

// Event is for controller.Events.
func (r recorder) Event(node, _ string, warning bool, reason, message string) {
	w := r.c.w
	w.checks.events++
	w.checks.told(node, plan.Reason(reason))
	w.transcript.act("%s tells of %s: %s %t", r.c.name, node, reason, warning)
	w.note(r.c.name, "%s: %s: %s", node, reason, message)
}

// Once is for controller.Events.
func (r recorder) Once(id, node, uid string, warning bool, reason, message string) {
	if w := r.c.w; !w.checks.once[id] {
		w.checks.once[id] = true
		r.Event(node, uid, warning, reason, message)
	}
}

// Notice is for controller.Events.
func (r recorder) Notice(warning bool, reason, message string) {
	r.c.w.transcript.act("%s gives notice: %s %t", r.c.name, reason, warning)
	r.c.w.note(r.c.name, "%s: %s", reason, message)
}

// election follows client-go's leader elector: the holder of the lease is believed for its duration, counted
// from when the own process saw it change.
type election struct {
	c        *controllerProcess
	t        *thread
	client   *apiserver.Client
	identity string
	seen     string
	seenAt   time.Time
}

func (e *election) acquire() bool {
	w := e.c.w
	leases := e.client.CoordinationV1().Leases(namespace)
	now := metav1.NewMicroTime(w.now)
	seconds := int32(leaseDuration / time.Second)
	l, err := leases.Get(context.Background(), kube.LeaseName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = leases.Create(context.Background(), &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: kube.LeaseName},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &e.identity, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now},
		}, metav1.CreateOptions{})
		return err == nil
	}
	if err != nil {
		return false
	}
	if l.ResourceVersion != e.seen {
		e.seen, e.seenAt = l.ResourceVersion, w.now
	}
	holder := ""
	if l.Spec.HolderIdentity != nil {
		holder = *l.Spec.HolderIdentity
	}
	if holder != "" && holder != e.identity && w.now.Before(e.seenAt.Add(leaseDuration)) {
		return false
	}
	l.Spec.HolderIdentity, l.Spec.RenewTime = &e.identity, &now
	written, err := leases.Update(context.Background(), l, metav1.UpdateOptions{})
	if err != nil {
		return false
	}
	e.seen, e.seenAt = written.ResourceVersion, w.now
	return true
}

const (
	appLabel  = "app.kubernetes.io/name"
	appName   = "bottlerocket-update-operator"
	partLabel = "app.kubernetes.io/component"
	agentPart = "agent"
)

func ownPod(p *corev1.Pod) bool { return kube.OwnPod(namespace, p) }
