package controller

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pkg/errors"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/alert"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/drain"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/post"
)

// evictions is how many one pass over a node asks for at once.
const evictions = 8

// Controller runs terms for as long as it leads.
type Controller struct {
	options Options
	// defaults hold where the policy says nothing.
	defaults policy.Settings
	client   kubernetes.Interface
	cluster  *kube.Cluster
	policy   *kube.Policy
	metrics  *Metrics
	log      logrus.FieldLogger
	now      func() time.Time
	// restricted is TermConfig's.
	restricted func(ctx context.Context, node string) (bool, error)

	// term is the current one; nil while this process doesn't lead.
	term atomic.Pointer[Term]
}

// New wires a controller; nothing runs yet.
func New(o Options, client kubernetes.Interface, r prometheus.Registerer, log logrus.FieldLogger) (*Controller, error) {
	c := &Controller{options: o, client: client, metrics: NewMetrics(r, o.BrupopMetrics), log: log, now: time.Now}
	changed := func() {
		if t := c.term.Load(); t != nil {
			t.Changed()
		}
	}
	var err error
	if c.defaults, err = o.defaults(); err != nil {
		return nil, err
	}
	if c.policy, err = kube.NewPolicy(kube.PolicyConfig{
		Policy:       kube.ConfigMapInformer(client, o.Namespace, kube.PolicyConfigMap),
		Pauses:       kube.ConfigMapInformer(client, o.Namespace, kube.PauseConfigMap),
		Acknowledged: kube.ConfigMapInformer(client, o.Namespace, kube.AcknowledgedConfigMap),
		PlanTargets:  kube.ConfigMapInformer(client, o.Namespace, kube.PlanTargetsConfigMap),
		Defaults:     c.defaults, Changed: changed,
	}); err != nil {
		return nil, err
	}
	c.cluster, err = kube.NewCluster(kube.ClusterConfig{
		Client: client, Namespace: o.Namespace, Now: c.now, Log: log,
		Nodes: kube.NodeInformer(client), Agents: kube.AgentInformer(client, o.Namespace, o.AgentSelector),
		Changed: changed,
	})
	return c, err
}

// Run watches and, whenever it leads, passes, until ctx ends. Losing the lead, by an outage of the API
// server for example, ends the term and not the process.
func (c *Controller) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wg.Go(func() { c.cluster.Run(ctx) })
	wg.Go(func() { c.policy.Run(ctx) })
	if !c.cluster.WaitForSync(ctx) || !c.policy.WaitForSync(ctx) {
		return nil
	}
	identity := c.options.PodName + "_" + string(uuid.NewUUID())
	for ctx.Err() == nil {
		if err := c.campaign(ctx, identity); err != nil {
			return err
		}
	}
	return nil
}

// campaign waits for the lead, serves one term and returns. The lease is given up only after the term
// has ended, so that the successor never meets a predecessor at work.
func (c *Controller) campaign(ctx context.Context, identity string) error {
	leaseCtx, release := context.WithCancel(context.WithoutCancel(ctx))
	defer release()
	served := make(chan struct{})
	var abandoned atomic.Bool
	var elector *leaderelection.LeaderElector
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: c.options.Namespace, Name: kube.LeaseName},
			Client:     c.client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
		LeaseDuration:   c.options.LeaseDuration,
		RenewDeadline:   c.options.RenewDeadline,
		RetryPeriod:     c.options.RetryPeriod,
		ReleaseOnCancel: true,
		Name:            kube.LeaseName,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) {
				defer close(served)
				defer release()
				term, stop := context.WithCancel(leading)
				defer stop()
				defer context.AfterFunc(ctx, stop)()
				c.serve(term, elector)
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return errors.Wrap(err, "configuring leader election")
	}
	// Before there is a term, the end of ctx ends the campaign at once.
	defer context.AfterFunc(ctx, func() {
		if c.term.Load() == nil {
			abandoned.Store(true)
			release()
		}
	})()
	elector.Run(leaseCtx)
	if !abandoned.Load() {
		<-served
	}
	return nil
}

// serve is one term.
func (c *Controller) serve(ctx context.Context, elector *leaderelection.LeaderElector) {
	c.log.Info("This process leads now")
	events := kube.NewEvents(ctx, c.client, c.options.Namespace, c.options.NodeName)
	defer events.Stop()
	slack := c.options.LeaseDuration - c.options.RenewDeadline
	leading := func() bool { return ctx.Err() == nil && elector.IsLeader() && elector.Check(-slack) == nil }
	var work sync.WaitGroup
	defer work.Wait()
	term := NewTerm(TermConfig{
		Cluster: c.cluster,
		Drainer: &drain.Drainer{Client: c.client, Evictor: drain.NewEvictor(c.client), MayEvict: leading,
			Own: func(p *corev1.Pod) bool { return kube.OwnPod(c.options.Namespace, p) }, Parallel: evictions, Now: c.now},
		Events:     events,
		Policies:   c.policy,
		Alerts:     alert.Prometheus{Client: http.DefaultClient},
		Sender:     post.NewSender(c.options.NotifyDir),
		NodeName:   c.options.NodeName,
		Now:        c.now,
		Spawn:      func(f func()) { work.Go(f) },
		Leading:    leading,
		Restricted: c.restricted,
		Metrics:    c.metrics,
		Log:        c.log,
	})
	c.term.Store(term)
	c.metrics.lead(true)
	defer c.metrics.lead(false)
	defer c.term.Store(nil)
	term.Run(ctx)
	c.log.Info("This process does not lead any more")
}

// Ready reports whether the controller has seen the fleet.
func (c *Controller) Ready() error {
	if !c.cluster.Synced() {
		return errors.New("the fleet has not been seen yet")
	}
	return nil
}

// Healthy reports whether a leader's passes come to an end.
func (c *Controller) Healthy() error {
	if t := c.term.Load(); t != nil {
		if since := t.stuckFor(); since > stuckAfter {
			return errors.Errorf("a pass has been under way for %s", since)
		}
	}
	return nil
}
