package plugin

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// e2eRun is one run of the command: it asks the operator for an update, or a cycle, of one node, and watches.
type e2eRun struct {
	*plugin
	client  kubernetes.Interface
	node    string
	yes     bool
	timeout time.Duration
	// id is that of the request.
	id string
	// asked is when the leader was asked for its plan last.
	asked time.Time
	// warned are the warnings that were printed.
	mu     sync.Mutex
	warned map[string]bool
}

func (p *plugin) e2eCommand() *cobra.Command {
	r := &e2eRun{plugin: p, warned: map[string]bool{}}
	c := &cobra.Command{
		Use:   "e2e --node NODE --yes-reboot-it",
		Short: "Take one node through a whole update, and say what is seen",
		Long: "Ask the operator to take one node through a whole update: to the version that it is offered, or with nothing offered through\n" +
			"cordon, drain, hooks, reboot and return on the version that it runs. It says what it sees, step by step, and ends with a verdict;\n" +
			"the status is 0 if all went well. The operator does it, by its own rules: windows, pauses and budgets hold.",
		Example: "  kubectl bottlerocket e2e --node node-1\n  kubectl bottlerocket e2e --node node-1 --yes-reboot-it",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if r.node == "" {
				return errors.Errorf("name the node with --node; see '%s --help'", c.CommandPath())
			}
			return r.run(c.Context())
		},
	}
	c.Flags().StringVar(&r.node, "node", "", "The node")
	c.Flags().BoolVar(&r.yes, "yes-reboot-it", false, "Do it: without this flag it is only said what would be done")
	c.Flags().DurationVar(&r.timeout, "timeout", 2*time.Hour, "How long to watch; a request for which nothing has begun by then is taken back. 0: without end")
	_ = c.RegisterFlagCompletionFunc("node", p.completeNodes(inCare))
	return c
}

func (r *e2eRun) run(ctx context.Context) error {
	var err error
	if r.client, err = r.plugin.client(); err != nil {
		return err
	}
	before, lines, err := r.check(ctx)
	if len(lines) > 0 {
		fmt.Fprintf(r.Out, "%s, times are UTC\n", r.now().UTC().Format(time.DateOnly))
	}
	for _, l := range lines {
		r.say(r.now(), "checked", l)
	}
	if err != nil {
		return err
	}
	if !r.yes {
		return errors.Errorf("nothing was done: with --yes-reboot-it the operator is asked to cordon node %q, evict its pods, reboot its host and take it back into service", r.node)
	}
	r.id = strings.ToLower("e2e-" + r.now().UTC().Format("20060102t150405") + "-" + rand.Text()[:6])
	if err := r.request(ctx); err != nil {
		return err
	}
	return r.follow(ctx, newJournal(before, r.id, r.now()))
}

// say prints one step.
func (r *e2eRun) say(at time.Time, what, text string) {
	fmt.Fprintf(r.Out, "%s  %-9s  %s\n", at.UTC().Format(time.TimeOnly), what, line(text))
}

func (r *e2eRun) request(ctx context.Context) error {
	n, err := readNode(ctx, r.client, r.node)
	if err != nil {
		return err
	}
	return r.annotate(ctx, r.client, n, marker.KeyCycle, &r.id, "asked for by "+r.id, &dryRun{})
}

// follow watches the node until its request has ended.
func (r *e2eRun) follow(ctx context.Context, j *journal) error {
	if r.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.timeout)
		defer cancel()
	}
	nodes := r.watch(ctx)
	again := time.NewTicker(r.again)
	defer again.Stop()
	var n *corev1.Node
	late := false
	for {
		select {
		case <-ctx.Done():
			return r.stop(ctx)
		case n = <-nodes:
		case <-again.C:
		}
		if n == nil {
			continue
		}
		o := r.observe(ctx, n, j)
		for _, e := range j.see(o) {
			r.say(o.at, e.what, e.text)
		}
		switch v := j.verdict(); {
		case v == nil || ctx.Err() != nil:
		case v.passed || late:
			return r.close(v)
		default:
			// The Event that says why may come a moment later.
			late, nodes = true, nil
		}
	}
}

// watch returns every state of the node that the API server shows: the steps of a node that is quick are less than a
// second apart.
func (r *e2eRun) watch(ctx context.Context) <-chan *corev1.Node {
	nodes := make(chan *corev1.Node)
	see := func(o any) {
		if n, ok := o.(*corev1.Node); ok {
			select {
			case nodes <- n:
			case <-ctx.Done():
			}
		}
	}
	lw := cache.NewFilteredListWatchFromClient(r.client.CoreV1().RESTClient(), "nodes", "", func(o *metav1.ListOptions) {
		o.FieldSelector = "metadata.name=" + r.node
	})
	i := cache.NewSharedIndexInformer(lw, &corev1.Node{}, 0, cache.Indexers{})
	// Only one that runs already refuses these.
	_ = i.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *cache.Reflector, err error) {
		if !usual(err) {
			r.failed(ctx, "watching node "+r.node+": "+err.Error())
		}
	})
	_, _ = i.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: see, UpdateFunc: func(_, o any) { see(o) }, DeleteFunc: func(any) {
		r.failed(ctx, "the Node was deleted; interrupt this if it does not come back")
	}})
	go i.RunWithContext(ctx)
	return nodes
}

// failed warns of what is not shown, the first time. What is not shown because the run ends is no news.
func (r *e2eRun) failed(ctx context.Context, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.warned[text] && ctx.Err() == nil {
		r.warned[text] = true
		warn(r.ErrOut, []string{text})
	}
}

// close prints how the run ended.
func (r *e2eRun) close(v *verdict) error {
	fmt.Fprintln(r.Out)
	t := newTable(r.Out)
	for _, f := range v.facts {
		t.row(f[0], f[1])
	}
	if err := t.w.Flush(); err != nil {
		return err
	}
	if !v.passed {
		return errors.New("FAILED: " + v.text)
	}
	fmt.Fprintf(r.Out, "\nPASSED: %s\n", line(v.text))
	return nil
}

// stopFor is how long a run that is interrupted may take to end.
const stopFor = 15 * time.Second

// stop ends a run that is interrupted, or has watched for long enough: a request for which nothing has begun is taken
// back. What has begun the operator brings to its end.
func (r *e2eRun) stop(ctx context.Context) error {
	why := "interrupted"
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		why = "not over within " + r.timeout.String()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopFor)
	defer cancel()
	n, err := readNode(ctx, r.client, r.node)
	if err != nil {
		return errors.WithMessagef(err, "%s, and it is not known where the node is; the request %s may stand: kubectl annotate node %s %s-", why, r.id, r.node, marker.KeyCycle)
	}
	v := kube.View(n)
	if v.Marks.Cycle == r.id && !v.Disrupted() && len(v.Problems) == 0 {
		// Whatever came in between is seen after it.
		if err = r.annotate(ctx, r.client, n, marker.KeyCycle, nil, "no longer asked for", &dryRun{}); err == nil {
			n, err = readNode(ctx, r.client, r.node)
		}
		if err != nil {
			return errors.WithMessagef(err, "%s, and the request can't be taken back", why)
		}
		if v = kube.View(n); !v.Disrupted() {
			return errors.Errorf("%s: the request is taken back, and node %q was not taken out of service", why, r.node)
		}
	}
	ends := ""
	switch {
	case !v.Disrupted() && len(v.Problems) == 0:
		return errors.Errorf("%s: the request for node %q has ended already; see kubectl bottlerocket history %s", why, r.node, r.node)
	case begun(&v):
	case v.Marks.Cycles():
		ends = fmt.Sprintf(", unless you take the request back before its reboot begins: kubectl annotate node %s %s-", r.node, marker.KeyCycle)
	default:
		ends = fmt.Sprintf(", unless you end the attempt before its reboot begins: kubectl bottlerocket pause %s --reason WHY", r.node)
	}
	return errors.Errorf("%s while node %q is %s. The operator goes on by itself until the node is back in service%s; kubectl bottlerocket status %s --watch follows it",
		why, r.node, phaseShown(&v), ends, r.node)
}

// observe looks at what is on the node, and at what is said of it.
func (r *e2eRun) observe(ctx context.Context, n *corev1.Node, j *journal) *observation {
	var err error
	o := &observation{at: r.now(), node: kube.View(n)}
	if o.events, err = nodeEvents(ctx, r.client, r.node, j.began); err != nil {
		r.failed(ctx, "Events are not shown: "+err.Error())
	}
	// Before the drain now and then, so that none is missed that is gone at the first look in it.
	waits := !o.node.Disrupted() && o.at.Sub(r.asked) >= planAgain
	if waits || draining(&o.node) || draining(&j.node) {
		if o.pods, err = podsOn(ctx, r.client, r.node); err != nil {
			r.failed(ctx, "pods are not shown: "+err.Error())
		}
		o.sawPods = err == nil
	}
	if waits {
		r.asked = o.at
		if out, err := r.ask(ctx, r.client, nil); err != nil {
			r.failed(ctx, "what keeps it from starting is not shown: "+err.Error())
		} else {
			o.decision = decisionOn(&out, r.node)
		}
	}
	return o
}

// planAgain is how often the leader is asked why a node doesn't start.
const planAgain = 5 * time.Second

func decisionOn(out *plan.Plan, node string) *plan.Decision {
	for i := range out.Nodes {
		if out.Nodes[i].Node == node {
			return &out.Nodes[i]
		}
	}
	return nil
}

// agentOn is a node with its agent's pod, as the API server shows them.
func (r *e2eRun) agentOn(ctx context.Context, n *corev1.Node) (fleet.Node, error) {
	objects := &kube.Objects{Nodes: []*corev1.Node{n}}
	where := "spec.nodeName=" + n.Name
	if fleet.InterfaceOf(n.Labels) == fleet.InterfacePlan {
		// The runner may be on any.
		where = ""
	}
	pods, err := r.client.CoreV1().Pods(r.namespace()).List(ctx, selected(kube.AgentSelector, where))
	if err != nil {
		return fleet.Node{}, errors.Wrapf(err, "listing the agents' pods in namespace %q", r.namespace())
	}
	for i := range pods.Items {
		objects.Agents = append(objects.Agents, &pods.Items[i])
	}
	return objects.Views()[0], nil
}
