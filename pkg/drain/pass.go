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
	doubtful := false
	for _, a := range d.askAll(ctx, toAsk, e, force, most) {
		r.add(a, force)
		doubtful = doubtful || a.answer == doubted
		if a.answer == blocked || a.answer == unanswered {
			d.tried.note(a.pod.UID, now, triedTime)
		}
	}
	if doubtful {
		return Result{Gone: r.Gone}, errors.Errorf("draining node %q: leadership is in doubt", node)
	}
	return r, nil
}

// asking is a pod that is asked to go, and what came of it.
type asking struct {
	pod *corev1.Pod
	// tried is when it was last asked in vain; zero if it wasn't.
	tried  time.Time
	answer answer
	// reason is a refusal's.
	reason string
}

// askAll asks as many of the pods to go as it may, several at once, and returns them all.
func (d *Drainer) askAll(ctx context.Context, pods []*corev1.Pod, e policy.Eviction, force bool, most int) []*asking {
	begin, cancel := context.WithTimeout(ctx, beginTime)
	defer cancel()
	all := make([]*asking, len(pods))
	for i, p := range pods {
		all[i] = &asking{pod: p, tried: d.tried.last(p.UID), answer: unasked}
	}
	// First those that an earlier pass didn't ask in vain, so that none is kept from its turn by others whose answers are
	// slow.
	queue := slices.SortedStableFunc(slices.Values(all), func(a, b *asking) int {
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

// askOne asks a pod to go and waits for the answer.
func (d *Drainer) askOne(ctx context.Context, a *asking, e policy.Eviction, force bool) {
	if !d.MayEvict() {
		a.answer = doubted
		return
	}
	request, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	err := d.ask(request, a.pod, e, force)
	switch {
	case ctx.Err() != nil:
		// The pass itself is at its end.
	case err != nil && request.Err() != nil:
		a.answer = unanswered
	case err != nil:
		a.answer, a.reason = judge(err), why(err)
	default:
		a.answer = accepted
	}
}

// add counts a pod by what came of asking it.
func (r *Result) add(a *asking, force bool) {
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
		note(&r.BlockedBy, fmt.Sprintf("%s may not be evicted: %s", p, a.reason))
	case unanswered:
		r.Blocked++
		r.Gone++
		note(&r.BlockedBy, fmt.Sprintf("%s: no answer to its %s within %s", p, asked(force), answerTime))
	case hopeless:
		r.Blocked++
		note(&r.Hopeless, fmt.Sprintf("%s can not be evicted: %s", p, a.reason))
	case unasked, doubted:
		// The next pass goes on with it.
		r.Waiting++
	}
}

// asked is what is asked for, for people.
func asked(force bool) string {
	if force {
		return "deletion"
	}
	return "eviction"
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
