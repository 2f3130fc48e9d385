package kube

import (
	"strings"
	"testing"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

func podIsReady(ready corev1.ConditionStatus) corev1.PodStatus {
	return corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}}
}

// A Ready runner, wherever it runs, is the agent of all nodes of plans and of no other, to a Cluster and to a single
// look alike; of such nodes alone all of nodeInfo is kept.
func TestRunnerIsTheAgentOfPlanNodes(t *testing.T) {
	labelled := func(name, value string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "1", Labels: map[string]string{string(marker.KeyInterfaceVersion): value}},
			Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.36.3", KernelVersion: "6.1", ContainerRuntimeVersion: "containerd://2", OSImage: "Debian"}}}
	}
	for _, ready := range []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse} {
		client := fake.NewClientset(labelled("a", "2.0.0"), labelled("p", "plan"), labelled("q", "plan"),
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "runner", Labels: map[string]string{componentLabel: runnerComponent}},
				Spec: corev1.PodSpec{NodeName: "a"}, Status: podIsReady(ready)},
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "left"}, Spec: corev1.PodSpec{NodeName: "q"}, Status: podIsReady(corev1.ConditionTrue)})
		objects, err := ReadObjects(t.Context(), client, namespace, "")
		assert.NilError(t, err)
		watched, err := watching(t, client).Nodes(t.Context())
		assert.NilError(t, err)
		for _, nodes := range [][]fleet.Node{objects.Views(), watched} {
			assert.Equal(t, len(nodes), 3)
			assert.Assert(t, !nodes[0].AgentReady && nodes[0].Info == nil)
			for _, n := range nodes[1:] {
				assert.Equal(t, n.AgentReady, ready == corev1.ConditionTrue, n.Name)
				assert.DeepEqual(t, n.Info, &fleet.NodeInfo{Kubelet: "v1.36.3", OSImage: "Debian", Kernel: "6.1", Runtime: "containerd://2"})
			}
		}
	}
}

// Content is on a node by the word of the one pod that was made for it, as it ended well (S7).
func TestContentIsApplied(t *testing.T) {
	const digest = "0123456789abcdef"
	pod := func(change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: PlansNamespace, Name: "files-1", Labels: map[string]string{PlanLabel: "files"}, Annotations: map[string]string{PlanIntent: "7-x"}},
			Spec: corev1.PodSpec{NodeName: "a", Containers: []corev1.Container{{Name: "copy"}, {Name: "other"}}},
			Status: corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: []corev1.ContainerStatus{
				{Name: "other", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: "fedcba9876543210"}}},
				{Name: "copy", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: digest + "\n"}}}}}}
		change(p)
		return p
	}
	message := func(text string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Status.ContainerStatuses[1].State.Terminated.Message = text }
	}
	for _, tc := range []struct {
		name   string
		change func(*corev1.Pod)
		want   string
	}{
		{"it says so", func(*corev1.Pod) {}, ""},
		{"it says so, and that the host boots", message(digest + " reboot"), ""},
		{"it says something else", message("fedcba9876543210"), "pod bottlerocket-plans/files-1 ended without the message 0123456789abcdef"},
		{"it says more than that", message(digest + "0"), "pod bottlerocket-plans/files-1 ended without the message 0123456789abcdef"},
		{"it says nothing", message(""), "pod bottlerocket-plans/files-1 ended without the message 0123456789abcdef"},
		{"it failed", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, "pod bottlerocket-plans/files-1 has not succeeded"},
		{"it was for another intent", func(p *corev1.Pod) { p.Annotations[PlanIntent] = "6-x" }, "the pod of the plan is not there any more"},
		{"it is no pod of a plan", func(p *corev1.Pod) { p.Labels = nil }, "the pod of the plan is not there any more"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, q := range []plan.LiveCheck{{For: fleet.CheckApplied}, {For: fleet.CheckPods, Pods: []policy.PodSelector{
				{Selector: policy.Selector{{Key: "app", Operator: policy.In, Values: []string{"cni"}}}}}}} {
				q.Intent, q.Digest = "7-x", digest
				for _, ready := range []bool{true, false} {
					want := tc.want
					if want == "" && q.For == fleet.CheckPods && !ready {
						want = "pod default/cni is not Ready, and app=cni must be"
					}
					k := &Cluster{c: ClusterConfig{Client: fake.NewClientset(pod(tc.change), podOf("cni", "", "", ready))}}
					got, err := k.Check(t.Context(), "a", q)
					assert.NilError(t, err)
					assert.Equal(t, got.Problem, want)
					assert.Assert(t, got.For == q.For && got.Digest == digest)
				}
			}
		})
	}
}

// S8: what a runner of another build, or a hand, wrote for one plan makes no node's marks unreadable, and stops no other
// plan.
func TestPlanTargetsUnreadable(t *testing.T) {
	found := DecodePlanTargets(map[string]string{"good": `{"apply":"a","digest":"0123456789abcdef","new":1}`, "unknown": `{"apply":"a","problem":"x"}`,
		"long": `{"apply":"a","digest":"0123456789abcdef0"}`, "odd": `{"apply":"a","digest":"sha256:01234567","channel":"https://c","version":"v1.2.3"}`, "broken": `{`})
	const odd = "the runner's digest can't be read"
	assert.DeepEqual(t, found, map[string]fleet.PlanTarget{"good": {Apply: "a", Digest: "0123456789abcdef"}, "unknown": {Apply: "a", Problem: "x"},
		"long": {Apply: "a", Problem: odd}, "odd": {Apply: "a", Problem: odd, Channel: "https://c", Version: "v1.2.3"}})
	for name, target := range found {
		p := marker.Plan{Name: name, Digest: target.Digest, Proof: marker.ProofKubelet, Effect: marker.EffectNone, Drain: marker.DrainAll, Apply: target.Apply, Deadline: "1m"}
		written := map[string]string{}
		for k, v := range marker.Encode(marker.Marks{Plan: &p}) {
			written[string(k)] = v
		}
		_, problems := marker.DecodePlan(written)
		assert.Equal(t, len(problems) == 0, target.Digest != "", "%s: %v", name, problems)
	}
}

// The name of a pod is one that the API server takes, whatever the node is called (system-upgrade-controller 273, 110: a
// host name with capitals, and a long one).
func TestPlanPodName(t *testing.T) {
	longest := strings.Repeat("p", 40)
	assert.Assert(t, marker.ValidPlanName(longest))
	for _, uid := range []string{"1f8e0b5c-3f0e-4a3e-8a57-3c2f7a6a0a11", "UID.With.Capitals/"} {
		name := PlanPodName(longest, uid, "417-mwt8ocni")
		assert.DeepEqual(t, validation.IsDNS1123Label(name), []string(nil))
		assert.Assert(t, name != PlanPodName(longest, uid, "418-mwt8ocni"))
	}
}

// Drains leave a pod of a plan: it runs for the attempt that drains the node.
func TestPodsOfPlansAreOwn(t *testing.T) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: PlansNamespace, Labels: map[string]string{PlanLabel: "files"}}}
	assert.Assert(t, OwnPod(namespace, p))
	p.Namespace = "elsewhere"
	assert.Assert(t, !OwnPod(namespace, p))
	assert.Assert(t, !OwnPod(namespace, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: PlansNamespace}}))
}
