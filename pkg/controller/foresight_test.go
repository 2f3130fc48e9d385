package controller_test

import (
	"bufio"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/controller"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// budget makes a PodDisruptionBudget for the pods of this name. Nothing computes its status here, so it allows no
// eviction until it is deleted.
func (f *testFleet) budget(name string) {
	f.t.Helper()
	_, err := f.client.PolicyV1().PodDisruptionBudgets("default").Create(context.Background(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(0)),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}}}, metav1.CreateOptions{})
	assert.NilError(f.t, err)
}

func (f *testFleet) dropBudget(name string) {
	f.t.Helper()
	assert.NilError(f.t, f.client.PolicyV1().PodDisruptionBudgets("default").Delete(context.Background(), name, metav1.DeleteOptions{}))
}

func (m *machine) waitsFor(r plan.Reason, parts ...string) func() bool {
	return func() bool {
		w := m.marks().Waiting
		return w != nil && w.Reason == string(r) && !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(w.Message, part) })
	}
}

// everCordoned tells, from outside, which nodes were cordoned since.
func (f *testFleet) everCordoned() func(node string) bool {
	f.t.Helper()
	list, err := f.client.CoreV1().Nodes().List(f.t.Context(), metav1.ListOptions{})
	assert.NilError(f.t, err)
	return func(node string) bool {
		ctx, stop := context.WithTimeout(context.Background(), 5*time.Second)
		defer stop()
		w, err := f.client.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion, FieldSelector: "metadata.name=" + node})
		assert.NilError(f.t, err)
		defer w.Stop()
		last := f.machines[node].node().ResourceVersion
		for e := range w.ResultChan() {
			n, ok := e.Object.(*corev1.Node)
			if ok && n.Spec.Unschedulable {
				return true
			}
			if ok && n.ResourceVersion == last {
				return false
			}
		}
		return false
	}
}

// lists counts the controller's lists of pods of single nodes and of PodDisruptionBudgets.
func (f *testFleet) lists() int {
	f.t.Helper()
	file := f.audit()
	defer file.Close()
	count := 0
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct{ Verb, RequestURI, Stage string }
		if json.Unmarshal(lines.Bytes(), &e) == nil && e.Verb == "list" &&
			(strings.Contains(e.RequestURI, "poddisruptionbudgets") || strings.Contains(e.RequestURI, "spec.nodeName")) {
			count++
		}
	}
	assert.NilError(f.t, lines.Err())
	return count
}

// A node whose pods may not go isn't cordoned: it says which budget keeps which pod, the others go first, and it goes
// when it can (S9, L1, L3).
func TestNodeThatCanNotBeDrained(t *testing.T) {
	t.Run("kured_137", blockedNodeStopsNoOther)
}

func blockedNodeStopsNoOther(t *testing.T) {
	f := newFleet(t, "a", "b", "c")
	a := f.machines["a"]
	pod := f.pod("a", "web")
	f.budget("web")
	cordoned := f.everCordoned()
	f.control(nil)
	for _, m := range f.machines {
		f.until(m.name+" is managed", m.updatedTo(v1))
	}
	f.release(v2)
	f.until("b is updated", f.machines["b"].updatedTo(v2))
	f.until("c is updated", f.machines["c"].updatedTo(v2))
	f.until("a says what blocks it", a.waitsFor(plan.ReasonBudgetBlocks, "staged; PodDisruptionBudget default/web would not let pod default/web go"))
	f.until("an Event is written", func() bool {
		events, err := f.client.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "reason=BudgetBlocks,involvedObject.name=a"})
		return err == nil && len(events.Items) == 1
	})
	assert.Assert(t, !cordoned("a"), "it was cordoned although it can't be drained")
	stands, err := f.client.CoreV1().Pods("default").Get(t.Context(), "web", metav1.GetOptions{})
	assert.NilError(t, err)
	assert.Equal(t, stands.UID, pod.UID)

	// A node that is blocked costs no more than a look now and then, and no write (L4).
	lists, writes := f.lists(), f.writes("")
	passBy(t, 5*time.Second)
	assert.Assert(t, f.lists()-lists <= 4, "%d lists in 5 s", f.lists()-lists)
	assert.Equal(t, f.writes("")-writes, 0)
	events, err := f.client.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "reason=BudgetBlocks,involvedObject.name=a"})
	assert.NilError(t, err)
	assert.Assert(t, len(events.Items) == 1 && events.Items[0].Count <= 1, "one Event is written, however often it is looked at")

	f.dropBudget("web")
	f.until("a is updated", a.updatedTo(v2))
	assert.Equal(t, a.rebooted(), 1)
}

// A drain that gets stuck after its cordon takes its place for a bounded time alone: the attempt is abandoned with the
// reason, the others go on, and never two are out at once.
func TestStuckDrain(t *testing.T) {
	for name, stuck := range map[string]func(f *testFleet){
		// A budget that can never allow it.
		"brupop_594": func(f *testFleet) { f.pod("a", "web"); f.budget("web") },
		"a pod that never ends": func(f *testFleet) {
			p := f.pod("a", "web")
			p.Finalizers = []string{"example.com/stuck"}
			_, err := f.client.CoreV1().Pods("default").Update(context.Background(), p, metav1.UpdateOptions{})
			assert.NilError(f.t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, "a", "b", "c")
			a := f.machines["a"]
			stuck(f)
			over := f.watchHands(1)
			f.control(func(o *controller.Options) {
				o.Policy.Eviction.Predict, o.Policy.Drain = false, 3*time.Second
				o.Policy.RetryBase, o.Policy.RetryMax = time.Hour, time.Hour
			})
			for _, m := range f.machines {
				f.until(m.name+" is managed", m.updatedTo(v1))
			}
			f.release(v2)
			f.until("the attempt on a is abandoned", func() bool {
				m := a.marks()
				return m.Failure != nil && m.Failure.Reason == string(plan.ReasonDrainDeadline) && strings.Contains(m.Failure.Message, "pod default/web")
			})
			f.until("b is updated", f.machines["b"].updatedTo(v2))
			f.until("c is updated", f.machines["c"].updatedTo(v2))
			f.until("a is in service", func() bool { return !a.node().Spec.Unschedulable })
			assert.Equal(t, a.rebooted(), 0)
			assert.Equal(t, over(), 0, "more than one was out at once")
		})
	}
}

// Where the policy says force, what is left at the deadline is deleted, and the node reboots only once it is gone (S2).
func TestForcedDrain(t *testing.T) {
	f := newFleet(t, "a", "b")
	a := f.machines["a"]
	f.pod("a", "web")
	f.budget("web")
	f.control(func(o *controller.Options) { o.Policy.Eviction.Force, o.Policy.Drain = true, 3*time.Second })
	f.until("a is managed", a.updatedTo(v1))
	f.release(v2)
	f.until("a is held up", a.waitsFor(plan.ReasonEvictionBlocked, "default/web"))
	pods := f.client.CoreV1().Pods("default")
	f.until("web is deleted", func() bool {
		p, err := pods.Get(t.Context(), "web", metav1.GetOptions{})
		assert.NilError(t, err, "it is gone, and no kubelet said so")
		return p.DeletionTimestamp != nil
	})
	passBy(t, time.Second)
	assert.Equal(t, a.rebooted(), 0)
	// The kubelet's word.
	assert.NilError(t, pods.Delete(t.Context(), "web", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}))
	f.until("a is updated", a.updatedTo(v2))
	assert.Equal(t, a.rebooted(), 1)
}

// A node on which a pod runs that the policy waits for stays in service until the pod has ended by itself.
func TestPodIsWaitedFor(t *testing.T) {
	f := newFleet(t, "a", "b")
	a := f.machines["a"]
	job := f.pod("a", "job")
	cordoned := f.everCordoned()
	f.control(func(o *controller.Options) {
		o.Policy.Eviction.WaitFor = []policy.PodSelector{{Selector: policy.Selector{{Key: "app", Operator: policy.In, Values: []string{"job"}}}}}
	})
	f.until("a is managed", a.updatedTo(v1))
	f.release(v2)
	f.until("b is updated", f.machines["b"].updatedTo(v2))
	f.until("a says what it waits for", a.waitsFor(plan.ReasonPodEndAwaited, "pod default/job runs"))
	assert.Assert(t, !cordoned("a"), "it was cordoned while the job ran")
	job.Status.Phase, job.Status.Conditions = corev1.PodSucceeded, nil
	_, err := f.client.CoreV1().Pods("default").UpdateStatus(t.Context(), job, metav1.UpdateOptions{})
	assert.NilError(t, err)
	f.until("a is updated", a.updatedTo(v2))
	ended, err := f.client.CoreV1().Pods("default").Get(t.Context(), "job", metav1.GetOptions{})
	assert.NilError(t, err)
	assert.Equal(t, ended.UID, job.UID, "what the job left is not removed")
}

// When a reboot is asked for, the node is cordoned and all that a drain takes is gone, whatever it was (S2).
func TestDrainedBeforeReboot(t *testing.T) {
	t.Run("brupop_74", func(t *testing.T) {
		f := newFleet(t, "a", "b")
		a := f.machines["a"]
		for _, name := range []string{"one", "two", "three"} {
			f.pod("a", name)
		}
		slow := f.pod("a", "slow")
		slow.Finalizers = []string{"example.com/slow"}
		_, err := f.client.CoreV1().Pods("default").Update(t.Context(), slow, metav1.UpdateOptions{})
		assert.NilError(t, err)
		list, err := f.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		assert.NilError(t, err)
		w, err := f.client.CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion, FieldSelector: "metadata.name=a"})
		assert.NilError(t, err)
		defer w.Stop()
		asked := make(chan *corev1.Node, 1)
		go func() {
			for e := range w.ResultChan() {
				if n, ok := e.Object.(*corev1.Node); ok && n.Annotations["bottlerocket.aws/action-wanted"] == "reboot-update" {
					asked <- n
					return
				}
			}
		}()
		f.control(nil)
		f.until("a is managed", a.updatedTo(v1))
		f.release(v2)
		f.until("only the slow one is left", func() bool {
			pods, err := f.client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
			return err == nil && len(pods.Items) == 1 && pods.Items[0].DeletionTimestamp != nil
		})
		passBy(t, time.Second)
		select {
		case <-asked:
			t.Fatal("a reboot was asked for while a pod was on its way out")
		default:
		}
		f.until("the slow one ends", func() bool {
			_, err := f.client.CoreV1().Pods("default").Patch(t.Context(), "slow", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			return err == nil
		})
		n := <-asked
		assert.Assert(t, n.Spec.Unschedulable)
		pods, err := f.client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
		assert.NilError(t, err)
		assert.Equal(t, len(pods.Items), 0)
		f.until("a is updated", a.updatedTo(v2))
	})
}
