package sim

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// hookKey is the annotation by which the hook of the simulated policies answers.
const hookKey = "example.com/hook"

// hooked is somebody's controller: it sees that a hook is asked, works for a while, and answers with what it saw then,
// whatever has become of the node meanwhile. Now and then it forgets to.
func (w *world) hooked(before, after *corev1.Node) {
	id := annotation(after, marker.KeyHookID)
	if id == "" || id == annotation(before, marker.KeyHookID) || w.rng.IntN(6) == 0 {
		return
	}
	name := after.Name
	w.after(w.between(0, 2*time.Minute), func() {
		n := w.server.Node(name)
		if n == nil {
			return
		}
		n = n.DeepCopy()
		n.Annotations[hookKey] = id
		must(w.people.CoreV1().Nodes().Update(background, n, metav1.UpdateOptions{}))
	})
}

// hooksAnswered: no reboot is asked for before the hooks have answered to the very id that stands, but for those that
// may be ignored (S6).
func (c *checks) hooksAnswered(actor string, rules *policy.Rules, n *corev1.Node) {
	for _, h := range rules.Hooks.AfterDrain {
		c.count("S6")
		if id := annotation(n, marker.KeyHookID); h.OnTimeout == policy.Abort && (id == "" || n.Annotations[h.Annotation] != id) && !c.tampered[string(n.UID)] {
			c.w.violate("S6", "%s asks %s to reboot, and hook %s has not answered to %q", actor, n.Name, h.Name, id)
		}
	}
}
