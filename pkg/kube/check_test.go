package kube

import (
	"fmt"
	"testing"

	"gotest.tools/v3/assert"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

func ownedBy(kind, name string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: "default"}
	if kind != "" {
		m.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: name, Controller: new(true)}}
	}
	return m
}

func podOf(name, kind, owner string, ready bool) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: ownedBy(kind, owner)}
	p.Name, p.Labels = name, map[string]string{"app": name}
	p.Spec.NodeName, p.Status.Phase = "a", corev1.PodRunning
	if ready {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	return p
}

func deploymentOf(name string, wanted, ready int32) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: ownedBy("", "")}
	d.Name, d.Spec.Replicas, d.Status.ReadyReplicas = name, &wanted, ready
	return d
}

func replicaSetOf(name, owner string, wanted, ready int32) *appsv1.ReplicaSet {
	r := &appsv1.ReplicaSet{ObjectMeta: ownedBy("", "")}
	if owner != "" {
		r.ObjectMeta = ownedBy("Deployment", owner)
	}
	r.Name, r.Spec.Replicas, r.Status.ReadyReplicas = name, &wanted, ready
	return r
}

func statefulSetOf(name string, wanted, ready int32) *appsv1.StatefulSet {
	s := &appsv1.StatefulSet{ObjectMeta: ownedBy("", "")}
	s.Name, s.Spec.Replicas, s.Status.ReadyReplicas = name, &wanted, ready
	return s
}

// A baseline has the workloads that have Ready pods on the node, and nothing that can't be missed.
func TestBaseline(t *testing.T) {
	going := podOf("going", "StatefulSet", "going", true)
	going.DeletionTimestamp, going.Finalizers = new(metav1.Now()), []string{"x/y"}
	proxy := podOf("proxy", "ReplicaSet", "web-x", true)
	proxy.Namespace, proxy.Labels = "bottlerocket", map[string]string{"app.kubernetes.io/name": "bottlerocket-update-operator"}
	objects := []runtime.Object{
		proxy, podOf("web-1", "ReplicaSet", "web-x", true), podOf("web-2", "ReplicaSet", "web-x", true), replicaSetOf("web-x", "web", 2, 2), deploymentOf("web", 3, 2),
		podOf("old-1", "ReplicaSet", "old", true), replicaSetOf("old", "", 1, 1),
		podOf("db-0", "StatefulSet", "db", true), statefulSetOf("db", 3, 3),
		podOf("ill-0", "StatefulSet", "ill", false), statefulSetOf("ill", 1, 0),
		going, statefulSetOf("going", 1, 1),
		podOf("job", "Job", "job", true), podOf("daemon", "DaemonSet", "daemon", true), podOf("bare", "", "", true),
		podOf("orphan", "ReplicaSet", "gone", true),
	}
	l, err := (&Cluster{c: ClusterConfig{Client: fake.NewClientset(objects...), Namespace: "bottlerocket"}}).Check(t.Context(), "a", plan.LiveCheck{For: fleet.CheckBaseline})
	assert.NilError(t, err)
	assert.DeepEqual(t, l.Workloads, map[string]int{"Deployment/default/web": 2, "ReplicaSet/default/old": 1, "StatefulSet/default/db": 3})
}

// However many workloads a node has, the note of them is small.
func TestBaselineIsBounded(t *testing.T) {
	var objects []runtime.Object
	for i := range 50 {
		name := fmt.Sprintf("s-%02d", i)
		objects = append(objects, podOf(name+"-0", "StatefulSet", name, true), statefulSetOf(name, 1, 1))
	}
	found, err := baseline(t.Context(), fake.NewClientset(objects...), "bottlerocket", "a")
	assert.NilError(t, err)
	assert.Equal(t, len(found), baselineSize)
}

// Only what is worse than before is missed.
func TestWorkloadsThatAreMissed(t *testing.T) {
	before := map[string]int{"Deployment/default/web": 2}
	for _, tc := range []struct {
		name   string
		now    []runtime.Object
		before map[string]int
		want   string
	}{
		{"as before", []runtime.Object{deploymentOf("web", 3, 2)}, before, ""},
		{"less than before", []runtime.Object{deploymentOf("web", 3, 1)}, before, "Deployment default/web has 1 Ready pods, and had 2 before the drain"},
		{"scaled down meanwhile", []runtime.Object{deploymentOf("web", 1, 1)}, before, ""},
		{"scaled to none", []runtime.Object{deploymentOf("web", 0, 0)}, before, ""},
		{"deleted meanwhile", nil, before, ""},
		{"a StatefulSet", []runtime.Object{statefulSetOf("db", 3, 2)}, map[string]int{"StatefulSet/default/db": 3}, "StatefulSet default/db has 2 Ready pods, and had 3 before the drain"},
		{"a ReplicaSet", []runtime.Object{replicaSetOf("r", "", 1, 0)}, map[string]int{"ReplicaSet/default/r": 1}, "ReplicaSet default/r has 0 Ready pods, and had 1 before the drain"},
		{"of a newer build", nil, map[string]int{"Rollout/default/x": 3, "": 1, "Deployment": 1}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k := &Cluster{c: ClusterConfig{Client: fake.NewClientset(tc.now...)}}
			l, err := k.Check(t.Context(), "a", plan.LiveCheck{For: fleet.CheckWorkloads, Workloads: tc.before})
			assert.NilError(t, err)
			assert.Equal(t, l.Problem, tc.want)
		})
	}
}

// Pods that a node needs must be there, and all of them Ready.
func TestPodsOnTheNode(t *testing.T) {
	second := podOf("cni-2", "DaemonSet", "cni", false)
	second.Labels["app"] = "cni"
	for _, tc := range []struct {
		name      string
		pods      []runtime.Object
		namespace string
		want      string
	}{
		{"Ready", []runtime.Object{podOf("cni", "DaemonSet", "cni", true)}, "default", ""},
		{"in any namespace", []runtime.Object{podOf("cni", "DaemonSet", "cni", true)}, "", ""},
		{"not Ready", []runtime.Object{podOf("cni", "DaemonSet", "cni", false)}, "default", "pod default/cni is not Ready, and app=cni in default must be"},
		{"one of two", []runtime.Object{podOf("cni", "DaemonSet", "cni", true), second}, "", "pod default/cni-2 is not Ready, and app=cni must be"},
		{"in another namespace", []runtime.Object{podOf("cni", "DaemonSet", "cni", true)}, "kube-system", "no pod of app=cni in kube-system is there, and one must be Ready"},
		{"none", nil, "", "no pod of app=cni is there, and one must be Ready"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k := &Cluster{c: ClusterConfig{Client: fake.NewClientset(tc.pods...)}}
			l, err := k.Check(t.Context(), "a", plan.LiveCheck{For: fleet.CheckPods, Pods: []policy.PodSelector{
				{Namespace: tc.namespace, Selector: policy.Selector{{Key: "app", Operator: policy.In, Values: []string{"cni"}}}}}})
			assert.NilError(t, err)
			assert.Equal(t, l.Problem, tc.want)
		})
	}
}
