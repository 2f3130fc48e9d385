package agent_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"gotest.tools/v3/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent/next"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/platform"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/platform/updateapi"
)

const (
	from   = "1.26.1"
	target = "1.27.0"
)

var nodes = schema.GroupResource{Resource: "nodes"}

// memoryNode is a node in memory with resource versions and their conflicts.
type memoryNode struct {
	mu          sync.Mutex
	version     uint64
	annotations map[string]string
	patches     []agent.Patch
	gets        int
	// before may refuse a patch or a get, or change the node first.
	before func(p agent.Patch) error
	getErr error
	// lost loses the answer to an accepted patch.
	lost     bool
	watchers []func(*agent.Snapshot)
}

func newMemoryNode() *memoryNode {
	return &memoryNode{version: 100, annotations: map[string]string{"other.example/key": "stays"}}
}

func (n *memoryNode) snapshot() *agent.Snapshot {
	s := &agent.Snapshot{UID: "uid", ResourceVersion: strconv.FormatUint(n.version, 10), Annotations: map[string]string{}}
	maps.Copy(s.Annotations, n.annotations)
	delete(s.Annotations, "other.example/key")
	return s
}

func (n *memoryNode) Get(context.Context) (*agent.Snapshot, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.gets++
	if n.getErr != nil {
		return nil, n.getErr
	}
	return n.snapshot(), nil
}

func (n *memoryNode) Patch(_ context.Context, p agent.Patch) (*agent.Snapshot, error) {
	n.mu.Lock()
	before := n.before
	n.mu.Unlock()
	if before != nil {
		if err := before(p); err != nil {
			return nil, err
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if p.ResourceVersion != strconv.FormatUint(n.version, 10) {
		return nil, apierrors.NewConflict(nodes, "n1", fmt.Errorf("the object has been modified"))
	}
	n.patches = append(n.patches, p)
	n.change(p.Annotations)
	if n.lost {
		n.lost = false
		return nil, fmt.Errorf("connection reset by peer")
	}
	return n.snapshot(), nil
}

// change applies a merge patch; one that changes nothing makes no new resource version.
func (n *memoryNode) change(annotations map[marker.Key]*string) {
	old := maps.Clone(n.annotations)
	for k, v := range annotations {
		if v == nil {
			delete(n.annotations, string(k))
		} else {
			n.annotations[string(k)] = *v
		}
	}
	if maps.Equal(old, n.annotations) {
		return
	}
	n.version++
	for _, w := range n.watchers {
		w(n.snapshot())
	}
}

func (n *memoryNode) Watch(ctx context.Context, update func(*agent.Snapshot)) {
	n.mu.Lock()
	n.watchers = append(n.watchers, update)
	update(n.snapshot())
	n.mu.Unlock()
	<-ctx.Done()
}

func (n *memoryNode) WatchErr() error { return nil }

// write changes the node as others would.
func (n *memoryNode) write(annotations map[marker.Key]*string) *agent.Snapshot {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.change(annotations)
	return n.snapshot()
}

func (n *memoryNode) report() marker.Report {
	n.mu.Lock()
	defer n.mu.Unlock()
	r, _ := marker.DecodeReport(n.annotations)
	return r
}

func (n *memoryNode) intent() marker.Intent {
	n.mu.Lock()
	defer n.mu.Unlock()
	i, _ := marker.DecodeIntent(n.annotations)
	return i
}

// world is one host behind a real socket, its node, and the agent between them, on a clock that only the test moves.
type world struct {
	t       *testing.T
	clock   *clocktesting.FakeClock
	repo    *hostsim.Repo
	host    *hostsim.Host
	server  *hostsim.Server
	socket  string
	bootID  string
	reboots chan struct{}
	asked   int
	node    *memoryNode
	client  platform.Host
	death   *death
	// mortalNode is death around requests to the proxy alone: the client has its own.
	mortalNode *death
	log        *logrus.Logger
	agent      *agent.Agent
	ids        int
}

type option func(*hostsim.Config)

func slow(c *hostsim.Config) {
	c.Latencies = hostsim.Latencies{Refresh: time.Second, Prepare: time.Minute, Activate: time.Second, Deactivate: time.Second}
}

func newWorld(t *testing.T, options ...option) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "agent")
	assert.NilError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	w := &world{
		t: t, clock: clocktesting.NewFakeClock(time.Date(2026, 9, 20, 10, 0, 0, 0, time.UTC)), repo: &hostsim.Repo{},
		socket: filepath.Join(dir, "api.sock"), bootID: filepath.Join(dir, "boot_id"),
		reboots: make(chan struct{}, 16), node: newMemoryNode(), log: logrus.New(),
	}
	w.log.SetOutput(io.Discard)
	for _, v := range []string{from, target} {
		w.release(v)
	}
	cfg := hostsim.Config{
		Name: t.Name(), Version: from, Repo: w.repo,
		Now:      w.clock.Now,
		OnReboot: func() { w.reboots <- struct{}{} },
	}
	for _, o := range options {
		o(&cfg)
	}
	w.host, err = hostsim.New(cfg)
	assert.NilError(t, err)
	w.server = hostsim.NewServer(w.host)
	w.serve()
	t.Cleanup(func() { assert.NilError(t, w.server.Close()) })
	w.client = updateapi.New(updateapi.Config{Socket: w.socket, BootIDPath: w.bootID})
	w.start()
	return w
}

func (w *world) release(version string) {
	w.t.Helper()
	assert.NilError(w.t, w.repo.Release(hostsim.Release{Version: version, Variant: "aws-k8s-1.31", Arch: "x86_64"}))
}

func (w *world) serve() {
	w.t.Helper()
	assert.NilError(w.t, os.WriteFile(w.bootID, []byte(w.host.BootID()+"\n"), 0o600))
	assert.NilError(w.t, w.server.Serve(w.socket))
}

// start starts a new process of the agent, with an empty memory.
func (w *world) start() {
	w.t.Helper()
	node, host := agent.Node(w.node), w.client
	if w.death != nil {
		node, host = mortalNode{w.node, w.death}, mortalHost{w.client, w.death}
	}
	if w.mortalNode != nil {
		node = mortalNode{w.node, w.mortalNode}
	}
	a, err := agent.New(agent.Config{
		Node: node, Host: host, Log: w.log, Version: "test",
		Now: w.clock.Now, Rand: func() float64 { return 0.5 },
	})
	assert.NilError(w.t, err)
	w.agent = a
}

// boot lets the machine go down and come up, with a new process of the agent on it.
func (w *world) boot() {
	w.t.Helper()
	assert.NilError(w.t, w.server.Close())
	w.host.Boot()
	w.advance(30 * time.Second)
	w.serve()
	w.start()
}

func (w *world) advance(d time.Duration) { w.clock.Step(d) }

// turn takes one turn and lets the pause pass that the agent asks for.
func (w *world) turn() time.Duration {
	w.t.Helper()
	next, err := w.agent.Turn(w.t.Context())
	assert.NilError(w.t, err)
	w.rebooted()
	w.advance(max(next, time.Millisecond))
	return next
}

// rebooted reboots the machine if a request for it was accepted.
func (w *world) rebooted() bool {
	w.t.Helper()
	asked := w.host.Snapshot().Counters.RebootsAsked
	if asked == w.asked {
		return false
	}
	assert.Equal(w.t, asked, w.asked+1, "requests to reboot in one boot")
	w.asked = asked
	<-w.reboots
	w.boot()
	return true
}

// until takes turns until done.
func (w *world) until(what string, done func() bool) {
	w.t.Helper()
	for range 1000 {
		if done() {
			return
		}
		w.turn()
	}
	w.t.Fatalf("never: %s; report %+v, host %+v", what, w.node.report(), w.host.Snapshot())
}

// rest takes turns until the agent rests.
func (w *world) rest() {
	w.t.Helper()
	for range 1000 {
		if w.turn() > 9*time.Minute {
			return
		}
	}
	w.t.Fatal("the agent never rests")
}

// want writes an intent, as the controller would, and returns its id.
func (w *world) want(a marker.Action, rebootFrom string) string {
	w.ids++
	m := marker.Marks{Intent: marker.Intent{
		ID: "intent-" + strconv.Itoa(w.ids), Action: a, Target: target, RebootFrom: rebootFrom,
		Time: w.clock.Now(), Until: w.clock.Now().Add(30 * time.Minute),
	}}
	if a == marker.ActionRebootUpdate || a == marker.ActionResetState {
		m.Disruption = &marker.Disruption{Since: w.clock.Now()}
	}
	w.node.mu.Lock()
	diff := marker.Diff(w.node.annotations, marker.Encode(m), marker.WriterController)
	w.node.mu.Unlock()
	w.agent.Update(w.node.write(diff))
	return m.Intent.ID
}

// answered reports whether the intent on the node has this answer.
func (w *world) answered(s marker.State) func() bool {
	return func() bool { return w.node.report().Answer(w.node.intent().ID) == s }
}

// staged brings the host to where a reboot may be asked for.
func (w *world) staged() {
	w.t.Helper()
	w.want(marker.ActionStabilize, "")
	w.until("stable", w.answered(marker.StateReady))
	w.want(marker.ActionPrepareUpdate, "")
	w.until("prepared", w.answered(marker.StateReady))
}

func (w *world) reboot() string {
	w.t.Helper()
	w.staged()
	return w.want(marker.ActionRebootUpdate, w.host.BootID())
}

// posts counts the commands that the host received.
func (w *world) posts() int {
	n := 0
	for _, r := range w.host.Requests() {
		if r.Method == "POST" {
			n++
		}
	}
	return n
}

func (w *world) commands(c hostsim.Command) int { return w.host.Snapshot().Counters.Commands[c] }

// spy counts looks and can fail them.
type spy struct {
	platform.Host
	looks      int
	observeErr error
	startErr   map[next.Command]error
	starts     map[next.Command]int
	// locks are the changes of the setting, which beforeLock may come just before.
	locks      []string
	beforeLock func()
}

func (s *spy) Observe(ctx context.Context) (next.Host, error) {
	s.looks++
	if s.observeErr != nil {
		return next.Host{}, s.observeErr
	}
	return s.Host.Observe(ctx)
}

func (s *spy) Start(ctx context.Context, c next.Command) error {
	s.starts[c]++
	if err := s.startErr[c]; err != nil {
		return err
	}
	return s.Host.Start(ctx, c)
}

func (s *spy) SetLock(ctx context.Context, id, value string) error {
	s.locks = append(s.locks, value)
	if s.beforeLock != nil {
		s.beforeLock()
	}
	return s.Host.SetLock(ctx, id, value)
}

func (w *world) spy() *spy {
	w.t.Helper()
	s := &spy{Host: w.client, startErr: map[next.Command]error{}, starts: map[next.Command]int{}}
	w.client = s
	w.start()
	return s
}
