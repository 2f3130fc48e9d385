package nodes

import (
	"context"
	"encoding/json"

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
	patch, err := r.statusPatch(v)
	if err != nil {
		return nil // it will not get better
	}
	_, err = r.m.kubelet.CoreV1().Pods(r.namespace).Patch(ctx, r.name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	// The pod is gone, or its name belongs to another one: nobody to report on.
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsInvalid(err) {
		return nil
	}
	return err
}

func (r *podRun) statusPatch(v containerView) ([]byte, error) {
	pod := r.seen()
	container := pod.Spec.Containers[0]
	status := corev1.PodStatus{
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
	fields, err := fieldsOf(status)
	if err != nil {
		return nil, err
	}
	// A pod gets another IP with its machine's next boot, and the patch would only add it to the old one.
	fields["podIPs"] = []any{map[string]string{"$patch": "replace"}, corev1.PodIP{IP: r.ip}}
	return json.Marshal(map[string]any{"metadata": map[string]any{"uid": r.uid}, "status": fields})
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
