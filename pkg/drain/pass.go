package drain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

const (
	// lookTime bounds the listing of a pass, and a look ahead.
	lookTime = 10 * time.Second
	// beginTime is for how long a pass begins evictions once it has listed. Those that it doesn't get to are the first of
	// the next pass.
	beginTime = 5 * time.Second
	// answerTime bounds each eviction. It is longer than the 10 s for which the API server waits for a webhook that says
	// nothing of its own: cut off before, a webhook that is down would neither be named nor, where its owner lets it be,
	// ignored.
	answerTime = 12 * time.Second
	// triedTime is for how long a pod that was asked for in vain is let wait behind others. A drain is mostly over by then.
	triedTime = time.Hour
)

// Drainer makes eviction passes.
type Drainer struct {
	Client  kubernetes.Interface
	Evictor Evictor
	// Own tells if a pod is the operator's own, which comes back with its host.
	Own func(*corev1.Pod) bool
	// MayEvict is asked before each eviction: a leader that can't know that it still leads starts none.
	MayEvict func() bool
	// Parallel is how many evictions are asked for at once; one if it is zero.
	Parallel int
	Now      func() time.Time

	daemonSets memory[types.NamespacedName]
	// tried is when each pod, by UID, was asked for in vain.
	tried memory[types.UID]
}

// Result is what a pass found. It is about the moment of the pass.
type Result struct {
	// Evicted were accepted by this pass, Terminating by an earlier one or by somebody else, Blocked may not go now or
	// got no answer, and Waiting have no turn yet or end by themselves. All of them are still to go.
	Evicted, Terminating, Blocked, Waiting int
	// Gone is how many pods this pass may have sent away: those that were accepted, and those without an answer.
	Gone int
	// BlockedBy is a sentence on the first blocked pod, by name, and Hopeless one on a pod that will never be let go.
	BlockedBy, Hopeless string
	// Awaited is a sentence on the first pod that ends by itself, Goes on the first that is on its way out.
	Awaited, Goes string
}

// Remaining counts the pods that are still to go.
func (r Result) Remaining() int { return r.Evicted + r.Terminating + r.Blocked + r.Waiting }

// Pass lists what is to go, asks once for the eviction of each pod whose turn it is and that isn't going yet, and
// returns what it found. It waits for nothing, and asks for as many as most. With force it deletes instead, whatever
// protects a pod.
func (d *Drainer) Pass(ctx context.Context, node string, e policy.Eviction, force bool, most int) (Result, error) {
	listing, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	pods, err := d.list(listing, node, e, false)
	if err != nil {
		return Result{}, err
	}
	var r Result
	now := d.Now()
	due := first(pods)
	r.Waiting = len(pods) - len(due)
	var toAsk []*corev1.Pod
	for i := range due {
		p := &due[i]
		switch protected := protection(p, e); {
		case p.DeletionTimestamp != nil && (!force || p.DeletionTimestamp.Time.Before(now.Add(forceGrace))):
			r.Terminating++
			note(&r.Goes, shuttingDown(p, now))
		case force:
			toAsk = append(toAsk, p)
		case chosen(p, e.WaitFor):
			r.Waiting++
			note(&r.Awaited, name(p)+" runs, which is not evicted: the policy waits for its end")
		case protected != "":
			r.Blocked++
			note(&r.BlockedBy, protected)
		default:
			toAsk = append(toAsk, p)
		}
	}
	return d.askAll(ctx, node, toAsk, e, force, most, r)
}

// inOrder are the places of the pods in the order in which they are asked for: those before that an earlier pass didn't
// ask for in vain, so that none is kept from its turn by others whose answers are slow.
func (d *Drainer) inOrder(pods []*corev1.Pod) []int {
	order, tried := make([]int, len(pods)), make([]time.Time, len(pods))
	for i, p := range pods {
		order[i], tried[i] = i, d.tried.last(p.UID)
	}
	slices.SortStableFunc(order, func(i, j int) int {
		return cmp.Or(tried[i].Compare(tried[j]), cmp.Compare(priority(pods[i]), priority(pods[j])))
	})
	return order
}

// askAll asks for as many of the pods to go as it may, several at once, and adds the answers to what is known.
func (d *Drainer) askAll(ctx context.Context, node string, pods []*corev1.Pod, e policy.Eviction, force bool, most int, r Result) (Result, error) {
	doubt, now := false, d.Now()
	begin, cancel := context.WithTimeout(ctx, beginTime)
	defer cancel()
	order := d.inOrder(pods)
	answers, reasons := make([]answer, len(pods)), make([]string, len(pods))
	for i := range answers {
		answers[i] = unasked
	}
	var mu sync.Mutex
	d.each(min(len(pods), most), func(n int) {
		i := order[n]
		if begin.Err() != nil {
			return
		}
		if !d.MayEvict() {
			mu.Lock()
			doubt = true
			mu.Unlock()
			return
		}
		asking, cancel := context.WithTimeout(ctx, answerTime)
		defer cancel()
		err := d.ask(asking, pods[i], e, force)
		switch {
		case ctx.Err() != nil:
			// Nobody wants to know any more.
		case err != nil && asking.Err() != nil:
			answers[i] = unanswered
		default:
			answers[i] = judge(err)
		}
		if err != nil {
			reasons[i] = why(err)
		}
	})
	for i, p := range pods {
		if a := answers[i]; a == blocked || a == unanswered {
			d.tried.note(p.UID, now, triedTime)
		}
		if a := answers[i]; a == accepted || a == unanswered {
			r.Gone++
		}
		switch answers[i] {
		case accepted:
			r.Evicted++
			note(&r.Goes, name(p)+" is shutting down")
		case going:
			r.Terminating++
			note(&r.Goes, name(p)+" is shutting down")
		case blocked:
			r.Blocked++
			note(&r.BlockedBy, fmt.Sprintf("%s may not be evicted: %s", name(p), reasons[i]))
		case unanswered:
			r.Blocked++
			note(&r.BlockedBy, fmt.Sprintf("%s: no answer to its %s within %s", name(p), asked(force), answerTime))
		case hopeless:
			r.Blocked++
			note(&r.Hopeless, fmt.Sprintf("%s can not be evicted: %s", name(p), reasons[i]))
		case unasked:
			// The next pass goes on with it.
			r.Waiting++
		}
	}
	if doubt {
		return Result{Gone: r.Gone}, errors.Errorf("draining node %q: leadership is in doubt", node)
	}
	return r, nil
}

// asked is what is asked for, for people.
func asked(force bool) string {
	if force {
		return "deletion"
	}
	return "eviction"
}

// each calls f with every number below n, as many at once as the Drainer may.
func (d *Drainer) each(n int, f func(i int)) {
	if d.Parallel <= 1 {
		for i := range n {
			f(i)
		}
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(d.Parallel, n) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	wg.Wait()
}

// forceGrace is how long a pod gets to shut down that is deleted by force.
const forceGrace = 30 * time.Second

func (d *Drainer) ask(ctx context.Context, p *corev1.Pod, e policy.Eviction, force bool) error {
	o := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(p.UID))}
	if e.GracePeriod > 0 {
		o.GracePeriodSeconds = new(int64(e.GracePeriod / time.Second))
	}
	if !force {
		return d.Evictor.Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}, DeleteOptions: &o})
	}
	most := int64(forceGrace / time.Second)
	for _, g := range []*int64{o.GracePeriodSeconds, p.Spec.TerminationGracePeriodSeconds} {
		if g != nil {
			most = min(most, *g)
		}
	}
	// With none a pod is gone at once, also while a kubelet that says nothing runs its containers on.
	o.GracePeriodSeconds = new(max(1, most))
	return d.Client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, o)
}

// note keeps the first sentence.
func note(into *string, sentence string) {
	if *into == "" {
		*into = sentence
	}
}

// shuttingDown says for how long a pod has been on its way out. When it is to be gone stands in it, which is that long
// after somebody asked for it.
func shuttingDown(p *corev1.Pod, now time.Time) string {
	since := p.DeletionTimestamp.Time
	if g := p.DeletionGracePeriodSeconds; g != nil {
		since = since.Add(-time.Duration(*g) * time.Second)
	}
	if d := now.Sub(since).Truncate(time.Second); d > 0 {
		return fmt.Sprintf("%s has been shutting down for %s", name(p), d)
	}
	return name(p) + " is shutting down"
}
