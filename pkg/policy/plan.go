package policy

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// Plan decides on one snapshot. Nodes that are in progress are looked at first, each by itself; what
// is left of the limits then goes to those that wait, nodes that never failed first, the controller's
// own node last, then by name.
func Plan(s fleet.Snapshot, set Settings) Outcome {
	p := planner{Snapshot: s, set: set, granted: map[string]bool{}}
	p.count()
	for _, n := range s.Nodes {
		if s.Managed(n) || n.Marked() {
			p.node(n)
		}
	}
	p.start()
	p.release()
	slices.SortFunc(p.out.Nodes, func(a, b Standing) int { return cmp.Compare(a.Node, b.Node) })
	return p.out
}

type planner struct {
	fleet.Snapshot
	set Settings
	out Outcome
	// lost and staging are counts of the fleet as the plan leaves it; late are those that are Lost, or will
	// be when this process has passed over them.
	lost, late, staging, schedulable int
	// granted holds the UIDs of those that get a slot by this plan.
	granted map[string]bool
	// toStage and toDisrupt are those who could go if the limits let them.
	toStage, toDisrupt []fleet.Node
}

// count finds out what is taken: the union of the slot list and what the nodes show.
func (p *planner) count() {
	held := map[string]bool{}
	for uid := range p.Slots {
		held[uid] = true
	}
	for _, n := range p.Nodes {
		if n.Disrupted() {
			held[n.UID] = true
		}
		if len(n.Problems) > 0 {
			continue
		}
		if p.isLost(n) {
			p.lost++
		}
		watched := n
		watched.PassedOver = true
		if p.isLost(watched) {
			p.late++
		}
		if n.Phase() == intent.PhasePreparing && n.Interface == fleet.InterfaceUpdateAPI {
			// An attempt on a node that isn't ours any more has no deadline: it would keep its place for ever.
			p.staging++
		}
	}
	p.schedulable = p.Schedulable()
	p.out.InHands = len(held)
	p.out.Lent = min(p.lost, p.set.MaxLost)
	p.out.Limit = min(p.set.MaxUnavailable, SlotCapacity)
}

// step settles a node by an act. An act that the table doesn't allow is a defect in this package; the
// node then waits, which is always safe.
func (p *planner) step(n fleet.Node, phase intent.Phase, act intent.Act, r Reason, message string, c *Change) *Step {
	if act != intent.ActLeave && act != intent.ActRelease {
		if _, err := intent.Lookup(act, n.Phase()); err != nil {
			p.stand(n, phase, "", r, err.Error())
			return &Step{}
		}
	}
	p.stand(n, phase, act, r, message)
	p.out.Steps = append(p.out.Steps, Step{Node: n.Name, UID: n.UID, Act: act, Reason: r, Message: message, Change: c})
	return &p.out.Steps[len(p.out.Steps)-1]
}

func (p *planner) stand(n fleet.Node, phase intent.Phase, act intent.Act, r Reason, message string) {
	p.out.Nodes = append(p.out.Nodes, Standing{Node: n.Name, UID: n.UID, Phase: phase, Version: n.Marks.Report.Current,
		Target: n.Marks.Intent.Target, Act: act, Reason: r, Message: message})
}

// wait leaves a node as it is. On a node in progress people can read the reason on the node itself,
// which is written again only when the reason changes.
func (p *planner) wait(n fleet.Node, phase intent.Phase, r Reason, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	inProgress := phase != intent.PhaseIdle && phase != intent.PhaseNew && phase != intent.PhaseUnreadable && n.Labelled()
	if inProgress && (n.Marks.Waiting == nil || n.Marks.Waiting.Reason != string(r)) && !p.stillLost(n) {
		c := keep(n)
		c.Marks.Waiting = &marker.Waiting{Reason: string(r), Message: marker.Clip(message, marker.MaxMessage)}
		p.step(n, phase, intent.ActNote, r, message, c)
		return
	}
	p.stand(n, phase, "", r, message)
}

// stillLost tells if a node that is called Lost will be called so by this process too, once it has passed over it. A
// new leader doesn't take the word back meanwhile.
func (p *planner) stillLost(n fleet.Node) bool {
	if n.PassedOver || n.Marks.Waiting == nil || n.Marks.Waiting.Reason != string(ReasonLost) {
		return false
	}
	n.PassedOver = true
	return p.isLost(n)
}

// wakeAt asks for another plan at t.
func (p *planner) wakeAt(t time.Time) {
	if t.After(p.Now) && (p.out.Wake.IsZero() || t.Before(p.out.Wake)) {
		p.out.Wake = t
	}
}

// past tells if a deadline that began at since has gone by. It fires only after this process has
// passed over the node in this phase; a beginning implausibly far in the future has gone by too.
func (p *planner) past(n fleet.Node, since time.Time, d time.Duration) bool {
	end := since.Add(d)
	if p.Now.Before(end) && !since.After(p.Now.Add(p.set.RetryMax)) {
		p.wakeAt(end)
		return false
	}
	if !n.PassedOver {
		p.wakeAt(p.Now.Add(time.Second))
		return false
	}
	return true
}

// node decides on one node by itself.
func (p *planner) node(n fleet.Node) {
	phase := n.Phase()
	switch {
	case phase == intent.PhaseUnreadable:
		p.stand(n, phase, "", ReasonMarksUnreadable, fmt.Sprintf("annotation %s; correct or remove it and the node goes on", n.Problems[0]))
		return
	case !n.Labelled():
		p.leaving(n, phase)
		return
	case n.Marks.Retry:
		c := keep(n)
		c.Marks.Failure, c.DropRetry = nil, true
		p.step(n, phase, intent.ActRetry, ReasonRetryWanted, "the failure is forgotten by the user's wish", c)
		return
	case n.Interface != fleet.InterfaceUpdateAPI && !n.Disrupted():
		if p.fence(n, phase) {
			return
		}
		p.stand(n, phase, "", ReasonInterfaceUnsupported, fmt.Sprintf(
			"labelled for interface %q: this operator speaks 2.0.0, the Update API, alone", n.Interface))
		return
	}
	switch phase {
	case intent.PhaseNew:
		p.step(n, phase, intent.ActStabilize, ReasonManaged, "the node is in the operator's care", stabilize(n, p.Now, p.set))
	case intent.PhaseIdle:
		p.idle(n)
	case intent.PhasePreparing:
		p.preparing(n)
	case intent.PhasePrepared:
		p.prepared(n)
	case intent.PhaseDraining:
		p.draining(n)
	case intent.PhaseRebooting:
		p.rebooting(n)
	case intent.PhaseReturning:
		p.returning(n)
	case intent.PhaseVerifying:
		p.verifying(n)
	case intent.PhaseResetting:
		p.resetting(n)
	}
}

// fence frees a slot whose node shows no disruption, after a write that makes any older cordon fail.
func (p *planner) fence(n fleet.Node, phase intent.Phase) bool {
	if _, slot := p.Slots[n.UID]; !slot || n.Disrupted() {
		return false
	}
	act, c := intent.ActFence, stabilize(n, p.Now, p.set)
	switch phase {
	case intent.PhaseNew:
		act = intent.ActStabilize
	case intent.PhaseResetting:
		// The host may still have something activated: the wish to undo it stays, under a new id.
		c = begin(n, p.Now, marker.ActionResetState, p.set.Deadlines.Prepare, ReasonResetting, resettingMessage)
	}
	p.step(n, phase, act, ReasonSlotOrphaned, "the node holds a slot and shows no disruption", c).FreesSlot = true
	return true
}

// release frees slots of nodes that are gone; whoever carries it out looks live first.
func (p *planner) release() {
	here := map[string]bool{}
	for _, n := range p.Nodes {
		here[n.UID] = true
	}
	var gone []string
	for uid := range p.Slots {
		if !here[uid] {
			gone = append(gone, uid)
		}
	}
	slices.Sort(gone)
	for _, uid := range gone {
		p.out.Steps = append(p.out.Steps, Step{Node: p.Slots[uid], UID: uid, Act: intent.ActRelease,
			Reason: ReasonNodeGone, Message: "the node that held the slot is gone", FreesSlot: true})
	}
}
