package runner

import (
	"testing"
	"time"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/runner/next"
)

// A pod of a plan whose target is its content names the digest, and keeps what its template says of tokens. The template
// itself is left as it is.
func TestNewPodOfContent(t *testing.T) {
	token := true
	template := &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Name: "apply", Namespace: "plans"}}
	template.Template.Spec = corev1.PodSpec{AutomountServiceAccountToken: &token, RestartPolicy: corev1.RestartPolicyAlways,
		Containers: []corev1.Container{{Name: "a", Image: "example.com/a:TARGET_VERSION"}, {Name: "b", Image: "example.com/a:TARGET_VERSION@sha256:0"}}}
	n := &next.Node{Name: "n", UID: "u", Intent: marker.Intent{ID: "i"}, Plan: &marker.Plan{Name: "files", Digest: "0123456789abcdef",
		Proof: marker.ProofContent, Deadline: "90s"}}
	n.Intent.Target = n.Plan.Done(n.Plan.Digest)
	p := newPod(template, n)
	assert.Equal(t, p.Name, kube.PlanPodName("files", "u", "i"))
	assert.Equal(t, p.Annotations[kube.PlanTarget], n.Plan.Digest)
	assert.Equal(t, p.Annotations[kube.PlanTag], n.Plan.Digest)
	assert.Equal(t, *p.Spec.AutomountServiceAccountToken, true)
	assert.Equal(t, *p.Spec.ActiveDeadlineSeconds, int64(90))
	assert.Equal(t, p.Spec.Containers[0].Image, "example.com/a:"+n.Plan.Digest)
	assert.Equal(t, p.Spec.Containers[1].Image, "example.com/a:TARGET_VERSION@sha256:0", "the tag is not at its end")
	assert.Equal(t, template.Template.Spec.RestartPolicy, corev1.RestartPolicyAlways)
	assert.Equal(t, template.Template.Spec.Containers[0].Image, "example.com/a:TARGET_VERSION")
	assert.Equal(t, len(template.Template.Spec.Tolerations), 0)
	template.Template.Spec.AutomountServiceAccountToken = nil
	assert.Equal(t, *newPod(template, n).Spec.AutomountServiceAccountToken, false, "no token but where the template asks for one")
}

// What a pod's status says of how it ended, as the kubelet writes it.
func TestPodOf(t *testing.T) {
	noon := metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	at := func(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(d)) }
	ended := func(name string, status int32, reason, message string, end metav1.Time) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: status, Reason: reason, Message: message, StartedAt: noon, FinishedAt: end}}}
	}
	pod := func(s corev1.PodStatus) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: kube.PlanPodName("p", "u", "i"), UID: "1", Labels: map[string]string{kube.PlanLabel: "p"},
			Annotations: map[string]string{kube.PlanIntent: "i", kube.PlanNodeUID: "u"}, CreationTimestamp: noon, Finalizers: []string{kube.PlanFinalizer}}, Status: s}
		p.Spec.Containers = []corev1.Container{{Name: "a"}, {Name: "b"}}
		return p
	}
	for name, c := range map[string]struct {
		status corev1.PodStatus
		want   next.Pod
	}{
		"pending": {corev1.PodStatus{Phase: corev1.PodPending}, next.Pod{Phase: next.Pending}},
		"image not pulled": {corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{Name: "a",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}}}, next.Pod{Phase: next.Pending}},
		"in an init container": {corev1.PodStatus{Phase: corev1.PodPending, InitContainerStatuses: []corev1.ContainerStatus{{Name: "i",
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: noon}}}}}, next.Pod{Phase: next.Pending, Started: true}},
		"succeeded": {corev1.PodStatus{Phase: corev1.PodSucceeded, StartTime: new(at(time.Second)), ContainerStatuses: []corev1.ContainerStatus{
			ended("b", 0, "Completed", "of b", at(2*time.Minute)), ended("a", 0, "Completed", "of a", at(time.Minute))}},
			next.Pod{Phase: next.Succeeded, Started: true, Said: "of a", Taken: at(time.Second).Time, Ended: at(2 * time.Minute).Time}},
		"failed": {corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{
			ended("a", 0, "Completed", "", at(time.Minute)), ended("b", 7, "Error", "", at(time.Minute))}},
			next.Pod{Phase: next.Failed, Started: true, Status: 7, Container: "b", Ended: at(time.Minute).Time}},
		"rejected": {corev1.PodStatus{Phase: corev1.PodFailed, Reason: "OutOfcpu", Conditions: []corev1.PodCondition{{Type: corev1.PodReady, LastTransitionTime: at(time.Second)}}},
			next.Pod{Phase: next.Failed, Reason: "OutOfcpu", Ended: at(time.Second).Time}},
		"unknown": {corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{Name: "a", State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: unknownStatus}}}}},
			next.Pod{Phase: next.Failed, Started: true, Status: 137, Container: "a", Lost: true}},
		// containerd says so of a container that it can't find again after it was started anew.
		"unknown to containerd": {corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{ended("a", 255, "Unknown", "", at(time.Minute))}},
			next.Pod{Phase: next.Failed, Started: true, Status: 255, Container: "a", Lost: true, Ended: at(time.Minute).Time}},
		"failed, and then its sidecar was ended": {corev1.PodStatus{Phase: corev1.PodFailed, InitContainerStatuses: []corev1.ContainerStatus{ended("s", 143, "Error", "", at(2*time.Minute))},
			ContainerStatuses: []corev1.ContainerStatus{ended("a", 7, "Error", "", at(time.Minute))}},
			next.Pod{Phase: next.Failed, Started: true, Status: 7, Container: "a", Ended: at(2 * time.Minute).Time}},
		"an init container failed": {corev1.PodStatus{Phase: corev1.PodFailed, InitContainerStatuses: []corev1.ContainerStatus{ended("i", 7, "Error", "", at(time.Minute))},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "a", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}}}},
			next.Pod{Phase: next.Failed, Started: true, Status: 7, Container: "i", Ended: at(time.Minute).Time}},
	} {
		t.Run(name, func(t *testing.T) {
			p := pod(c.status)
			got, made := podOf(p)
			assert.Assert(t, made)
			c.want.Name, c.want.UID, c.want.Plan, c.want.Intent, c.want.NodeUID, c.want.Created, c.want.Held = p.Name, "1", "p", "i", "u", noon.Time, true
			assert.DeepEqual(t, got, c.want)
			// What the watch keeps of it says the same.
			kept, ok := stripPod(p).(*corev1.Pod)
			assert.Assert(t, ok)
			got, _ = podOf(kept)
			assert.DeepEqual(t, got, c.want)
		})
	}
	other := pod(corev1.PodStatus{})
	other.Name = "made-by-hand"
	_, made := podOf(other)
	assert.Assert(t, !made)
}
