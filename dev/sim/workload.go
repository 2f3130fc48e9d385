package sim

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// app is a user's workload: replicas behind a budget or without one.
type app struct {
	name     string
	replicas int
	// budget: at least replicas-1 must be healthy. frozen: none may go at all. stubborn: that doesn't end with the
	// other troubles.
	budget, frozen, stubborn bool
	// volumes: each of its pods has a volume of its own. broken: its new pods don't become Ready.
	volumes, broken bool
}

const (
	appsNamespace = "default"
	appKey        = "app"
	daemonApp     = "node-daemon"
)

// deploy makes the workloads and the operator's agents' DaemonSet.
func (k *cluster) deploy(apps []*app) {
	k.apps = apps
	for _, ds := range []struct{ namespace, name string }{{namespace, agentPart}, {appsNamespace, daemonApp}} {
		must(k.client.AppsV1().DaemonSets(ds.namespace).Create(background,
			&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: ds.namespace, Name: ds.name}}, metav1.CreateOptions{}))
	}
	for _, a := range apps {
		replicas := int32(a.replicas)
		must(k.client.AppsV1().ReplicaSets(appsNamespace).Create(background, &appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: appsNamespace, Name: a.name}, Spec: appsv1.ReplicaSetSpec{Replicas: &replicas},
		}, metav1.CreateOptions{}))
		if a.budget {
			least := intstr.FromInt32(int32(a.replicas - 1))
			must(k.client.PolicyV1().PodDisruptionBudgets(appsNamespace).Create(background, &policyv1.PodDisruptionBudget{
				ObjectMeta: metav1.ObjectMeta{Namespace: appsNamespace, Name: a.name},
				Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &least, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{appKey: a.name}}},
			}, metav1.CreateOptions{}))
		}
	}
	k.changed()
}

// changed lets the workloads and their budgets be looked at soon.
func (k *cluster) changed() {
	w := k.w
	if !k.reconciling {
		k.reconciling = true
		w.after(w.between(20*time.Millisecond, 500*time.Millisecond), func() { k.reconciling = false; k.reconcile() })
	}
	if !k.budgeting {
		k.budgeting = true
		w.after(w.between(20*time.Millisecond, 300*time.Millisecond), func() { k.budgeting = false; k.budgets() })
	}
}

// reconcile says how many pods of each app are Ready, makes those that are missing and binds them.
func (k *cluster) reconcile() {
	missing := false
	pods := k.w.server.Pods(appsNamespace)
	for _, a := range k.apps {
		have, ready := 0, int32(0)
		for _, p := range pods {
			if p.Labels[appKey] == a.name && p.DeletionTimestamp == nil {
				have++
				if podReady(p) {
					ready++
				}
			}
		}
		k.counts(a, ready)
		for ; have < a.replicas; have++ {
			node := k.schedule()
			if node == "" {
				missing = true
				break
			}
			k.names++
			k.place(fmt.Sprintf("%s-%d", a.name, k.names), a.name, node)
		}
	}
	if missing && !k.reconciling {
		k.reconciling = true
		k.w.after(5*time.Second, func() { k.reconciling = false; k.reconcile() })
	}
}

func (k *cluster) counts(a *app, ready int32) {
	rs := k.w.server.ReplicaSet(appsNamespace, a.name)
	if rs.Status.ReadyReplicas == ready {
		return
	}
	rs = rs.DeepCopy()
	rs.Status.ReadyReplicas, rs.Status.Replicas = ready, max(ready, rs.Status.Replicas)
	must(k.client.AppsV1().ReplicaSets(appsNamespace).UpdateStatus(background, rs, metav1.UpdateOptions{}))
}

func podReady(p *corev1.Pod) bool {
	return len(p.Status.Conditions) > 0 && p.Status.Conditions[0].Type == corev1.PodReady && p.Status.Conditions[0].Status == corev1.ConditionTrue
}

// schedule picks a node that takes pods, or took them by a scheduler's old view.
func (k *cluster) schedule() string {
	w := k.w
	var fit []string
	for _, n := range w.server.Nodes() {
		if n.Spec.Unschedulable && !(w.now.Before(k.late) && !w.calm) || !isReady(n) || keepsAway(n) {
			continue
		}
		fit = append(fit, n.Name)
	}
	if len(fit) == 0 {
		return ""
	}
	return fit[w.rng.IntN(len(fit))]
}

func isReady(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func (k *cluster) place(name, app, node string) {
	owner := true
	if n := k.w.server.Node(node); n != nil && n.Spec.Unschedulable {
		k.w.strike(LateBinding)
		k.w.note("scheduler", "binds %s to %s, which it has not seen cordoned", name, node)
	}
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: appsNamespace, Name: name, Labels: map[string]string{appKey: app},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app, UID: "rs", Controller: &owner}}},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	if a := k.app(app); a.volumes {
		k.claim(p)
	}
	p = must(k.client.CoreV1().Pods(appsNamespace).Create(background, p, metav1.CreateOptions{}))
	k.attach(p)
	uid := string(p.UID)
	k.w.after(k.w.between(500*time.Millisecond, 5*time.Second), func() { k.podReady(appsNamespace, name, uid, true) })
	k.changed()
}

// podReady is a kubelet's word on a pod; a kubelet that is down says nothing.
func (k *cluster) podReady(ns, name, uid string, ready bool) {
	p := k.w.server.Pod(ns, name)
	if p == nil || string(p.UID) != uid {
		return
	}
	if m := k.machineOf(p.Spec.NodeName); m == nil || !m.up {
		return
	}
	if a := k.app(p.Labels[appKey]); a != nil && a.broken && !podReady(p) {
		ready = false
	}
	k.setPodReady(p, ready)
}

// app is that of a name; nil: it is none of the workloads.
func (k *cluster) app(name string) *app {
	for _, a := range k.apps {
		if a.name == name {
			return a
		}
	}
	return nil
}

// breaks lets no new pod of an app become Ready, until it is mended.
func (k *cluster) breaks(a *app) { a.broken = true }

func (k *cluster) mends(a *app) {
	a.broken = false
	for _, p := range k.w.server.Pods(appsNamespace) {
		if p.Labels[appKey] == a.name && p.DeletionTimestamp == nil && !podReady(p) {
			k.podReady(p.Namespace, p.Name, string(p.UID), true)
		}
	}
}

func (k *cluster) setPodReady(p *corev1.Pod, ready bool) {
	p = p.DeepCopy()
	p.Status.Phase = corev1.PodRunning
	s := corev1.ConditionFalse
	if ready {
		s = corev1.ConditionTrue
	}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: s}}
	must(k.client.CoreV1().Pods(p.Namespace).UpdateStatus(background, p, metav1.UpdateOptions{}))
	k.changed()
}

func (k *cluster) machineOf(node string) *machine {
	for _, m := range k.w.machines {
		if m.nodeName == node {
			return m
		}
	}
	return nil
}

// podsUnready is the node lifecycle controller giving up on a node's pods.
func (k *cluster) podsUnready(node string) {
	for _, p := range k.w.server.PodsOn(node) {
		if p.Status.Phase == corev1.PodRunning {
			k.setPodReady(p, false)
		}
	}
}

// podsGivenUp is the eviction by taint of what runs on a node that has been silent for long.
func (k *cluster) podsGivenUp(node string) {
	for _, p := range k.w.server.PodsOn(node) {
		if p.Labels[partLabel] == runnerPart && p.Namespace == namespace {
			k.remove(p)
			continue
		}
		if p.Labels[appKey] != "" && p.Labels[appKey] != daemonApp && p.DeletionTimestamp == nil {
			_ = k.client.CoreV1().Pods(p.Namespace).Delete(background, p.Name, metav1.DeleteOptions{})
		}
	}
}

// podsStart is a kubelet that finds its pods after a boot.
func (k *cluster) podsStart(node string) {
	for _, p := range k.w.server.PodsOn(node) {
		switch {
		case p.Namespace == plansNamespace:
		case p.DeletionTimestamp != nil:
			k.end(p)
		case p.Namespace == appsNamespace && p.Status.Phase != corev1.PodSucceeded:
			ns, name, uid := p.Namespace, p.Name, string(p.UID)
			takes := k.w.between(500*time.Millisecond, 5*time.Second)
			if podReady(p) {
				k.setPodReady(p, false)
				if k.w.chance(4) {
					takes = k.w.between(5*time.Second, 90*time.Second)
				}
			}
			k.w.after(takes, func() { k.podReady(ns, name, uid, true) })
		}
	}
}

// terminating is a kubelet that is told to end a pod.
func (k *cluster) terminating(p *corev1.Pod) {
	k.changed()
	k.w.after(k.w.between(200*time.Millisecond, 20*time.Second), func() { k.end(p) })
}

func (k *cluster) end(p *corev1.Pod) {
	now := k.w.server.Pod(p.Namespace, p.Name)
	m := k.machineOf(p.Spec.NodeName)
	if now == nil || now.UID != p.UID || m != nil && !m.up || k.stuck[string(p.UID)] {
		return
	}
	k.remove(now)
}

func (k *cluster) remove(p *corev1.Pod) {
	zero := int64(0)
	_ = k.client.CoreV1().Pods(p.Namespace).Delete(background, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &zero, Preconditions: metav1.NewUIDPreconditions(string(p.UID))})
	k.changed()
}

// budgets is the disruption controller.
func (k *cluster) budgets() {
	pods := k.w.server.Pods(appsNamespace)
	for _, b := range k.w.server.PodDisruptionBudgets(appsNamespace) {
		a := k.app(b.Name)
		healthy := int32(0)
		total := int32(0)
		for _, p := range pods {
			if p.Labels[appKey] != b.Name || p.DeletionTimestamp != nil {
				continue
			}
			total++
			if podReady(p) {
				healthy++
			}
		}
		want := int32(0)
		if a != nil {
			want = int32(a.replicas - 1)
			if a.frozen {
				want = int32(a.replicas)
			}
		}
		s := policyv1.PodDisruptionBudgetStatus{ObservedGeneration: b.Generation, CurrentHealthy: healthy, DesiredHealthy: want,
			ExpectedPods: total, DisruptionsAllowed: max(0, healthy-want)}
		if b.Status.CurrentHealthy == healthy && b.Status.DesiredHealthy == want && b.Status.ExpectedPods == total &&
			b.Status.DisruptionsAllowed == s.DisruptionsAllowed && b.Status.ObservedGeneration == b.Generation && len(b.Status.DisruptedPods) == 0 {
			continue
		}
		b = b.DeepCopy()
		b.Status = s
		must(k.client.PolicyV1().PodDisruptionBudgets(appsNamespace).UpdateStatus(background, b, metav1.UpdateOptions{}))
	}
}

// daemons makes the pods that every node has: the operator's agent, a user's DaemonSet, a static pod
// and one that has ended.
func (k *cluster) daemons(m *machine) {
	owner := true
	k.names++
	daemon := must(k.client.CoreV1().Pods(appsNamespace).Create(background, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: appsNamespace, Name: fmt.Sprintf("%s-%d", daemonApp, k.names), Labels: map[string]string{appKey: daemonApp},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: daemonApp, UID: "ds", Controller: &owner}}},
		Spec: corev1.PodSpec{NodeName: m.nodeName, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}, metav1.CreateOptions{}))
	k.w.after(k.w.between(500*time.Millisecond, 5*time.Second), func() { k.podReady(appsNamespace, daemon.Name, string(daemon.UID), true) })
	must(k.client.CoreV1().Pods(appsNamespace).Create(background, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: appsNamespace, Name: fmt.Sprintf("static-%d", k.names), Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "x"}},
		Spec:       corev1.PodSpec{NodeName: m.nodeName, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}, metav1.CreateOptions{}))
	done := must(k.client.CoreV1().Pods(appsNamespace).Create(background, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: appsNamespace, Name: fmt.Sprintf("done-%d", k.names)},
		Spec:       corev1.PodSpec{NodeName: m.nodeName, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}, metav1.CreateOptions{}))
	done.Status.Phase = corev1.PodSucceeded
	must(k.client.CoreV1().Pods(appsNamespace).UpdateStatus(background, done, metav1.UpdateOptions{}))
	m.agent.podScheduled()
}

// ownPod makes a pod of the operator's Deployments.
func (k *cluster) ownPod(name, part, node string) {
	owner := true
	must(k.client.CoreV1().Pods(namespace).Create(background, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{appLabel: appName, partLabel: part},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: part, UID: "own", Controller: &owner}}},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}, metav1.CreateOptions{}))
}

// evictable reports whether a drain has to wait for the pod.
func evictable(p *corev1.Pod) bool {
	if p.Namespace == namespace || p.Namespace == plansNamespace || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return false
	}
	_, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]
	return !mirror && p.Labels[appKey] != daemonApp
}
