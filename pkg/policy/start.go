package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// start hands out what the limits leave. Interrupted starts come first: their slot is already theirs.
func (p *planner) start() {
	slices.SortFunc(p.toStage, inOrder)
	slices.SortFunc(p.toDisrupt, func(a, b fleet.Node) int {
		return cmp.Or(-compareBool(p.slot(a), p.slot(b)), inOrder(a, b))
	})
	for _, n := range p.toDisrupt {
		p.disrupt(n)
	}
	for _, n := range p.toStage {
		p.stage(n)
	}
}

// inOrder sorts the controller's own node last, the others by who never failed, then by name.
func inOrder(a, b fleet.Node) int {
	return cmp.Or(
		compareBool(a.ControllerHere, b.ControllerHere),
		compareBool(a.Marks.Failure != nil, b.Marks.Failure != nil),
		cmp.Compare(a.Name, b.Name),
	)
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// stateAgain is when a list of slots that can't be read is read again.
const stateAgain = 30 * time.Second

// stopped says why nothing may start anywhere; empty if it may.
func (p *planner) stopped() (Reason, string) {
	if p.SlotsProblem != "" {
		// Nobody tells when it was put right.
		p.wakeAt(p.Now.Add(stateAgain))
		return ReasonStateUnreadable, p.SlotsProblem
	}
	// A new leader doesn't call a node Lost at its first look, and starts nothing that it would regret at
	// its second.
	if p.late > p.set.MaxLost {
		return ReasonTooManyLost, fmt.Sprintf("%d nodes are Lost, more than %d: nothing starts until they are back, deleted, or unlabelled", p.late, p.set.MaxLost)
	}
	return "", ""
}

func (p *planner) disrupt(n fleet.Node) {
	held := p.slot(n)
	if r, why := p.stopped(); why != "" {
		p.hold(n, r, "staged; %s", why)
		return
	}
	free := p.out.Limit - (p.out.InHands - p.out.Lent)
	if !held && free <= 0 {
		p.wait(n, intent.PhasePrepared, ReasonUnavailableLimit, "staged; %d of %d nodes that may be unavailable are: %s",
			p.out.InHands-p.out.Lent, p.out.Limit, p.holders())
		return
	}
	if held && free < 0 {
		p.hold(n, ReasonUnavailableLimit, "staged; more nodes are unavailable than the limit of %d", p.out.Limit)
		return
	}
	if !n.Unschedulable && p.schedulable <= 1 {
		p.hold(n, ReasonOnlySchedulableNode, "staged; no other node could take this one's pods")
		return
	}
	if n.ControllerHere && !held && p.othersFirst() {
		p.wait(n, intent.PhasePrepared, ReasonControllerLast, "staged; the controller runs here, so the other nodes go first")
		return
	}
	at := p.Now.Truncate(time.Millisecond)
	c := keep(n)
	c.Marks.Intent.RebootFrom = n.BootID
	c.Marks.Disruption = &marker.Disruption{Since: at, WasUnschedulable: n.Unschedulable}
	c.Marks.Waiting = &marker.Waiting{Reason: string(ReasonDraining), Message: "the node's pods are being evicted"}
	if !n.Unschedulable {
		c.Unschedulable = new(true)
		p.schedulable--
	}
	if !held {
		p.out.InHands++
	}
	p.granted[n.UID] = true
	p.step(n, intent.PhasePrepared, intent.ActCordon, ReasonSlotGranted, "taken out of service for "+n.Marks.Intent.Target, c).TakesSlot = true
}

// othersFirst tells if any other node is about to be staged. That is bounded: each of them either gets
// there or fails and backs off. Those that are staged were asked before the controller's own node in
// this pass; what keeps them back, no other node to take their pods for example, needn't keep it back.
func (p *planner) othersFirst() bool { return p.staging > 0 || len(p.toStage) > 0 }

// holders names who is in our hands, for people.
func (p *planner) holders() string {
	var names []string
	for _, n := range p.Nodes {
		if n.Disrupted() || p.slot(n) || p.granted[n.UID] {
			names = append(names, n.Name)
		}
	}
	if len(names) > 3 {
		return strings.Join(names[:3], ", ") + fmt.Sprintf(" and %d more", len(names)-3)
	}
	return strings.Join(names, ", ")
}

func (p *planner) stage(n fleet.Node) {
	target := n.Marks.Report.Available
	if r, why := p.stopped(); why != "" {
		p.wait(n, intent.PhaseIdle, r, "%s is available; %s", target, why)
		return
	}
	if p.staging >= p.set.MaxStaging {
		p.wait(n, intent.PhaseIdle, ReasonStagingLimit, "%s is available; %d nodes stage at once already", target, p.staging)
		return
	}
	p.staging++
	c := begin(n, p.Now, marker.ActionPrepareUpdate, p.set.Deadlines.Prepare, ReasonPreparing, "the agent stages "+target)
	c.Marks.Intent.Target, c.Marks.Intent.RebootFrom = target, ""
	p.step(n, intent.PhaseIdle, intent.ActPrepare, ReasonUpdateAvailable, "stage "+target, c)
}
