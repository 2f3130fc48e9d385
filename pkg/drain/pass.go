package drain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

const (
	// lookTime bounds the listing of a pass, and a Forecast.
	lookTime = 10 * time.Second
	// beginTime is how long a pass begins evictions after its listing. The next pass begins with those that it didn't
	// reach.
	beginTime = 5 * time.Second
	// answerTime bounds each eviction. It is longer than the 10 s for which the API server waits for a webhook by default:
	// otherwise a webhook that is down would neither be named nor, if its failurePolicy is Ignore, be ignored.
	answerTime = 12 * time.Second
	// triedTime is how long a pod whose eviction failed comes after others. Most drains are over by then.
	triedTime = time.Hour
)

// Drainer makes eviction passes.
type Drainer struct {
	Client  kubernetes.Interface
	Evictor Evictor
	// Own reports whether a pod is the operator's own, which comes back with its host.
	Own func(*corev1.Pod) bool
	// MayEvict reports whether this process certainly leads. It is called before each eviction: in doubt none is begun.
	MayEvict func() bool
	// Parallel is how many evictions are requested at once; one if it is zero.
	Parallel int
	Now      func() time.Time

	daemonSets memory[types.NamespacedName]
	// tried is when the eviction of each pod, by UID, failed last.
	tried memory[types.UID]
}

// Result is what a pass found, at that moment.
type Result struct {
	// The numbers of pods that are still on the node. Evicted: this pass's request was accepted. Terminating: they shut
	// down for another reason. Blocked: the request was refused, or got no answer. Waiting: their turn comes later, or
	// they end by themselves.
	Evicted, Terminating, Blocked, Waiting int
	// Gone is how many pods this pass may have evicted: those that were accepted, and those without an answer.
	Gone int
	// Refused is how many of this pass's requests were refused.
	Refused int
	// BlockedBy is a sentence on the first blocked pod, by name. Unevictable is one on the first pod that can never be
	// evicted.
	BlockedBy, Unevictable string
	// Awaited is a sentence on the first pod that ends by itself, Goes on the first that is shutting down.
	Awaited, Goes string
}

// Remaining returns how many pods are still to leave the node.
func (r Result) Remaining() int { return r.Evicted + r.Terminating + r.Blocked + r.Waiting }

// Pass lists the pods that must leave the node, requests the eviction of those whose turn it is, once each and most at
// most, and returns what it found. It waits for no pod to end. With force it deletes instead, whatever protects a pod.
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
	uncertain := false
	for _, a := range d.askAll(ctx, toAsk, e, force, most) {
		r.add(a, force)
		uncertain = uncertain || a.answer == notLeading
		if a.answer == blocked || a.answer == unanswered {
			d.tried.note(a.pod.UID, now, triedTime)
		}
	}
	if uncertain {
		return Result{Gone: r.Gone}, errors.Errorf("draining node %q: leadership is in doubt", node)
	}
	return r, nil
}

// request is the eviction of one pod, and its answer.
type request struct {
	pod *corev1.Pod
	// tried is when its eviction failed last; zero if it didn't.
	tried  time.Time
	answer answer
	// reason is that of a refusal.
	reason string
}

// askAll requests the eviction of most pods at most, several at once, and returns what became of all.
func (d *Drainer) askAll(ctx context.Context, pods []*corev1.Pod, e policy.Eviction, force bool, most int) []*request {
	begin, cancel := context.WithTimeout(ctx, beginTime)
	defer cancel()
	all := make([]*request, len(pods))
	for i, p := range pods {
		all[i] = &request{pod: p, tried: d.tried.last(p.UID), answer: unasked}
	}
	// Pods whose eviction hasn't failed come first, so that slow answers don't hold up other pods again and again.
	queue := slices.SortedStableFunc(slices.Values(all), func(a, b *request) int {
		return cmp.Or(a.tried.Compare(b.tried), cmp.Compare(priority(a.pod), priority(b.pod)))
	})
	ask := func(i int) {
		if begin.Err() == nil {
			d.askOne(ctx, queue[i], e, force)
		}
	}
	most = min(len(queue), most)
	if d.Parallel > 1 {
		workqueue.ParallelizeUntil(begin, d.Parallel, most, ask)
		return all
	}
	for i := range most {
		ask(i)
	}
	return all
}

// askOne requests the eviction of one pod and waits for the answer.
func (d *Drainer) askOne(ctx context.Context, a *request, e policy.Eviction, force bool) {
	if !d.MayEvict() {
		a.answer = notLeading
		return
	}
	limited, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	err := d.ask(limited, a.pod, e, force)
	switch {
	case ctx.Err() != nil:
		// The pass itself has ended.
	case err != nil && limited.Err() != nil:
		a.answer = unanswered
	case err != nil:
		a.answer, a.reason = judge(err), why(err)
	default:
		a.answer = accepted
	}
}

// add counts a pod by the answer to its request.
func (r *Result) add(a *request, force bool) {
	switch p := name(a.pod); a.answer {
	case accepted:
		r.Evicted++
		r.Gone++
		note(&r.Goes, p+" is shutting down")
	case going:
		r.Terminating++
		note(&r.Goes, p+" is shutting down")
	case blocked:
		r.Blocked++
		r.Refused++
		note(&r.BlockedBy, fmt.Sprintf("%s may not be evicted: %s", p, a.reason))
	case unanswered:
		r.Blocked++
		r.Gone++
		note(&r.BlockedBy, fmt.Sprintf("%s: no answer to its %s within %s", p, requested(force), answerTime))
	case unevictable:
		r.Blocked++
		r.Refused++
		note(&r.Unevictable, fmt.Sprintf("%s can not be evicted: %s", p, a.reason))
	case unasked, notLeading:
		// The next pass tries it.
		r.Waiting++
	}
}

// requested names the request in messages.
func requested(force bool) string {
	if force {
		return "deletion"
	}
	return "eviction"
}

// forceGrace is the most time that a pod which is deleted by force gets to shut down.
const forceGrace = 30 * time.Second

func (d *Drainer) ask(ctx context.Context, p *corev1.Pod, e policy.Eviction, force bool) error {
	o := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(p.UID))}
	if e.GracePeriod > 0 {
		o.GracePeriodSeconds = new(int64(e.GracePeriod / time.Second))
	}
	if !force {
		return d.Evictor.Evict(ctx, &policyv1.Eviction{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}, DeleteOptions: &o})
	}
	most := int64(forceGrace / time.Second)
	for _, g := range []*int64{o.GracePeriodSeconds, p.Spec.TerminationGracePeriodSeconds} {
		if g != nil {
			most = min(most, *g)
		}
	}
	// With 0 a pod is gone at once, even while its containers run on under a kubelet that can't be reached.
	o.GracePeriodSeconds = new(max(1, most))
	return d.Client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, o)
}

// note sets a sentence unless there is one.
func note(into *string, sentence string) {
	if *into == "" {
		*into = sentence
	}
}

// shuttingDown says how long a pod has been shutting down: since its deletion, which is its grace period before its
// deletion timestamp.
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
