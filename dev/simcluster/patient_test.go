package simcluster_test

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/cache"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/nodesim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/process"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/simcluster"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// sight is one thing that people can see of a node: "at" a moment, an "event", what the "plan" says of it,
// or a line in its agent's "log".
type sight struct{ kind, reason, message string }

func (s sight) String() string { return s.kind + " " + s.reason + ": " + s.message }

// shows tells if s is what is waited for, which names a part of the message.
func (s sight) shows(wanted sight) bool {
	return s.kind == wanted.kind && s.reason == wanted.reason && strings.Contains(s.message, wanted.message)
}

func at(m moment) sight                            { return sight{"at", string(m), ""} }
func event(r plan.Reason, part string) sight       { return sight{"event", string(r), part} }
func planned(r plan.Reason, part string) sight     { return sight{"plan", string(r), part} }
func logged(part string) sight                     { return sight{"log", "", part} }
func sees(s sight, does ...func(p *patient)) scene { return scene{s, does} }

// scene is what must be seen of a patient, and what happens then.
type scene struct {
	sees sight
	does []func(p *patient)
}

// patient is a machine with a fault.
type patient struct {
	ward    *ward
	line    faultLine
	name    string
	repo    *hostsim.Repo
	machine *nodesim.Machine

	// seen are all sights, each once; next is the first scene that has not been.
	seen []sight
	next int
	// reboots are the ids of the intents to reboot.
	reboots map[string]bool
	// plan is what the plan says now.
	plan plan.Decision
}

// ward is a cluster of patients. Two machines more, which are not in the operator's care, hold its controller and proxies.
type ward struct {
	*world
	t        *testing.T
	mu       sync.Mutex
	patients []*patient
	acts     sync.WaitGroup
}

// saw takes in a sight, and lets happen at once what is to happen then.
func (p *patient) saw(s sight) {
	p.ward.mu.Lock()
	defer p.ward.mu.Unlock()
	if slices.Contains(p.seen, s) {
		return
	}
	p.seen = append(p.seen, s)
	for p.next < len(p.line.story) && slices.ContainsFunc(p.seen, func(s sight) bool { return s.shows(p.line.story[p.next].sees) }) {
		scene := p.line.story[p.next]
		p.next++
		for _, do := range scene.does {
			do(p)
		}
	}
}

// awaits is the sight that the story waits for.
func (p *patient) awaits() (sight, bool) {
	p.ward.mu.Lock()
	defer p.ward.mu.Unlock()
	if p.next == len(p.line.story) {
		return sight{}, false
	}
	return p.line.story[p.next].sees, true
}

// What can happen to a patient.

func add(faults ...hostsim.Fault) func(*patient) {
	return func(p *patient) {
		for _, f := range faults {
			assert.Check(p.ward.t, p.machine.Host().AddFault(f))
		}
	}
}

func cure(p *patient) { assert.Check(p.ward.t, p.machine.Host().SetFaults()) }

// reboot is done by people, past the operator.
func reboot(p *patient) {
	p.ward.acts.Go(func() { assert.Check(p.ward.t, p.machine.Reboot(p.ward.t.Context(), 0)) })
}

func restartAPI(p *patient) { assert.Check(p.ward.t, p.machine.RestartHostAPI()) }

func releases(version string) func(*patient) {
	return func(p *patient) {
		assert.Check(p.ward.t, p.repo.Release(hostsim.Release{Version: version, Variant: simcluster.Variant, Arch: simcluster.Arch}))
	}
}

// letGo allows the eviction of the pod that held up the drain.
func letGo(p *patient) {
	p.ward.acts.Go(func() {
		assert.Check(p.ward.t, p.ward.Client.PolicyV1().PodDisruptionBudgets(metav1.NamespaceDefault).Delete(p.ward.t.Context(), p.name, metav1.DeleteOptions{}))
	})
}

func wishRetry(p *patient) {
	p.ward.acts.Go(func() { assert.Check(p.ward.t, p.ward.annotate(p.ward.t.Context(), p.name, marker.KeyRetry, `""`)) })
}

// admit makes the machine, sick from the beginning if it is to be, and only then labels it.
func (d *ward) admit(ctx context.Context, line faultLine) (*patient, error) {
	p := &patient{ward: d, line: line, name: line.node(), repo: d.Repo, reboots: map[string]bool{}}
	if line.alone {
		p.repo = &hostsim.Repo{}
	}
	var err error
	if p.machine, err = d.Fleet.Add(ctx, nodesim.MachineConfig{Name: p.name, Host: hostsim.Config{
		Version: version(0), Variant: simcluster.Variant, Arch: simcluster.Arch, Repo: p.repo,
		Settings: hostsim.Settings{Seed: 1},
		Latencies: hostsim.Latencies{
			Refresh: 50 * time.Millisecond, Prepare: 700 * time.Millisecond, Activate: 500 * time.Millisecond, Deactivate: 300 * time.Millisecond,
		},
	}}); err != nil {
		return nil, err
	}
	if line.held {
		if err := d.hold(ctx, p.name); err != nil {
			return nil, err
		}
	}
	if line.first != nil {
		line.first(p)
	}
	return p, nil
}

// hold puts a pod on a node that may not be evicted.
func (d *ward) hold(ctx context.Context, node string) error {
	if err := d.pin(ctx, node); err != nil {
		return err
	}
	return d.budget(ctx, node)
}

// budget lets nobody evict the pod that is pinned to a node.
func (w *world) budget(ctx context.Context, node string) error {
	_, err := w.Client.PolicyV1().PodDisruptionBudgets(metav1.NamespaceDefault).Create(ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: node},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &intstr.IntOrString{IntVal: 1},
			Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{"app": "on-" + node}},
		},
	}, metav1.CreateOptions{})
	return err
}

func (d *ward) patient(name string) *patient {
	for _, p := range d.patients {
		if p.name == name {
			return p
		}
	}
	return nil
}

// watch takes in moments and events as they come.
func (d *ward) watch(t *testing.T) {
	t.Helper()
	d.each(t, "nodes", "", &corev1.Node{}, func(obj any) {
		n, ok := obj.(*corev1.Node)
		if !ok || d.patient(n.Name) == nil {
			return
		}
		p := d.patient(n.Name)
		m, _ := marker.Decode(n.Annotations)
		if m.Intent.Action == marker.ActionRebootUpdate {
			d.mu.Lock()
			p.reboots[m.Intent.ID] = true
			d.mu.Unlock()
		}
		p.saw(at(momentOf(n)))
	})
	d.each(t, "events", metav1.NamespaceDefault, &corev1.Event{}, func(obj any) {
		e, ok := obj.(*corev1.Event)
		if !ok || e.InvolvedObject.Kind != "Node" || e.Source.Component != "bottlerocket-update-operator" {
			return
		}
		if p := d.patient(e.InvolvedObject.Name); p != nil {
			p.saw(sight{"event", e.Reason, e.Message})
		}
	})
}

// each calls look with every object of a kind, whenever it changes, until the test ends.
func (d *ward) each(t *testing.T, resource, namespace string, kind runtime.Object, look func(any)) {
	t.Helper()
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(d.Client.CoreV1().RESTClient(), resource, namespace, fields.Everything()),
		ObjectType:    kind,
		Handler:       cache.ResourceEventHandlerFuncs{AddFunc: look, UpdateFunc: func(_, obj any) { look(obj) }},
	})
	ctx, cancel := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	ended.Go(func() { informer.RunWithContext(ctx) })
	t.Cleanup(func() { cancel(); ended.Wait() })
	assert.Assert(t, cache.WaitForCacheSync(ctx.Done(), informer.HasSynced))
}

// round looks at the plan and at all patients once, and names those whose story isn't over.
func (d *ward) round(ctx context.Context) ([]string, error) {
	outcome, err := d.plan(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range outcome.Nodes {
		p := d.patient(s.Node)
		if p == nil {
			return nil, fmt.Errorf("the plan tells of %s, which is not in the operator's care", s.Node)
		}
		p.plan = s
		p.saw(sight{"plan", string(s.Reason), s.Message.String()})
	}
	var open []string
	for _, p := range d.patients {
		// A machine goes down later than it was asked to only if somebody looks.
		p.machine.Host().Settle()
		wanted, waits := p.awaits()
		if waits && wanted.kind == "log" {
			log, err := d.log(ctx, agent, p.name)
			if err != nil {
				return nil, err
			}
			for line := range strings.Lines(log) {
				if strings.Contains(line, wanted.message) {
					p.saw(sight{"log", "", strings.TrimSpace(line)})
					break
				}
			}
		}
		n, err := d.Client.CoreV1().Nodes().Get(ctx, p.name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		switch {
		case waits:
			open = append(open, fmt.Sprintf("%s never saw %q", p.name, wanted))
		case !p.ended(n):
			open = append(open, fmt.Sprintf("%s is not at its end", p.name))
		}
	}
	return open, nil
}

// ended tells if a patient is where its line says that it ends.
func (p *patient) ended(n *corev1.Node) bool {
	m, problems := marker.Decode(n.Annotations)
	return len(problems) == 0 && p.plan.Reason == p.line.reason() && nodesim.Ready(n) && !n.Spec.Unschedulable && m.Disruption == nil &&
		p.machine.Host().Snapshot().Version == p.line.version()
}

// history is that of a node, each attempt with its reason; one that ended like the one before is left out.
func history(m marker.Marks) string {
	var all []string
	for _, a := range m.History {
		all = append(all, a.Version+" "+a.Reason)
	}
	return strings.Join(slices.Compact(all), ", ")
}

// tell says what was seen of a patient.
func (d *ward) tell(t *testing.T, p *patient) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var b strings.Builder
	for _, s := range p.seen {
		fmt.Fprintf(&b, "  %s\n", s)
	}
	t.Logf("%s:\n  %+v\n%s", p.name, p.machine.Host().Snapshot(), b.String())
	if n, err := d.Client.CoreV1().Nodes().Get(context.Background(), p.name, metav1.GetOptions{}); err == nil {
		for _, k := range slices.Sorted(maps.Keys(n.Annotations)) {
			t.Logf("  %s=%s", k, n.Annotations[k])
		}
	}
	found, _ := filepath.Glob(filepath.Join(d.Fleet.Logs(), p.name+"-update-operator-agent-*.log"))
	for _, log := range found {
		t.Logf("%s", process.LogTail(log, 4096))
	}
}
