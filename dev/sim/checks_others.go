package sim

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// otherMark is what is known of one mark for others that the operator put on a node.
type otherMark struct {
	// stood is what was there before; nil: nothing.
	stood *string
	// overwritten: another value than the operator's stands there now. One that is equal can't be told from it.
	overwritten bool
}

// othersKeys are all marks for others.
var othersKeys = append([]string{marker.LabelExcluded}, marker.AutoscalerMarks()...)

func otherValue(n *corev1.Node, key string) *string {
	values := n.Annotations
	if key == marker.LabelExcluded {
		values = n.Labels
	}
	if v, ok := values[key]; ok {
		return &v
	}
	return nil
}

func sameValue(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

// othersMarked: what stood where the operator put its marks for load balancers and autoscalers stands there again when
// they end, unless another client wrote there meanwhile (S5).
func (c *checks) othersMarked(actor string, controller bool, before, after *corev1.Node) {
	k := c.of(after)
	if k.others == nil {
		k.others = map[string]otherMark{}
	}
	for _, key := range othersKeys {
		was, is := otherValue(before, key), otherValue(after, key)
		if sameValue(was, is) {
			continue
		}
		mark, known := k.others[key]
		if !controller || c.tampered[string(after.UID)] {
			if known {
				// Once the node is in service again the operator's label is gone: one that says the same then is another's.
				mark.overwritten = is == nil || *is != marker.OthersValue || key == marker.LabelExcluded && soaks(before)
				k.others[key] = mark
			}
			continue
		}
		ours := known && !mark.overwritten
		delete(k.others, key)
		switch {
		case is != nil && *is == marker.OthersValue && (!ours || !sameValue(is, mark.stood)):
			c.count("S5")
			k.others[key] = otherMark{stood: was}
			if !has(after, marker.KeyDisruption) {
				c.w.violate("S5", "%s marks %s with %s, which is not disrupted", actor, after.Name, key)
			}
		case !ours:
			c.w.violate("S5", "%s takes %s of %s away, which is not the operator's", actor, key, after.Name)
		case !sameValue(is, mark.stood):
			c.w.violate("S5", "%s does not put %s of %s back as it was", actor, key, after.Name)
		}
	}
	if !controller || c.tampered[string(after.UID)] {
		return
	}
	if has(before, marker.KeyDisruption) && !has(after, marker.KeyDisruption) {
		for key, mark := range k.others {
			if !mark.overwritten {
				c.w.violate("S5", "%s gives %s back with our mark %s on it", actor, after.Name, key)
			}
		}
		clear(k.others)
	}
	if mark, known := k.others[marker.LabelExcluded]; known && before.Spec.Unschedulable && !after.Spec.Unschedulable {
		if !mark.overwritten {
			c.w.violate("S5", "%s uncordons %s and leaves it out of load balancers", actor, after.Name)
		}
		// What was written over it is not the operator's from now on, whatever it says.
		delete(k.others, marker.LabelExcluded)
	}
}
