package apiserver_test

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What nodes carry: workloads, and the volumes of their pods.

func (g *generator) replicaSetName() string { return pick(g, "r0", "r0", "r0", "r1") }

func (g *generator) replicaSetCreate() request {
	name, app, replicas := g.replicaSetName(), pick(g, "x", "y"), int32(g.IntN(4)-1)
	return request{fmt.Sprintf("create replica set %s app=%s replicas=%d", name, app, replicas), func(s *side) string {
		r := newReplicaSet(name, app)
		if replicas >= 0 {
			r.Spec.Replicas = &replicas
		}
		r.Status.Replicas = 7
		r, err := s.replicaSets().Create(s.ctx, r, metav1.CreateOptions{})
		return s.answer(r, err)
	}}
}

func (g *generator) replicaSetUpdate() request {
	name, from, replicas := g.replicaSetName(), pick(g, newest, newest, older), int32(g.IntN(4)-1)
	change := pick(g, "", "", "image", "selector", "labels")
	how, loosen := g.loose()
	return request{fmt.Sprintf("update replica set %s from=%s replicas=%d change=%s %s", name, from, replicas, change, how), func(s *side) string {
		old := s.old("ReplicaSet", name, from)
		if old == nil {
			return "never seen"
		}
		r := old.(*appsv1.ReplicaSet).DeepCopy()
		loosen(r)
		r.Spec.Replicas = nil
		if replicas >= 0 {
			r.Spec.Replicas = &replicas
		}
		switch change {
		case "image":
			r.Spec.Template.Spec.Containers[0].Image = "other"
		case "selector":
			r.Spec.Selector.MatchLabels["app"], r.Spec.Template.Labels["app"] = "z", "z"
		case "labels":
			r.Labels = map[string]string{"touched": "yes"}
		}
		r.Status.Replicas = 7
		r, err := s.replicaSets().Update(s.ctx, r, metav1.UpdateOptions{})
		return s.answer(r, err)
	}}
}

func (g *generator) replicaSetStatus() request {
	name, from := g.replicaSetName(), pick(g, newest, newest, older)
	replicas, ready, available := pick(g, int32(2), 2, 1, -1), int32(g.IntN(3)), pick(g, int32(0), 0, 1, -1)
	touch := g.IntN(6) == 0
	how, loosen := g.loose()
	return request{fmt.Sprintf("status of replica set %s from=%s replicas=%d ready=%d available=%d touch=%t %s", name, from, replicas, ready, available, touch, how), func(s *side) string {
		old := s.old("ReplicaSet", name, from)
		if old == nil {
			return "never seen"
		}
		r := old.(*appsv1.ReplicaSet).DeepCopy()
		loosen(r)
		r.Status = appsv1.ReplicaSetStatus{Replicas: replicas, FullyLabeledReplicas: ready, ReadyReplicas: ready, AvailableReplicas: available, ObservedGeneration: r.Generation}
		if ready == 0 {
			r.Status.Conditions = []appsv1.ReplicaSetCondition{{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Unix(1e9, 1))}}
		}
		if touch {
			*r.Spec.Replicas, r.Labels = 9, map[string]string{"touched": "yes"}
		}
		r, err := s.replicaSets().UpdateStatus(s.ctx, r, metav1.UpdateOptions{})
		return s.answer(r, err)
	}}
}

// precondition is a UID that a deletion asks for.
func (s *side) precondition(kind, name string, uid which) metav1.DeleteOptions {
	var o metav1.DeleteOptions
	if old := s.old(kind, name, uid); old != nil {
		o.Preconditions = metav1.NewUIDPreconditions(string(old.GetUID()))
	}
	return o
}

func (g *generator) replicaSetDelete() request {
	name, uid := g.replicaSetName(), g.which()
	return request{fmt.Sprintf("delete replica set %s uid=%s", name, uid), func(s *side) string {
		return s.answer(nil, s.replicaSets().Delete(s.ctx, name, s.precondition("ReplicaSet", name, uid)))
	}}
}

func (g *generator) replicaSetRead() request {
	if name := g.replicaSetName(); g.IntN(2) == 0 {
		return request{"get replica set " + name, func(s *side) string {
			r, err := s.replicaSets().Get(s.ctx, name, metav1.GetOptions{})
			return s.answer(r, err)
		}}
	}
	label, field := pick(g, "", "app=x"), pick(g, "", "metadata.name=r0", "status.replicas=2")
	return request{fmt.Sprintf("list replica sets %s %s", label, field), func(s *side) string {
		l, err := s.replicaSets().List(s.ctx, metav1.ListOptions{LabelSelector: label, FieldSelector: field})
		return list(s, l.Items, err)
	}}
}

func (g *generator) attachmentName() string { return pick(g, "v0", "v0", "v0", "v1") }

func (g *generator) attachmentCreate() request {
	name, node := g.attachmentName(), g.nodeName()
	return request{fmt.Sprintf("create attachment %s node=%s", name, node), func(s *side) string {
		a := s.newAttachment(name, node)
		a.Status.Attached = true
		a, err := s.attachments().Create(s.ctx, a, metav1.CreateOptions{})
		return s.answer(a, err)
	}}
}

func (g *generator) attachmentStatus() request {
	name, from := g.attachmentName(), pick(g, newest, newest, older)
	attached, detach, touch := pick(g, true, false), pick(g, "", "", "words"), g.IntN(6) == 0
	how, loosen := g.loose()
	return request{fmt.Sprintf("status of attachment %s from=%s attached=%t detach=%s touch=%t %s", name, from, attached, detach, touch, how), func(s *side) string {
		old := s.old("VolumeAttachment", s.node(name), from)
		if old == nil {
			return "never seen"
		}
		a := old.(*storagev1.VolumeAttachment).DeepCopy()
		loosen(a)
		a.Status = storagev1.VolumeAttachmentStatus{Attached: attached}
		if detach != "" {
			a.Status.DetachError = &storagev1.VolumeError{Time: metav1.NewTime(time.Unix(1e9, 1)), Message: detach}
		}
		if touch {
			a.Spec.NodeName, a.Annotations, a.Finalizers = "elsewhere", map[string]string{"touched": "yes"}, []string{"example.com/f"}
		}
		a, err := s.attachments().UpdateStatus(s.ctx, a, metav1.UpdateOptions{})
		return s.answer(a, err)
	}}
}

func (g *generator) attachmentDelete() request {
	name, uid := g.attachmentName(), g.which()
	return request{fmt.Sprintf("delete attachment %s uid=%s", name, uid), func(s *side) string {
		return s.answer(nil, s.attachments().Delete(s.ctx, s.node(name), s.precondition("VolumeAttachment", s.node(name), uid)))
	}}
}

func (g *generator) attachmentRead() request {
	if name := g.attachmentName(); g.IntN(2) == 0 {
		return request{"get attachment " + name, func(s *side) string {
			a, err := s.attachments().Get(s.ctx, s.node(name), metav1.GetOptions{})
			return s.answer(a, err)
		}}
	}
	field := pick(g, "", "metadata.name=", "metadata.name=", "metadata.namespace=", "spec.nodeName=n0")
	return request{"list attachments " + field, func(s *side) string {
		o := metav1.ListOptions{LabelSelector: "seed=" + s.namespace, FieldSelector: field}
		if field == "metadata.name=" {
			o.FieldSelector += s.node("v0")
			o.Limit = 1
		}
		l, err := s.attachments().List(s.ctx, o)
		return list(s, l.Items, err)
	}}
}

func (g *generator) claimName() string { return pick(g, "c0", "c0", "c1") }

func (g *generator) claimCreate() request {
	name, size := g.claimName(), pick(g, "1Gi", "2Gi")
	return request{fmt.Sprintf("create claim %s %s", name, size), func(s *side) string {
		c := newClaim(name, size)
		c.Status.Phase = corev1.ClaimBound
		c, err := s.claims().Create(s.ctx, c, metav1.CreateOptions{})
		return s.answer(c, err)
	}}
}

func (g *generator) claimDelete() request {
	name, uid := g.claimName(), g.which()
	return request{fmt.Sprintf("delete claim %s uid=%s", name, uid), func(s *side) string {
		return s.answer(nil, s.claims().Delete(s.ctx, name, s.precondition("PersistentVolumeClaim", name, uid)))
	}}
}

func (g *generator) claimRead() request {
	if name := g.claimName(); g.IntN(2) == 0 {
		return request{"get claim " + name, func(s *side) string {
			c, err := s.claims().Get(s.ctx, name, metav1.GetOptions{})
			return s.answer(c, err)
		}}
	}
	label, field := pick(g, "", "size=1Gi"), pick(g, "", "metadata.name=c0", "status.phase=Pending")
	return request{fmt.Sprintf("list claims %s %s", label, field), func(s *side) string {
		l, err := s.claims().List(s.ctx, metav1.ListOptions{LabelSelector: label, FieldSelector: field})
		return list(s, l.Items, err)
	}}
}
