package sim

import (
	"context"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/sim/apiserver"
)

// writeTime is how long a pass waits for a write to one node, as pkg/controller has it.
const writeTime = 5 * time.Second

// unwrite draws, for a part of the seeds, nodes that the API server doesn't write to as it should.
func (s *Scenario) unwrite(r *rand.Rand) {
	if r.IntN(8) > 0 {
		return
	}
	for range 1 + r.IntN(3) {
		f := Fault{At: time.Duration(r.Int64N(int64(s.Trouble))).Truncate(time.Millisecond), Kind: unwriting[r.IntN(len(unwriting))], On: r.IntN(s.Nodes),
			For: time.Duration(r.Int64N(int64(1<<r.IntN(5)) * int64(time.Minute))).Truncate(time.Millisecond), N: r.IntN(16)}
		if r.IntN(4) > 0 {
			f.When = moments[r.IntN(len(moments))]
		}
		s.Faults = append(s.Faults, f)
	}
}

// unwritten is what the API server makes of the controllers' writes to one node, and for how long.
type unwritten struct {
	kind  Kind
	until time.Time
}

// unreached is since when no controller has written to a node although one tried, and when one did again.
type unreached struct{ since, ended time.Time }

// write is a controller's patch of a Node.
func (c *controllerProcess) write(t *thread, r apiserver.Request, run func() error) error {
	w := c.w
	n, by := w.server.Node(r.Name), t.judged
	if by == nil {
		by = new(c.judged())
	}
	done := func() error {
		now := c.judged()
		c.judge(*by)
		defer c.judge(now)
		return run()
	}
	m := w.cluster.machineOf(r.Name)
	if n == nil || m == nil || w.calm || !w.now.Before(m.unwritten.until) {
		err := done()
		if u := w.unreached[r.Name]; err == nil && u != nil && u.ended.IsZero() {
			u.ended = w.now
		}
		return err
	}
	w.strike(m.unwritten.kind)
	if u := w.unreached[r.Name]; u == nil || !u.ended.IsZero() {
		w.unreached[r.Name] = &unreached{since: w.now}
	}
	if m.unwritten.kind == WritesRefused {
		return apierrors.NewForbidden(schema.GroupResource{Resource: r.Resource}, r.Name, errors.New("a webhook refuses it"))
	}
	patience, takes := writeTime, w.between(writeTime+time.Second, 40*time.Second)
	if !t.deadline.IsZero() {
		patience = t.deadline.Sub(w.now)
	}
	if takes < patience {
		t.pause(takes)
		return done()
	}
	t.pause(max(0, patience))
	// What became of it the client doesn't know.
	if w.chance(2) {
		w.after(takes-patience, func() {
			if err := done(); err == nil {
				w.note(c.name, "%s lands late", r)
			}
		})
	}
	return context.DeadlineExceeded
}

// outOfReach reports whether a controller may take a node that is disrupted for Lost since it can't be written to.
func (c *checks) outOfReach(n *corev1.Node, p *controllerProcess) bool {
	u := c.w.unreached[n.Name]
	if u == nil || !u.ended.IsZero() && c.w.now.Sub(u.ended) > time.Minute {
		return false
	}
	return c.w.now.Sub(u.since) >= p.settings.Deadlines.Return
}

// judged is what a controller's write is judged by: what was decided on, and the looks that came before.
type judged struct {
	decided       decision
	looked, alone map[string]int64
	foreseen      map[string]glances
	checked       map[lookedFor]glances
}

func (c *controllerProcess) judged() judged {
	return judged{c.decided, c.looked, c.alone, c.foreseen, c.checked}
}

// judge lets what is written now be judged by that.
func (c *controllerProcess) judge(j judged) {
	c.decided, c.looked, c.alone, c.foreseen, c.checked = j.decided, j.looked, j.alone, j.foreseen, j.checked
}
