package runner

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pkg/errors"
	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// One plan, from the first facts to the end of its pod, against the contract: the answers, and the pod's exact shape.
func TestPlan(t *testing.T) {
	w := newWorld(t)
	w.template("k3s-pull", simple())
	spec := simple()
	spec.InitContainers = []corev1.Container{{Name: "check", Image: "registry.example.com:5000/check:TARGET_VERSION"}, {Name: "fixed", Image: "example.com/fixed:1.0"}}
	spec.NodeSelector = map[string]string{"pool": "a"}
	spec.Tolerations = []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}
	w.template("k3s-apply", spec)
	w.policy(onePlan)
	r := w.start()
	n := w.node("node-1")

	i := w.ask("node-1", marker.ActionStabilize, nil, "", time.Now())
	said := w.answered("node-1", i, marker.StateReady)
	assert.Equal(t, said.Current, "")
	assert.Equal(t, said.BootID, "boot-1")
	assert.Equal(t, said.Protocol, marker.Protocol)

	p := w.plan()
	i = w.ask("node-1", marker.ActionPrepareUpdate, p, "k3s-pull", time.Now())
	pod := w.made(n, i)
	assert.Equal(t, pod.Annotations[kube.PlanTemplate], "k3s-pull")
	assert.Equal(t, w.answered("node-1", i, marker.StateBusy).Current, p.Version(before))
	w.ends(pod, 0, "")
	w.answered("node-1", i, marker.StateReady)

	i = w.ask("node-1", marker.ActionRebootUpdate, p, "k3s-apply", time.Now())
	pod = w.made(n, i)
	w.answered("node-1", i, marker.StateBusy)
	_, annotations := w.report("node-1")
	assert.Equal(t, annotations[string(marker.KeyActionActive)], "true")
	assert.DeepEqual(t, pod.Labels, map[string]string{"app": "k3s-apply", kube.PlanLabel: "k3s"})
	assert.DeepEqual(t, pod.Annotations, map[string]string{"note": "mine", kube.PlanIntent: i.ID, kube.PlanNodeUID: string(n.UID),
		kube.PlanTemplate: "k3s-apply", kube.PlanTarget: target, kube.PlanTag: strings.ReplaceAll(target, "+", "-")})
	assert.DeepEqual(t, pod.Finalizers, []string{kube.PlanFinalizer})
	assert.Equal(t, pod.Spec.NodeName, "node-1")
	assert.DeepEqual(t, pod.Spec.NodeSelector, map[string]string{"pool": "a", string(marker.KeyInterfaceVersion): "plan"})
	assert.Equal(t, pod.Spec.RestartPolicy, corev1.RestartPolicyNever)
	assert.DeepEqual(t, pod.Spec.Tolerations[:2], []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}, {Operator: corev1.TolerationOpExists}})
	assert.Equal(t, *pod.Spec.AutomountServiceAccountToken, false)
	assert.Equal(t, *pod.Spec.ActiveDeadlineSeconds, int64(20*60))
	assert.Equal(t, pod.Spec.InitContainers[0].Image, "registry.example.com:5000/check:v1.34.2-k3s1")
	assert.Equal(t, pod.Spec.InitContainers[1].Image, "example.com/fixed:1.0")
	assert.Equal(t, pod.Spec.Containers[0].Image, "example.com/k3s:v1.34.2-k3s1")
	assert.Equal(t, len(pod.Spec.Volumes), 0)

	w.ends(pod, 0, "")
	w.kubelet("node-1", target, "boot-1")
	said = w.answered("node-1", i, marker.StateReady)
	assert.Equal(t, said.Current, i.Target)
	_, annotations = w.report("node-1")
	for _, k := range []marker.Key{marker.KeyAvailableVersion, marker.KeyUpdateAvailable} {
		_, there := annotations[string(k)]
		assert.Assert(t, !there, k)
	}

	i = w.ask("node-1", marker.ActionStabilize, nil, "", time.Now())
	assert.Equal(t, w.answered("node-1", i, marker.StateReady).Current, "")
	assert.Equal(t, len(w.pods()), 2, "pods are kept until nothing depends on them")
	w.later.Store(int64(16 * time.Minute))
	r.doubt("node-1")
	w.until("pods go", func() error {
		if left := w.pods(); len(left) > 0 {
			return errors.Errorf("there are %d", len(left))
		}
		return nil
	})
}

// What is answered when a pod fails, and when the node does not show the target although it did not.
func TestPlanFails(t *testing.T) {
	w := planned(t)
	r := w.start()
	failed, ineffective := w.node("failed"), w.node("ineffective")
	p := w.plan()
	one := w.ask("failed", marker.ActionRebootUpdate, p, "k3s-apply", time.Now())
	two := w.ask("ineffective", marker.ActionRebootUpdate, p, "k3s-apply", time.Now())
	w.ends(w.made(failed, one), 3, "")
	w.ends(w.made(ineffective, two), 0, "")
	w.later.Store(int64(11 * time.Minute))
	r.doubt("failed")
	r.doubt("ineffective")
	said := w.answered("failed", one, marker.StateError)
	assert.Equal(t, said.Reason, marker.ReasonPodFailed, said.Message)
	assert.Assert(t, strings.Contains(said.Message, "status 3"), said.Message)
	said = w.answered("ineffective", two, marker.StateError)
	assert.Equal(t, said.Reason, marker.ReasonNoEffect, said.Message)
}

// S3: two runners at once make one pod for each intent, and agree on the key of digests.
func TestTwoRunners(t *testing.T) {
	w := planned(t)
	const count = 12
	nodes := map[string]*corev1.Node{}
	for i := range count {
		name := fmt.Sprintf("node-%d", i)
		nodes[name] = w.node(name)
	}
	runners := []*runner{w.start(), w.start()}
	p := w.plan()
	for _, r := range runners {
		key, err := r.keys.known(t.Context())
		assert.NilError(t, err)
		secret, err := w.admin.CoreV1().Secrets(w.options.Namespace).Get(t.Context(), w.options.SecretName, metav1.GetOptions{})
		assert.NilError(t, err)
		assert.DeepEqual(t, secret.Data[secretKey], key)
	}
	asked := map[string]marker.Intent{}
	for name := range nodes {
		asked[name] = w.ask(name, marker.ActionRebootUpdate, p, "k3s-apply", time.Now())
	}
	for name, i := range asked {
		w.ends(w.made(nodes[name], i), 0, "")
		w.kubelet(name, target, "boot-1")
	}
	for name, i := range asked {
		w.answered(name, i, marker.StateReady)
	}
	assert.Equal(t, len(w.pods()), count)
}

// S3: a runner that is killed after busy and before the pod is followed by one that makes it, but not after
// intent-until.
func TestKilledBeforeThePod(t *testing.T) {
	w := planned(t)
	n, late := w.node("node-1"), w.node("late")
	killed := w.start(func(r *runner, request *http.Request) error {
		if request.Method == http.MethodPost && strings.HasSuffix(request.URL.Path, "/pods") && request.URL.Query().Get("dryRun") == "" {
			r.stop()
			return errors.New("killed")
		}
		return nil
	})
	p := w.plan()
	i := w.ask("node-1", marker.ActionRebootUpdate, p, "k3s-apply", time.Now())
	w.answered("node-1", i, marker.StateBusy)
	w.until("the runner ends", func() error {
		if !killed.queue.ShuttingDown() {
			return errors.New("it runs")
		}
		return nil
	})
	assert.Equal(t, len(w.pods()), 0)
	// Another runner was killed at the same place long ago.
	old := w.ask("late", marker.ActionRebootUpdate, p, "k3s-apply", time.Now().Add(-7*time.Minute))
	w.patch("late", map[string]any{"metadata": map[string]any{"annotations": map[string]string{
		string(marker.KeyActiveID): old.ID, string(marker.KeyActionState): "busy"}}})
	w.start()
	w.made(n, i)
	said := w.answered("late", old, marker.StateError)
	assert.Equal(t, said.Reason, marker.ReasonPodRefused, said.Message)
	for _, pod := range w.pods() {
		assert.Assert(t, pod.Annotations[kube.PlanNodeUID] != string(late.UID), "a pod after intent-until")
	}
}

// A pod that the API server refuses is found out before anything is done to the node.
func TestRefusedPod(t *testing.T) {
	w := newWorld(t)
	w.template("k3s-pull", simple())
	spec := simple()
	spec.PriorityClassName = "missing"
	w.template("k3s-apply", spec)
	w.policy(onePlan)
	wasBusy := false
	w.start(func(_ *runner, request *http.Request) error {
		if request.Method == http.MethodPatch && request.Body != nil {
			body, err := request.GetBody()
			if err != nil {
				return err
			}
			text := make([]byte, 4096)
			read, _ := body.Read(text)
			wasBusy = wasBusy || strings.Contains(string(text[:read]), `"busy"`)
		}
		return nil
	})
	w.node("node-1")
	i := w.ask("node-1", marker.ActionRebootUpdate, w.plan(), "k3s-apply", time.Now())
	said := w.answered("node-1", i, marker.StateError)
	assert.Equal(t, said.Reason, marker.ReasonPodRefused)
	assert.Assert(t, strings.Contains(said.Message, "missing"), said.Message)
	assert.Equal(t, wasBusy, false)
	assert.Equal(t, len(w.pods()), 0)
}

// A template that changes between the controller's decision and the pod makes none.
func TestChangedTemplate(t *testing.T) {
	w := planned(t)
	w.start()
	w.node("node-1")
	p := w.plan()
	p.Digest = "0123456789abcdef"
	i := w.ask("node-1", marker.ActionRebootUpdate, p, "k3s-apply", time.Now())
	said := w.answered("node-1", i, marker.StateError)
	assert.Equal(t, said.Reason, marker.ReasonPodRefused)
	assert.Assert(t, strings.Contains(said.Message, "changed"), said.Message)
}

// A pod is ended when its node is not the runner's any more: its label is gone, or the node is.
func TestNodeLeaves(t *testing.T) {
	w := planned(t)
	w.start()
	unlabelled, gone := w.node("unlabelled"), w.node("gone")
	p := w.plan()
	one := w.ask("unlabelled", marker.ActionRebootUpdate, p, "k3s-apply", time.Now())
	two := w.ask("gone", marker.ActionRebootUpdate, p, "k3s-apply", time.Now())
	w.made(unlabelled, one)
	w.made(gone, two)
	w.answered("unlabelled", one, marker.StateBusy)
	w.patch("unlabelled", map[string]any{"metadata": map[string]any{"labels": map[string]any{string(marker.KeyInterfaceVersion): nil}}})
	assert.NilError(t, w.admin.CoreV1().Nodes().Delete(t.Context(), "gone", metav1.DeleteOptions{}))
	w.until("the pods are deleted", func() error {
		for _, pod := range w.pods() {
			if pod.DeletionTimestamp == nil || pod.Annotations[kube.PlanNodeUID] == string(gone.UID) && len(pod.Finalizers) > 0 {
				return errors.Errorf("pod %s stands", pod.Name)
			}
		}
		return nil
	})
	// The name stays taken while the intent may begin.
	assert.Equal(t, len(w.made(unlabelled, one).Finalizers), 1)
}
