package drain

import (
	"context"
	"fmt"
	"io"
	"sort"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	kubectldrain "k8s.io/kubectl/pkg/drain"
)

// passTime bounds one pass.
const passTime = 10 * time.Second

// Drainer makes eviction passes.
type Drainer struct {
	Client  kubernetes.Interface
	Evictor Evictor
	// Own tells if a pod is the operator's own, which comes back with its host.
	Own func(*corev1.Pod) bool
	// MayEvict is asked before each eviction: a leader that can't know that it still leads starts none.
	MayEvict func() bool
}

// Result is what a pass found. It is about the moment of the pass.
type Result struct {
	// Evicted were accepted by this pass, Terminating by an earlier one or by somebody else, Blocked
	// may not go now. All of them are still to go.
	Evicted, Terminating, Blocked int
	// BlockedBy is a sentence on the first blocked pod, by name.
	BlockedBy string
	// Waiting is a sentence on the first pod that is on its way out.
	Waiting string
}

// Remaining counts the pods that are still to go.
func (r Result) Remaining() int { return r.Evicted + r.Terminating + r.Blocked }

// Pods lists live what is still to go from the node, sorted.
func (d *Drainer) Pods(ctx context.Context, node string) ([]corev1.Pod, error) {
	h := &kubectldrain.Helper{
		Ctx: ctx, Client: d.Client,
		Force: true, IgnoreAllDaemonSets: true, DeleteEmptyDirData: true, GracePeriodSeconds: -1,
		Out: io.Discard, ErrOut: io.Discard,
		AdditionalFilters: []kubectldrain.PodFilter{d.leave},
	}
	list, errs := h.GetPodsForDeletion(node)
	if len(errs) > 0 {
		return nil, errors.Wrapf(errs[0], "listing pods of node %q", node)
	}
	pods := list.Pods()
	sort.Slice(pods, func(i, j int) bool {
		if pods[i].Namespace != pods[j].Namespace {
			return pods[i].Namespace < pods[j].Namespace
		}
		return pods[i].Name < pods[j].Name
	})
	return pods, nil
}

// leave skips the operator's own pods and those whose containers have ended.
func (d *Drainer) leave(p corev1.Pod) kubectldrain.PodDeleteStatus {
	if d.Own(&p) || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return kubectldrain.MakePodDeleteStatusSkip()
	}
	return kubectldrain.MakePodDeleteStatusOkay()
}

// Pass lists what is to go, asks once for the eviction of each pod that isn't going yet, and returns
// what it found. It waits for nothing.
func (d *Drainer) Pass(ctx context.Context, node string) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, passTime)
	defer cancel()
	pods, err := d.Pods(ctx, node)
	if err != nil {
		return Result{}, err
	}
	var r Result
	for i := range pods {
		p := &pods[i]
		if p.DeletionTimestamp != nil {
			r.Terminating++
			r.wait(p)
			continue
		}
		if !d.MayEvict() {
			return Result{}, errors.Errorf("draining node %q: leadership is in doubt", node)
		}
		d.evict(ctx, p, &r)
		if ctx.Err() != nil {
			// Out of time: what it didn't come to is still to go, and the next pass goes on with it.
			r.Terminating += len(pods) - i - 1
			break
		}
	}
	return r, nil
}

func (r *Result) wait(p *corev1.Pod) {
	if r.Waiting == "" {
		r.Waiting = fmt.Sprintf("pod %s/%s is shutting down", p.Namespace, p.Name)
	}
}

func (d *Drainer) evict(ctx context.Context, p *corev1.Pod, r *Result) {
	err := d.Evictor.Evict(ctx, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(p.UID))},
	})
	switch {
	case err == nil:
		r.Evicted++
		r.wait(p)
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
		// Gone, or another pod has the name by now: the next pass lists anew.
		r.Terminating++
		r.wait(p)
	default:
		r.Blocked++
		if r.BlockedBy == "" {
			r.BlockedBy = fmt.Sprintf("pod %s/%s may not be evicted: %s", p.Namespace, p.Name, why(err))
		}
	}
}

// why picks the most telling words of a refusal: for a PodDisruptionBudget the cause names it.
func why(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		if d := status.Status().Details; d != nil && len(d.Causes) > 0 && d.Causes[0].Message != "" {
			return d.Causes[0].Message
		}
	}
	return err.Error()
}
