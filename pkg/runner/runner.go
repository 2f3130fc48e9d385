package runner

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/pkg/errors"
	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/channel"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube/access"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/runner/next"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

const (
	fieldManager = "bottlerocket-update-operator"
	// workers is how many nodes have their turn at once.
	workers = 8
	// requestTime bounds what one look, or one step, asks of the API server.
	requestTime = 20 * time.Second
	retryMin    = 250 * time.Millisecond
	retryMax    = 30 * time.Second
	// patrolEvery is how often something is read live without a reason: against watches that hang.
	patrolEvery = 15 * time.Second
	// staleAfter is how long after its last live read a runner isn't ready any more.
	staleAfter = time.Minute
)

// Runner is the loop of all nodes of plans. Any number of runners may run at once.
type Runner struct {
	options Options
	client  kubernetes.Interface
	time    Time
	w       watches
	plans   *plans
	keys    *keeper
	targets *targets
	queue   workqueue.TypedRateLimitingInterface[string]
	metrics *Metrics
	// enforcer tests the admission policies about the runner's account.
	enforcer access.Enforcer
	log      logrus.FieldLogger

	mu sync.Mutex
	// memories are what is remembered of nodes, by name.
	memories map[string]*memory
	// doubted are nodes of which the watches have not shown what a live read did.
	doubted map[string]bool
	// reached is when the API server answered a live read last.
	reached time.Time
}

// memory is what a process remembers of a node: it saves time, and may be lost.
type memory struct {
	next.Memory
	// until is the intent-until of the intents that pods were made for, by intent.
	until map[string]time.Time
}

// New wires a runner; nothing runs yet.
func New(c Config) (*Runner, error) {
	o, t := c.Options, c.Time
	r := &Runner{
		options: o, client: c.Client, time: t, w: newWatches(c.Informer, o), plans: &plans{log: c.Log}, metrics: c.Metrics, log: c.Log,
		keys: &keeper{client: c.Client, namespace: o.Namespace, name: o.SecretName}, memories: map[string]*memory{}, doubted: map[string]bool{},
		queue: c.Queue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](retryMin, retryMax)),
	}
	r.enforcer = access.Enforcer{Missing: c.Metrics.admission, Say: notRestricted, Log: c.Log, Now: t.Now}
	r.targets = &targets{client: c.Client, namespace: o.Namespace, time: t, plans: r.plans, keys: r.keys, from: cached{&r.w, o.PlansNamespace},
		stands: r.w.targets.GetIndexer(), changed: make(chan struct{}, 1), metrics: c.Metrics, log: c.Log}
	r.targets.channels = channel.New(channel.Config{Transport: c.Channels, Now: t.Now, Random: c.Random, Changed: r.targets.look})
	content := handler(func(any) { r.targets.look() })
	for _, h := range []struct {
		informer kube.Informer
		handler  cache.ResourceEventHandler
	}{
		{r.w.nodes, handler(func(obj any) {
			if name, err := cache.DeletionHandlingObjectToName(obj); err == nil {
				r.queue.Add(name.Name)
			}
		})},
		{r.w.pods, handler(func(obj any) {
			if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			if p, ok := obj.(*corev1.Pod); ok {
				r.queue.Add(p.Spec.NodeName)
			}
		})},
		{r.w.templates, content}, {r.w.configMaps, content}, {r.w.secrets, content}, {r.w.targets, content},
		{r.w.policy, r.plans.handler(r.targets.look)},
	} {
		if _, err := h.informer.AddEventHandler(h.handler); err != nil {
			return nil, errors.Wrap(err, "watching")
		}
	}
	return r, nil
}

// handler calls one function whatever happens to an object.
func handler(f func(obj any)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{AddFunc: f, UpdateFunc: func(_, obj any) { f(obj) }, DeleteFunc: f}
}

// Run watches and gives nodes their turns until ctx ends.
func (r *Runner) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, i := range r.w.all() {
		wg.Go(func() { i.RunWithContext(ctx) })
	}
	wg.Go(func() { r.targets.channels.Run(ctx) })
	for _, loop := range r.Loops() {
		wg.Go(func() { loop(ctx) })
	}
	defer r.queue.ShutDown()
	<-ctx.Done()
	return nil
}

// Loops are what a runner does side by side, each until its context ends, beside its watches and its channels.
func (r *Runner) Loops() []func(context.Context) {
	synced := func(loop func(context.Context)) func(context.Context) {
		return func(ctx context.Context) {
			if cache.WaitForCacheSync(ctx.Done(), r.w.synced) {
				loop(ctx)
			}
		}
	}
	r.targets.look()
	loops := []func(context.Context){r.patrol, synced(r.targets.run)}
	for range workers {
		loops = append(loops, synced(r.work))
	}
	return loops
}

// work gives one node after the other its turn.
func (r *Runner) work(ctx context.Context) {
	for {
		name, over := r.queue.Get()
		if over {
			return
		}
		again, err := r.turn(ctx, name)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			r.failed(name, err)
			r.queue.AddRateLimited(name)
		default:
			r.queue.Forget(name)
			if !again.IsZero() {
				r.queue.AddAfter(name, max(again.Sub(r.time.Now()), time.Millisecond))
			}
		}
		r.queue.Done(name)
	}
}

// failed logs a turn that could not be finished: the first of a row loudly.
func (r *Runner) failed(name string, err error) {
	r.metrics.failures.Inc()
	log := r.log.WithFields(logrus.Fields{telemetry.FieldNode: name, telemetry.FieldError: err})
	if r.queue.NumRequeues(name) == 0 && !apierrors.IsConflict(err) {
		log.Warn("A node's turn could not be finished and will be repeated")
		return
	}
	log.Debug("A node's turn could not be finished and will be repeated")
}

func (r *Runner) nodes() []string {
	keys := r.w.nodes.GetIndexer().ListKeys()
	slices.Sort(keys)
	return keys
}

// patrol reads one thing after the other live: one node each time, so that an intent which no watch has shown is found,
// and the ConfigMap of targets where there is no node.
func (r *Runner) patrol(ctx context.Context) {
	for at := 0; ctx.Err() == nil; at++ {
		if err := r.visit(ctx, at); err != nil && ctx.Err() == nil {
			r.log.WithField(telemetry.FieldError, err).Warn("The API server does not answer")
		}
		r.time.Rest(ctx, patrolEvery, nil)
	}
}

func (r *Runner) visit(process context.Context, at int) error {
	ctx, cancel := r.time.Within(process, requestTime)
	defer cancel()
	all := r.nodes()
	if len(all) == 0 {
		_, err := r.client.CoreV1().ConfigMaps(r.options.Namespace).Get(ctx, kube.PlanTargetsConfigMap, metav1.GetOptions{})
		if err == nil || apierrors.IsNotFound(err) {
			r.reach()
			return nil
		}
		return errors.Wrap(err, "reading live")
	}
	name := all[at%len(all)]
	n, err := r.node(ctx, name)
	if err != nil {
		return err
	}
	if n != nil {
		r.enforcer.Ask(process, name)
	}
	shown, err := stored[*corev1.Node](r.w.nodes.GetIndexer(), name)
	if err == nil && (n == nil) != (shown == nil) || n != nil && shown != nil && n.ResourceVersion != shown.ResourceVersion {
		r.doubt(name)
	}
	return err
}

// doubt gives a node a turn that begins with a live look.
func (r *Runner) doubt(name string) {
	r.mu.Lock()
	r.doubted[name] = true
	r.mu.Unlock()
	r.queue.Add(name)
}

func (r *Runner) reach() {
	r.mu.Lock()
	r.reached = r.time.Now()
	r.mu.Unlock()
}

// Ready returns why nodes aren't looked after.
func (r *Runner) Ready() error {
	if !r.w.synced() {
		return errors.New("the nodes of plans have not been seen yet")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.time.Now().Sub(r.reached) > staleAfter {
		return errors.New("the API server was not reached for a minute")
	}
	return nil
}
