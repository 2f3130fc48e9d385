package nodesim

import (
	"context"
	"encoding/json"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// containerView is all that a pod's status says about its container.
type containerView struct {
	phase    corev1.PodPhase
	ready    bool
	restarts int32
	state    corev1.ContainerState
	last     corev1.ContainerState
}

// report hands a view to the writer; of those that wait, only the newest counts.
func (r *podRun) report(v containerView) {
	for {
		select {
		case r.views <- v:
			return
		default:
		}
		select {
		case <-r.views:
		default:
		}
	}
}

// writeStatuses brings views to the API until ctx ends.
func (r *podRun) writeStatuses(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case v := <-r.views:
			for r.writeStatus(ctx, v) != nil {
				if !pause(ctx, retryAfter) {
					return
				}
				select {
				case v = <-r.views:
				default:
				}
			}
		}
	}
}

func (r *podRun) writeStatus(ctx context.Context, v containerView) error {
	return r.m.writePodStatus(ctx, r.seen(), r.status(v))
}

func (r *podRun) status(v containerView) corev1.PodStatus {
	container := r.seen().Spec.Containers[0]
	return corev1.PodStatus{
		Phase:     v.phase,
		StartTime: &r.started,
		HostIP:    r.m.hostIP(),
		HostIPs:   []corev1.HostIP{{IP: r.m.hostIP()}},
		PodIP:     r.ip,
		PodIPs:    []corev1.PodIP{{IP: r.ip}},
		ContainerStatuses: []corev1.ContainerStatus{{
			Name:                 container.Name,
			Image:                container.Image,
			Ready:                v.ready,
			Started:              new(v.state.Running != nil),
			RestartCount:         v.restarts,
			State:                v.state,
			LastTerminationState: v.last,
		}},
		Conditions: []corev1.PodCondition{
			r.condition(corev1.PodInitialized, true),
			r.condition(corev1.ContainersReady, v.ready),
			r.condition(corev1.PodReady, v.ready),
		},
	}
}

// condition keeps the time of a condition that doesn't change.
func (r *podRun) condition(kind corev1.PodConditionType, holds bool) corev1.PodCondition {
	status := corev1.ConditionFalse
	if holds {
		status = corev1.ConditionTrue
	}
	c, ok := r.conditions[kind]
	if !ok || c.Status != status {
		c = corev1.PodCondition{Type: kind, Status: status, LastTransitionTime: metav1.Now()}
		r.conditions[kind] = c
	}
	return c
}

// writePodStatus changes the fields of a pod's status that are set. A pod that is gone needs none, also if another one
// has its name now.
func (m *Machine) writePodStatus(ctx context.Context, pod *corev1.Pod, status corev1.PodStatus) error {
	patch, err := podStatusPatch(pod.UID, status)
	if err != nil {
		return nil // it will not get better
	}
	_, err = m.kubelet.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsInvalid(err) {
		return nil
	}
	return errors.Wrapf(err, "writing the status of pod %q", pod.Name)
}

func podStatusPatch(uid types.UID, status corev1.PodStatus) ([]byte, error) {
	fields, err := fieldsOf(status)
	if err != nil {
		return nil, err
	}
	// A pod gets another IP with its machine's next boot, and the patch would only add it to the old one.
	fields["podIPs"] = []any{map[string]string{"$patch": "replace"}, corev1.PodIP{IP: status.PodIP}}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": uid}, "status": fields})
	return patch, errors.Wrap(err, "encoding a pod's status")
}

// removePod takes a pod of which nothing runs any more out of the API.
func (m *Machine) removePod(ctx context.Context, pod *corev1.Pod) error {
	err := m.kubelet.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: new(int64), Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return errors.Wrapf(err, "removing pod %q", pod.Name)
}
