package sim

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// carried is how pods, workloads, budgets and volumes have been, by revisions.
type carried struct {
	// pods is since when each pod has been Ready, or not, by UID.
	pods map[string]turn
	// workloads is how many Ready pods each ReplicaSet has had, budgets how many pods each budget would have let go.
	workloads, budgets map[string][]level
	// attached is since when each volume has been attached.
	attached map[string]int64
}

type turn struct {
	ready bool
	since int64
}

type level struct {
	since int64
	value int
}

func newCarried() carried {
	return carried{pods: map[string]turn{}, workloads: map[string][]level{}, budgets: map[string][]level{}, attached: map[string]int64{}}
}

func (c *carried) wrote(revision int64, before, after runtime.Object) {
	switch o := after.(type) {
	case *corev1.Pod:
		if b, ok := before.(*corev1.Pod); !ok || b == nil || podReady(b) != podReady(o) {
			c.pods[string(o.UID)] = turn{podReady(o), revision}
		}
	case *appsv1.ReplicaSet:
		c.workloads[o.Name] = rise(c.workloads[o.Name], revision, int(o.Status.ReadyReplicas))
	case *policyv1.PodDisruptionBudget:
		c.budgets[o.Name] = rise(c.budgets[o.Name], revision, int(o.Status.DisruptionsAllowed))
	case *storagev1.VolumeAttachment:
		if _, known := c.attached[o.Name]; o.Status.Attached && !known {
			c.attached[o.Name] = revision
		}
	case nil:
		switch o := before.(type) {
		case *corev1.Pod:
			delete(c.pods, string(o.UID))
		case *storagev1.VolumeAttachment:
			delete(c.attached, o.Name)
		}
	}
}

func rise(levels []level, revision int64, value int) []level {
	if n := len(levels); n > 0 && levels[n-1].value == value {
		return levels
	}
	return append(levels, level{revision, value})
}

// rangeSince are the least and the most of all that stood at a revision or later.
func rangeSince(levels []level, revision int64) (least, most int) {
	for i := len(levels) - 1; i >= 0; i-- {
		if i == len(levels)-1 {
			least, most = levels[i].value, levels[i].value
		}
		least, most = min(least, levels[i].value), max(most, levels[i].value)
		if levels[i].since <= revision {
			break
		}
	}
	return least, most
}

func mostSince(levels []level, revision int64) int {
	_, most := rangeSince(levels, revision)
	return most
}
