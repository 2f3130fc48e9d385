package sim

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// askTime is how long ago it may have been decided that hooks are asked when that is written: they have their time from
// the decision on. A write that takes longer than its controller waits for it adds up to 45 s.
func (c *checks) askTime(n *corev1.Node) time.Duration {
	if c.w.unreached[n.Name] != nil {
		return 75 * time.Second
	}
	return 30 * time.Second
}

// hookKey is the annotation by which the hook of the simulated policies answers.
const hookKey = "example.com/hook"

// hooked is a user's controller: it sees that a hook is asked, works for a while, and answers with what it saw then,
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

// hooksSilent reports whether a hook of a node's return, which must answer, may have had its time.
func (c *checks) hooksSilent(n *corev1.Node, p *controllerProcess) bool {
	id := annotation(n, marker.KeyHookID)
	asked, known := c.of(n).hookIDs[id]
	for _, h := range rulesOf(&p.decided.set, n).Hooks.BeforeUncordon {
		// An answer that came after all that the process was shown is none to it.
		answered := c.always(n, p.decided.shown, func(n *corev1.Node) bool { return n.Annotations[h.Annotation] == id })
		if known && h.OnTimeout == policy.Abort && !answered && (c.anyJumped() || c.w.now.Sub(asked) >= h.Timeout-c.askTime(n)) {
			return true
		}
	}
	return false
}

// hooksAnswered: nothing goes on before the hooks have answered to the very id that stands, but for those that may be
// ignored and have had their time.
func (c *checks) hooksAnswered(promise, actor, what string, hooks []policy.Hook, n *corev1.Node) {
	for _, h := range hooks {
		c.count(promise)
		id := annotation(n, marker.KeyHookID)
		if c.tampered[string(n.UID)] || id != "" && n.Annotations[h.Annotation] == id {
			continue
		}
		asked, known := c.of(n).hookIDs[id]
		if waited := c.w.now.Sub(asked); h.OnTimeout == policy.Abort || !known || waited < h.Timeout-c.askTime(n) && !c.anyJumped() {
			c.w.violate(promise, "%s %s, and hook %s has not answered to %q within %s", actor, fmt.Sprintf(what, n.Name), h.Name, id, waited)
		}
	}
}
