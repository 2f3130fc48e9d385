package sim

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// telling: of a step that a Node shows an Event tells before the next one is taken, also where the leader that took
// it died, or the answer to its write was lost (L2).
func (c *checks) telling(actor string, before, after *corev1.Node) {
	was, showed := shows(before)
	is, shown := shows(after)
	if showed && shown && was == is {
		return
	}
	uid := string(after.UID)
	if at, known := c.taken[uid+" "+was]; known && showed {
		c.count("L2")
		if !c.once[uid+" "+was] && c.w.now.Sub(at) < tellFor && !c.tampered[uid] && !c.anyJumped() {
			c.w.violate("L2", "%s goes on with %s, and no Event has told of %q", actor, after.Name, was)
		}
	}
	if shown {
		c.taken[uid+" "+is] = c.w.now
	}
}

// tellFor is for how long a process that finds a step on a Node tells of it, short of what a lagging watch takes.
const tellFor = 8 * time.Minute

func shows(n *corev1.Node) (string, bool) {
	m, problems := marker.Decode(n.Annotations)
	last, ok := plan.LastShown(&m)
	if !ok || len(problems) > 0 {
		return "", false
	}
	return last.ID(), true
}
