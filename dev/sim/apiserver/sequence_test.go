package apiserver_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// generate makes a sequence from few names, so that requests meet. Every fourth is about nodes and what
// else is written with a version, every fourth about evictions, every fourth about workloads and volumes,
// every fourth about all.
func generate(seed uint64) []request {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 1)), podNames: []string{"p0", "p0", "p1", "p2"}, nodeNames: []string{"n0", "n0", "n1"}}
	nodes := []func() request{
		g.nodePatch, g.nodePatch, g.nodePatch, g.nodePatch, g.nodePatch, g.nodeUpdate, g.nodeUpdate, g.nodeUpdate,
		g.nodeCreate, g.nodeCopy, g.nodeDelete, g.nodeRead, g.configMap, g.configMap, g.lease, g.lease,
	}
	evictions := []func() request{
		g.podEvict, g.podEvict, g.podEvict, g.podEvict, g.podEvict, g.podCreate, g.podCreate, g.podStatus, g.podStatus, g.podStatus,
		g.podUpdate, g.podDelete, g.podRead, g.podBind,
		g.budgetStatus, g.budgetStatus, g.budgetStatus, g.budgetStatus, g.budgetUpdate, g.budgetCreate, g.budgetDelete, g.budgetRead,
	}
	volumes := []func() request{
		g.replicaSetCreate, g.replicaSetUpdate, g.replicaSetUpdate, g.replicaSetStatus, g.replicaSetStatus, g.replicaSetDelete, g.replicaSetRead, g.replicaSetRead,
		g.attachmentCreate, g.attachmentCreate, g.attachmentStatus, g.attachmentStatus, g.attachmentStatus, g.attachmentDelete, g.attachmentDelete, g.attachmentRead, g.attachmentRead,
		g.claimCreate, g.claimCreate, g.claimDelete, g.claimRead, g.claimRead,
	}
	var kinds []func() request
	var out []request
	switch seed % 4 {
	case 0:
		g.nodeNames = []string{"n0"}
		kinds, out = nodes, []request{g.nodeCreate(), g.configMapCreate(), g.leaseCreate()}
	case 1:
		g.podNames = []string{"p0", "p0", "p1"}
		kinds, out = evictions, []request{g.podCreate(), g.podCreate(), g.podStatus(), g.podStatus(), g.budgetCreate(), g.budgetStatus()}
	case 2:
		kinds, out = slices.Concat(nodes, evictions, volumes), []request{g.nodeCreate(), g.podCreate(), g.podCreate(), g.podStatus(), g.budgetCreate(), g.budgetStatus()}
	case 3:
		kinds, out = volumes, []request{g.replicaSetCreate(), g.attachmentCreate(), g.claimCreate()}
	}
	for len(out) < requests {
		if seed%4 == 1 && g.IntN(15) == 0 {
			out = append(out, g.namesake()...)
		}
		out = append(out, kinds[g.IntN(len(kinds))]())
	}
	return out
}

type generator struct {
	*rand.Rand
	nodeNames, podNames []string
}

func pick[T any](g *generator, of ...T) T { return of[g.IntN(len(of))] }

// which one of an object's states that were seen.
type which string

const (
	none   which = "none"
	newest which = "newest"
	older  which = "older"
)

func (g *generator) which() which { return pick(g, none, newest, newest, older) }

func (g *generator) nodeName() string { return pick(g, g.nodeNames...) }
func (g *generator) podName() string  { return pick(g, g.podNames...) }

func (g *generator) nodeCreate() request {
	name, role := g.nodeName(), pick(g, "a", "b")
	return request{fmt.Sprintf("create node %s role=%s", name, role), func(s *side) string {
		n, err := s.client.CoreV1().Nodes().Create(s.ctx, s.newNode(name, role), metav1.CreateOptions{})
		return s.answer(n, err)
	}}
}

// nodeCopy creates a node from one that was read, with the fields that the server gave it.
func (g *generator) nodeCopy() request {
	name, from := g.nodeName(), g.which()
	how, loosen := g.loose()
	return request{fmt.Sprintf("create node %s from=%s %s", name, from, how), func(s *side) string {
		old := s.old("Node", s.node(name), from)
		if old == nil {
			return "never seen"
		}
		n := old.(*corev1.Node).DeepCopy()
		loosen(n)
		n, err := s.client.CoreV1().Nodes().Create(s.ctx, n, metav1.CreateOptions{})
		return s.answer(n, err)
	}}
}

func (g *generator) nodeDelete() request {
	name, uid := g.nodeName(), g.which()
	return request{fmt.Sprintf("delete node %s uid=%s", name, uid), func(s *side) string {
		var o metav1.DeleteOptions
		if old := s.old("Node", s.node(name), uid); old != nil {
			o.Preconditions = metav1.NewUIDPreconditions(string(old.GetUID()))
		}
		return s.answer(nil, s.client.CoreV1().Nodes().Delete(s.ctx, s.node(name), o))
	}}
}

func (g *generator) nodePatch() request {
	name, version, uid := g.nodeName(), g.which(), pick(g, none, none, none, g.which())
	sub := pick(g, "", "", "", "status")
	meta := pick(g,
		`"annotations":{"k":"1"}`, `"annotations":{"k":"2"}`, `"annotations":{"k":null}`, `"annotations":{"k":"1","l":"2"}`,
		`"annotations":null`, `"annotations":{}`, `"labels":{"role":"a"}`, `"labels":{"role":"b"}`, `"labels":{"role":null}`,
		`"annotations":{"k":1}`, `"annotations":{"no good":"x"}`, `"labels":{"role":"no good"}`, `"finalizers":["example.com/f"]`, `"finalizers":null`, `"name":"other"`,
		`"resourceVersion":"0"`, `"resourceVersion":"x"`, `"resourceVersion":null`, `"generation":7`, `"creationTimestamp":null`)
	rest := pick(g, ``, ``, ``,
		`,"spec":{"unschedulable":true}`, `,"spec":{"unschedulable":true}`, `,"spec":{"unschedulable":null}`, `,"spec":{"unschedulable":false}`, `,"spec":{"unschedulable":"x"}`,
		`,"spec":{"taints":[{"key":"t","effect":"NoSchedule"}]}`, `,"spec":{"taints":null}`, `,"spec":{"providerID":"p"}`, `,"spec":{"providerID":"q"}`,
		`,"status":{"phase":"Running"}`, `,"status":{"conditions":[{"type":"Ready","status":"True"}]}`, `,"spec":null`)
	return request{fmt.Sprintf("patch node %s %s {%s}%s version=%s uid=%s", name, sub, meta, rest, version, uid), func(s *side) string {
		m := meta
		if old := s.old("Node", s.node(name), version); old != nil && !strings.Contains(m, "resourceVersion") {
			m += fmt.Sprintf(`,"resourceVersion":%q`, old.GetResourceVersion())
		}
		if old := s.old("Node", s.node(name), uid); old != nil {
			m += fmt.Sprintf(`,"uid":%q`, old.GetUID())
		}
		var subs []string
		if sub != "" {
			subs = append(subs, sub)
		}
		n, err := s.client.CoreV1().Nodes().Patch(s.ctx, s.node(name), types.MergePatchType, []byte(`{"metadata":{`+m+`}`+rest+`}`), metav1.PatchOptions{}, subs...)
		return s.answer(n, err)
	}}
}

// loose takes the version, or the UID too, from an object that is sent.
func (g *generator) loose() (string, func(metav1.Object)) {
	switch g.IntN(5) {
	case 0:
		return "no version", func(o metav1.Object) { o.SetResourceVersion("") }
	case 1:
		return "no version, no uid", func(o metav1.Object) { o.SetResourceVersion(""); o.SetUID("") }
	case 2:
		return "no uid", func(o metav1.Object) { o.SetUID("") }
	}
	return "", func(metav1.Object) {}
}

func (g *generator) nodeUpdate() request {
	name, from := g.nodeName(), pick(g, newest, newest, older)
	value, unschedulable, ready, status := pick(g, "", "1", "2"), pick(g, true, false), pick(g, corev1.ConditionTrue, corev1.ConditionFalse), pick(g, true, false)
	same := g.IntN(4) == 0
	how, loosen := g.loose()
	return request{fmt.Sprintf("update node %s from=%s k=%s unschedulable=%t ready=%s status=%t same=%t %s", name, from, value, unschedulable, ready, status, same, how), func(s *side) string {
		old := s.old("Node", s.node(name), from)
		if old == nil {
			return "never seen"
		}
		n := old.(*corev1.Node).DeepCopy()
		loosen(n)
		if !same {
			n.Annotations = map[string]string{"k": value}
			n.Spec.Unschedulable = unschedulable
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
			n.Generation, n.CreationTimestamp = 9, metav1.Time{}
		}
		update := s.client.CoreV1().Nodes().Update
		if status {
			update = s.client.CoreV1().Nodes().UpdateStatus
		}
		n, err := update(s.ctx, n, metav1.UpdateOptions{})
		return s.answer(n, err)
	}}
}

func (g *generator) nodeRead() request {
	if name := g.nodeName(); g.IntN(2) == 0 {
		return request{"get node " + name, func(s *side) string {
			n, err := s.client.CoreV1().Nodes().Get(s.ctx, s.node(name), metav1.GetOptions{})
			return s.answer(n, err)
		}}
	}
	label, field := pick(g, "", ",role=a", ",role!=a", ",!role", ",role in (a,b)"), pick(g, "", "metadata.name=", "spec.unschedulable=true", "spec.other=x")
	return request{fmt.Sprintf("list nodes %s %s", label, field), func(s *side) string {
		o := metav1.ListOptions{LabelSelector: "seed=" + s.namespace + label, FieldSelector: field}
		if field == "metadata.name=" {
			o.FieldSelector += s.node("n0")
		}
		l, err := s.client.CoreV1().Nodes().List(s.ctx, o)
		return list(s, l.Items, err)
	}}
}

func (g *generator) podCreate() request {
	name, node, app := g.podName(), pick(g, "", "n0", "n0", "n1"), pick(g, "x", "x", "y")
	return request{fmt.Sprintf("create pod %s node=%s app=%s", name, node, app), func(s *side) string {
		p := newPod(name, "", app)
		if node != "" {
			p.Spec.NodeName = s.node(node)
		}
		p, err := s.pods().Create(s.ctx, p, metav1.CreateOptions{})
		return s.answer(p, err)
	}}
}

func (g *generator) podUpdate() request {
	name, from := g.podName(), pick(g, newest, newest, older)
	app, change := pick(g, "x", "y", "z"), pick(g, "", "", "image", "node", "status", "owner")
	how, loosen := g.loose()
	return request{fmt.Sprintf("update pod %s from=%s app=%s change=%s %s", name, from, app, change, how), func(s *side) string {
		old := s.old("Pod", name, from)
		if old == nil {
			return "never seen"
		}
		p := old.(*corev1.Pod).DeepCopy()
		loosen(p)
		p.Labels["app"] = app
		switch change {
		case "image":
			p.Spec.Containers[0].Image = "other"
		case "node":
			p.Spec.NodeName = "elsewhere"
		case "status":
			p.Status.Phase = corev1.PodFailed
		case "owner":
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "x", UID: "y"}}
		}
		p, err := s.pods().Update(s.ctx, p, metav1.UpdateOptions{})
		return s.answer(p, err)
	}}
}

func (g *generator) podStatus() request {
	name, from := g.podName(), pick(g, newest, newest, newest, older)
	phase := pick(g, corev1.PodRunning, corev1.PodRunning, corev1.PodRunning, corev1.PodRunning, corev1.PodRunning, corev1.PodRunning, corev1.PodPending, corev1.PodSucceeded, corev1.PodFailed)
	ready, touch := pick(g, corev1.ConditionTrue, corev1.ConditionTrue, corev1.ConditionFalse), g.IntN(4) == 0
	how, loosen := g.loose()
	if g.IntN(2) == 0 {
		// The answers to evictions are more telling than those to conflicts.
		from, touch = newest, false
	}
	return request{fmt.Sprintf("status of pod %s from=%s phase=%s ready=%s touch=%t %s", name, from, phase, ready, touch, how), func(s *side) string {
		old := s.old("Pod", name, from)
		if old == nil {
			return "never seen"
		}
		p := old.(*corev1.Pod).DeepCopy()
		loosen(p)
		p.Status.Phase = phase
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
		if touch {
			// What a status may not touch, and labels, which it may.
			p.Spec.NodeName, p.OwnerReferences, p.Labels["app"] = "elsewhere", []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "x", UID: "y"}}, "z"
		}
		p, err := s.pods().UpdateStatus(s.ctx, p, metav1.UpdateOptions{})
		return s.answer(p, err)
	}}
}

func (g *generator) options() (string, func(s *side, name string) *metav1.DeleteOptions) {
	uid, grace := g.which(), pick(g, -1, -1, 0, 5, 60)
	return fmt.Sprintf("grace=%d uid=%s", grace, uid), func(s *side, name string) *metav1.DeleteOptions {
		o := &metav1.DeleteOptions{}
		if old := s.old("Pod", name, uid); old != nil {
			o.Preconditions = metav1.NewUIDPreconditions(string(old.GetUID()))
		}
		if seconds := int64(grace); grace >= 0 {
			o.GracePeriodSeconds = &seconds
		}
		return o
	}
}

func (g *generator) podDelete() request {
	name := g.podName()
	how, options := g.options()
	return request{fmt.Sprintf("delete pod %s %s", name, how), func(s *side) string {
		return s.answer(nil, s.pods().Delete(s.ctx, name, *options(s, name)))
	}}
}

func (g *generator) podEvict() request {
	name := g.podName()
	how, options := g.options()
	return request{fmt.Sprintf("evict %s %s", name, how), func(s *side) string { return s.eviction(name, options(s, name)) }}
}

// namesake evicts by an old UID a pod that runs under a budget: the budget is charged for nothing.
func (g *generator) namesake() []request {
	allowed := int32(g.IntN(3))
	return []request{
		{"delete pod p0 for a namesake", func(s *side) string {
			now := int64(0)
			return s.answer(nil, s.pods().Delete(s.ctx, "p0", metav1.DeleteOptions{GracePeriodSeconds: &now}))
		}},
		{"create pod p0 as a namesake, running", func(s *side) string {
			p, err := s.pods().Create(s.ctx, newPod("p0", s.node("n0"), "x"), metav1.CreateOptions{})
			if err != nil {
				return s.answer(p, err)
			}
			p.Status.Phase = corev1.PodRunning
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			p, err = s.pods().UpdateStatus(s.ctx, p, metav1.UpdateOptions{})
			return s.answer(p, err)
		}},
		{fmt.Sprintf("status of budget b0 allowed=%d", allowed), func(s *side) string {
			b, err := s.budgets().Get(s.ctx, "b0", metav1.GetOptions{})
			if err != nil {
				return s.answer(b, err)
			}
			b.Status.DisruptionsAllowed, b.Status.ObservedGeneration = allowed, b.Generation
			b, err = s.budgets().UpdateStatus(s.ctx, b, metav1.UpdateOptions{})
			return s.answer(b, err)
		}},
		{"evict p0 by another UID", func(s *side) string {
			return s.eviction("p0", &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("of the one before")})
		}},
		{"get budget b0", func(s *side) string {
			b, err := s.budgets().Get(s.ctx, "b0", metav1.GetOptions{})
			return s.answer(b, err)
		}},
	}
}

func (g *generator) podBind() request {
	name, node, uid := g.podName(), g.nodeName(), g.which()
	return request{fmt.Sprintf("bind pod %s to %s uid=%s", name, node, uid), func(s *side) string {
		b := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: name}, Target: corev1.ObjectReference{Kind: "Node", Name: s.node(node)}}
		if old := s.old("Pod", name, uid); old != nil {
			b.UID = old.GetUID()
		}
		return s.answer(nil, s.pods().Bind(s.ctx, b, metav1.CreateOptions{}))
	}}
}

func (g *generator) podRead() request {
	if name := g.podName(); g.IntN(2) == 0 {
		return request{"get pod " + name, func(s *side) string {
			p, err := s.pods().Get(s.ctx, name, metav1.GetOptions{})
			return s.answer(p, err)
		}}
	}
	label, field, all := pick(g, "", "app=x", "app!=x"), pick(g, "", "spec.nodeName=", "metadata.name=p0", "status.phase!=Running"), pick(g, true, false)
	return request{fmt.Sprintf("list pods %s %s all=%t", label, field, all), func(s *side) string {
		o := metav1.ListOptions{LabelSelector: label, FieldSelector: field}
		namespace := s.namespace
		if field == "spec.nodeName=" {
			o.FieldSelector += s.node("n0")
			if all {
				namespace = ""
			}
		}
		l, err := s.client.CoreV1().Pods(namespace).List(s.ctx, o)
		return list(s, l.Items, err)
	}}
}

func (g *generator) budgetName() string { return pick(g, "b0", "b0", "b0", "b0", "b0", "b1") }

func (g *generator) budgetCreate() request {
	name, app := g.budgetName(), pick(g, "x", "x", "y")
	unhealthy := pick(g, "", "", policyv1.IfHealthyBudget, policyv1.AlwaysAllow)
	return request{fmt.Sprintf("create budget %s app=%s %s", name, app, unhealthy), func(s *side) string {
		b := newBudget(name, app)
		if unhealthy != "" {
			b.Spec.UnhealthyPodEvictionPolicy = &unhealthy
		}
		b, err := s.budgets().Create(s.ctx, b, metav1.CreateOptions{})
		return s.answer(b, err)
	}}
}

func (g *generator) budgetStatus() request {
	name, from := g.budgetName(), pick(g, newest, newest, newest, older)
	allowed, current, desired, lag := pick(g, int32(0), 0, 0, 1, 1, 2, -1), int32(g.IntN(4)), int32(g.IntN(3)), pick(g, int64(0), 0, 0, 1)
	because := pick(g, "", "", policyv1.SyncFailedReason, policyv1.InsufficientPodsReason)
	touch := g.IntN(6) == 0
	how, loosen := g.loose()
	if g.IntN(3) > 0 {
		from, how, loosen = newest, "", func(metav1.Object) {}
	}
	return request{fmt.Sprintf("status of budget %s from=%s allowed=%d current=%d desired=%d lag=%d because=%s touch=%t %s", name, from, allowed, current, desired, lag, because, touch, how), func(s *side) string {
		old := s.old("PodDisruptionBudget", name, from)
		if old == nil {
			return "never seen"
		}
		b := old.(*policyv1.PodDisruptionBudget).DeepCopy()
		loosen(b)
		b.Status = policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed, CurrentHealthy: current, DesiredHealthy: desired, ObservedGeneration: b.Generation - lag}
		if because != "" {
			b.Status.Conditions = []metav1.Condition{{Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: because, Message: "words", LastTransitionTime: metav1.NewTime(time.Unix(1e9, 0))}}
		}
		if touch {
			b.Spec.Selector.MatchLabels = map[string]string{"app": "other"}
			b.Labels = map[string]string{"touched": "yes"}
		}
		b, err := s.budgets().UpdateStatus(s.ctx, b, metav1.UpdateOptions{})
		return s.answer(b, err)
	}}
}

func (g *generator) budgetUpdate() request {
	name, from, least := g.budgetName(), pick(g, newest, newest, older), pick(g, 1, 2, 2)
	how, loosen := g.loose()
	return request{fmt.Sprintf("update budget %s from=%s least=%d %s", name, from, least, how), func(s *side) string {
		old := s.old("PodDisruptionBudget", name, from)
		if old == nil {
			return "never seen"
		}
		b := old.(*policyv1.PodDisruptionBudget).DeepCopy()
		loosen(b)
		b.Spec.MinAvailable.IntVal = int32(least)
		b.Status.DisruptionsAllowed = 77
		b, err := s.budgets().Update(s.ctx, b, metav1.UpdateOptions{})
		return s.answer(b, err)
	}}
}

func (g *generator) budgetDelete() request {
	name := g.budgetName()
	return request{"delete budget " + name, func(s *side) string {
		return s.answer(nil, s.budgets().Delete(s.ctx, name, metav1.DeleteOptions{}))
	}}
}

func (g *generator) budgetRead() request {
	if name := g.budgetName(); g.IntN(2) == 0 {
		return request{"get budget " + name, func(s *side) string {
			b, err := s.budgets().Get(s.ctx, name, metav1.GetOptions{})
			return s.answer(b, err)
		}}
	}
	return request{"list budgets", func(s *side) string {
		l, err := s.budgets().List(s.ctx, metav1.ListOptions{})
		return list(s, l.Items, err)
	}}
}

func (g *generator) configMapCreate() request {
	value := pick(g, "1", "2")
	return request{"create config map " + value, func(s *side) string {
		c, err := s.client.CoreV1().ConfigMaps(s.namespace).Create(s.ctx, newConfigMap(value), metav1.CreateOptions{})
		return s.answer(c, err)
	}}
}

func (g *generator) configMap() request {
	value, from := pick(g, "1", "2"), pick(g, newest, newest, older)
	how, loosen := g.loose()
	switch g.IntN(10) {
	case 0:
		return g.configMapCreate()
	case 1:
		return request{"get config map", func(s *side) string {
			c, err := s.client.CoreV1().ConfigMaps(s.namespace).Get(s.ctx, "c0", metav1.GetOptions{})
			return s.answer(c, err)
		}}
	case 2:
		return request{"delete config map", func(s *side) string {
			return s.answer(nil, s.client.CoreV1().ConfigMaps(s.namespace).Delete(s.ctx, "c0", metav1.DeleteOptions{}))
		}}
	}
	return request{fmt.Sprintf("update config map from=%s %s %s", from, value, how), func(s *side) string {
		old := s.old("ConfigMap", "c0", from)
		if old == nil {
			return "never seen"
		}
		c := old.(*corev1.ConfigMap).DeepCopy()
		loosen(c)
		c.Data = map[string]string{"v": value}
		c, err := s.client.CoreV1().ConfigMaps(s.namespace).Update(s.ctx, c, metav1.UpdateOptions{})
		return s.answer(c, err)
	}}
}

func (g *generator) leaseCreate() request {
	holder := pick(g, "1", "2")
	return request{"create lease " + holder, func(s *side) string {
		l, err := s.leases().Create(s.ctx, newLease(holder), metav1.CreateOptions{})
		return s.answer(l, err)
	}}
}

func (g *generator) lease() request {
	holder, from := pick(g, "1", "2"), pick(g, none, newest, newest, older)
	how, loosen := g.loose()
	switch g.IntN(10) {
	case 0:
		return g.leaseCreate()
	case 1:
		return request{"get lease", func(s *side) string {
			l, err := s.leases().Get(s.ctx, "l0", metav1.GetOptions{})
			return s.answer(l, err)
		}}
	case 2:
		return request{"delete lease", func(s *side) string {
			return s.answer(nil, s.leases().Delete(s.ctx, "l0", metav1.DeleteOptions{}))
		}}
	}
	return request{fmt.Sprintf("update lease from=%s %s %s", from, holder, how), func(s *side) string {
		l := newLease(holder)
		if old := s.old("Lease", "l0", from); old != nil {
			l.ObjectMeta = *old.(interface {
				GetObjectMeta() metav1.Object
			}).GetObjectMeta().(*metav1.ObjectMeta).DeepCopy()
		}
		loosen(l)
		l, err := s.leases().Update(s.ctx, l, metav1.UpdateOptions{})
		return s.answer(l, err)
	}}
}
