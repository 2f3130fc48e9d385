package runner

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/pkg/errors"
	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/runner/next"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

const (
	// maxSteps is how many steps one turn takes at most, so that a node which never comes to rest keeps no worker.
	maxSteps = 16
	// maxLog is how much is read of a log, and maxLine how much of its last line is told, in bytes.
	maxLog  = 2048
	maxLine = 128
)

// turn looks at a node by what the watches have shown. It is nearly always at rest; else it is looked at live, and what
// that shows is carried out. It returns when another turn is due although nothing changes.
func (r *Runner) turn(ctx context.Context, name string) (time.Time, error) {
	r.mu.Lock()
	doubted := r.doubted[name]
	delete(r.doubted, name)
	r.mu.Unlock()
	if doubted {
		return r.carryOut(ctx, name)
	}
	l, err := r.glance(name)
	if err != nil {
		return time.Time{}, err
	}
	if step := next.Decide(l.View); step.Kind == next.Rest {
		return step.Again, nil
	}
	return r.carryOut(ctx, name)
}

// carryOut looks at a node live and takes the step that is due, until none is.
func (r *Runner) carryOut(ctx context.Context, name string) (time.Time, error) {
	for range maxSteps {
		step, err := r.step(ctx, name)
		if err != nil || step.Kind == next.Rest {
			return step.Again, err
		}
	}
	return r.time.Now().Add(time.Second), nil
}

func (r *Runner) step(ctx context.Context, name string) (next.Step, error) {
	ctx, cancel := r.time.Within(ctx, requestTime)
	defer cancel()
	l, err := r.look(ctx, name)
	if err != nil {
		return next.Step{}, err
	}
	step := next.Decide(l.View)
	switch step.Kind {
	case next.Rest:
		return step, l.problem
	case next.Report:
		err = r.report(ctx, &l, step)
	case next.Try:
		err = r.try(ctx, &l)
	case next.Create:
		err = r.create(ctx, &l)
	case next.Delete:
		err = r.delete(ctx, step.Pod)
	case next.Release:
		err = r.release(ctx, step.Pod)
	case next.ReadLog:
		r.readLog(ctx, l.Node, step.Pod)
	}
	if err == nil {
		r.metrics.steps.WithLabelValues(string(step.Kind)).Inc()
		log := r.log.WithFields(logrus.Fields{telemetry.FieldNode: name, telemetry.FieldAct: string(step.Kind)})
		if l.Node != nil {
			log = log.WithField(telemetry.FieldIntent, l.Node.Intent.ID)
		}
		if step.Pod != nil {
			log = log.WithField(telemetry.FieldPod, step.Pod.Name)
		}
		log.Debug("Took a step")
	}
	return step, err
}

// try asks for the pod as a dry run: what is wrong with it shows before anything is done to the node.
func (r *Runner) try(ctx context.Context, l *looked) error {
	_, err := r.client.CoreV1().Pods(r.options.PlansNamespace).Create(ctx, newPod(l.template, l.Node),
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: fieldManager})
	if err == nil || apierrors.IsAlreadyExists(err) {
		r.remember(l.Node, func(m *next.Memory) { m.Tried = true })
		return nil
	}
	return r.refused(l.Node, err)
}

// create asks for the pod. One that is there already is this intent's, whichever runner made it. No request outlives
// intent-until.
func (r *Runner) create(ctx context.Context, l *looked) error {
	left := l.Node.Intent.Until.Sub(r.time.Now())
	if left <= 0 {
		return nil
	}
	ctx, cancel := r.time.Within(ctx, left)
	defer cancel()
	p, err := r.client.CoreV1().Pods(r.options.PlansNamespace).Create(ctx, newPod(l.template, l.Node), metav1.CreateOptions{FieldManager: fieldManager})
	switch {
	case err == nil:
		r.log.WithFields(logrus.Fields{telemetry.FieldNode: l.Node.Name, telemetry.FieldIntent: l.Node.Intent.ID, telemetry.FieldPod: p.Name,
			telemetry.FieldTarget: l.Node.Intent.Target}).Info("Made the pod of an intent")
		return nil
	case apierrors.IsAlreadyExists(err):
		return r.stands(ctx, l.Node, err)
	}
	return r.refused(l.Node, err)
}

// stands looks at the pod that has the name of an intent's.
func (r *Runner) stands(ctx context.Context, n *next.Node, exists error) error {
	p, err := r.client.CoreV1().Pods(r.options.PlansNamespace).Get(ctx, kube.PlanPodName(n.Plan.Name, n.UID, n.Intent.ID), metav1.GetOptions{})
	if err != nil {
		return errors.Wrap(err, "looking at the pod of an intent")
	}
	if _, made := podOf(p); made && p.Spec.NodeName == n.Name {
		return nil
	}
	return r.refused(n, exists)
}

// refused remembers what the API server has against a pod; where that is no word on the pod, it is tried again.
func (r *Runner) refused(n *next.Node, err error) error {
	if answer := kube.Answer(err); answer != "" && !apierrors.IsInternalError(err) && !apierrors.IsTimeout(err) && !apierrors.IsServerTimeout(err) {
		r.remember(n, func(m *next.Memory) {
			m.Refused = answer
			m.Refusals++
			if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
				m.Refusals = refusedForGood
			}
		})
	}
	return errors.Wrapf(err, "asking for the pod of intent %q", n.Intent.ID)
}

// refusedForGood is more than any number of refusals that may pass by themselves.
const refusedForGood = 1000

func (r *Runner) delete(ctx context.Context, p *next.Pod) error {
	uid := types.UID(p.UID)
	err := r.client.CoreV1().Pods(r.options.PlansNamespace).Delete(ctx, p.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return errors.Wrapf(err, "deleting pod %q", p.Name)
}

// release takes the finalizer off a pod, and nothing else.
func (r *Runner) release(ctx context.Context, p *next.Pod) error {
	pods := r.client.CoreV1().Pods(r.options.PlansNamespace)
	now, err := pods.Get(ctx, p.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && string(now.UID) != p.UID {
		return nil
	}
	if err != nil {
		return errors.Wrapf(err, "reading pod %q", p.Name)
	}
	left := []string{}
	for _, f := range now.Finalizers {
		if f != kube.PlanFinalizer {
			left = append(left, f)
		}
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": now.ResourceVersion, "finalizers": left}})
	if err != nil {
		return errors.Wrap(err, "encoding the patch of a pod")
	}
	_, err = pods.Patch(ctx, p.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: fieldManager})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return errors.Wrapf(err, "taking the finalizer off pod %q", p.Name)
}

// readLog remembers the last line that a container logged; none where it can't be read, since an answer matters more.
func (r *Runner) readLog(ctx context.Context, n *next.Node, p *next.Pod) {
	text, err := r.client.CoreV1().Pods(r.options.PlansNamespace).GetLogs(p.Name, &corev1.PodLogOptions{
		Container: p.Container, TailLines: new(int64(1)), LimitBytes: new(int64(maxLog))}).DoRaw(ctx)
	if err != nil {
		r.log.WithFields(logrus.Fields{telemetry.FieldPod: p.Name, telemetry.FieldError: err}).Info("Could not read the log of a pod that failed")
		text = nil
	}
	r.remember(n, func(m *next.Memory) { m.LogOf, m.Log = p.UID, marker.Clip(strings.TrimSpace(string(text)), maxLine) })
}
