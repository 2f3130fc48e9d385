package planner

import (
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner/budget"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner/check"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner/lifecycle"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// survey is what a snapshot says of the fleet as a whole, before anything is decided.
type survey struct {
	fleet.Snapshot
	set policy.Settings
	// wishes are what plans want of the nodes, by their places; nil where no plan updates any.
	wishes []*lifecycle.Wish
	// members are the nodes that a plan has something to say of, sorted by name.
	members []member
	// fleet is all of them, groups parts in the policy's order.
	fleet  *group
	groups []*group
	// fresh are the nodes that have no workloads yet, which use no other budget.
	fresh *budget.Scope
	// staying is how many nodes the cluster has, but for those on their way out, and schedulable how many of these could
	// take pods. agents is how many members have a Ready agent, but for those that plans update: runners is how many of
	// these have a Ready runner.
	staying, schedulable, agents, runners int
	// disrupted is how many members hold a slot or show a disruption, and uncounted how many of these are Lost and left
	// out by the limits. outOfService are disrupted, and not back.
	disrupted, uncounted, outOfService int
	// overdue are those that are Lost, or will be once this process has passed over them.
	overdue int
	// staging is how many stage, and confirming how many are asked whether what they have staged stands.
	staging, confirming int
	// failed is on how many nodes each version failed, and names how many name it.
	failed map[string]int
	names  names
	// again is when the clock alone changes any of this.
	again time.Time
}

// member is a node that a plan has something to say of.
type member struct {
	lifecycle.View
	group *group
	// lost: it is Lost, or can't be written to for so long that it counts as that.
	lost bool
	// away: it is out of service by another's doing, or not well by itself, and that for not too long.
	away bool
	// budgets are those that it uses.
	budgets []*budget.Scope
}

// group is the fleet, where its policy is nil, or a group of it.
type group struct {
	check.Group
	policy *policy.Group
	scope  *budget.Scope
	// budgets are the scopes that a node in it uses.
	budgets []*budget.Scope
}

func surveyed(s fleet.Snapshot, set policy.Settings) survey {
	v := survey{Snapshot: s, set: set, failed: map[string]int{}, names: names{count: map[string]*int{}}}
	v.Nodes, v.wishes = withWishes(&v.Snapshot, &v.set)
	v.fleet = &group{scope: budget.Fleet(&v.set.Rules)}
	v.fleet.budgets = []*budget.Scope{v.fleet.scope}
	v.fresh = budget.Fresh(v.set.FreshNodes.MaxUnavailable)
	for i := range v.set.Groups {
		g := &group{policy: &v.set.Groups[i], scope: budget.Group(&v.set.Groups[i])}
		g.budgets = []*budget.Scope{v.fleet.scope, g.scope}
		v.groups = append(v.groups, g)
	}
	v.join()
	for i := range v.members {
		v.count(&v.members[i])
	}
	v.budget()
	return v
}

// join finds the members.
func (v *survey) join() {
	ours := 0
	for i := range v.Nodes {
		n := &v.Nodes[i]
		if n.Leaving == "" {
			v.staying++
			if !n.Unschedulable && n.Ready && !n.FreshTaint {
				v.schedulable++
			}
		}
		if v.Managed(n) || n.Marked() {
			ours++
		}
	}
	v.members = make([]member, 0, ours)
	for i := range v.Nodes {
		n := &v.Nodes[i]
		if !v.Managed(n) && !n.Marked() {
			continue
		}
		_, slot := v.Slots[n.UID]
		g := v.groupOf(n)
		m := member{group: g, View: lifecycle.View{
			Node: n, Now: v.Now, Settings: &v.set, Rules: g.scope.Rules(), Slot: slot, Alone: n.Leaving == "" && v.staying == 1,
			NoPolicy: v.NoPolicy, AutoLabels: v.set.AutoLabel || v.PolicyProblem != ""}}
		if v.wishes != nil {
			m.Wish = v.wishes[i]
		}
		if m.budgets = g.budgets; m.Fresh() {
			m.budgets = []*budget.Scope{v.fresh}
		}
		v.members = append(v.members, m)
	}
}

// groupOf returns the group that a node is in, or the fleet.
func (v *survey) groupOf(n *fleet.Node) *group {
	if at := v.set.GroupAt(n.Labels); at >= 0 {
		return v.groups[at]
	}
	return v.fleet
}

func (v *survey) wakeAt(t time.Time) { v.again = plan.Earliest(v.Now, v.again, t) }

// count counts one member.
func (v *survey) count(m *member) {
	switch {
	case !m.AgentReady:
	case m.Wish != nil:
		v.runners++
	default:
		v.agents++
	}
	if m.OutOfService() {
		v.outOfService++
	}
	if len(m.Problems) > 0 {
		return
	}
	lost, overdue, again := m.Lost()
	v.wakeAt(again)
	if m.lost = lost; !overdue {
		m.lost, again = m.OutOfReach()
		v.wakeAt(again)
	}
	if overdue || m.lost {
		v.overdue++
	}
	v.countStaging(m)
	v.countFailed(m, overdue)
	if m.Wish == nil {
		v.names.add(m.OSVersion)
	}
	if a := m.Marks.Report.Available; a != m.OSVersion {
		v.names.add(seenAs(a))
	}
}

func (v *survey) countStaging(m *member) {
	switch {
	// An attempt on a node that isn't managed any more has no deadline: it would keep its place for ever.
	case m.Phase() != intent.PhaseStaging, !m.Interface.Known(), m.StuckStaging():
	case m.Marks.Intent.Action == marker.ActionConfirmUpdate:
		asked, end := m.JustAsked()
		v.wakeAt(end)
		if asked {
			v.confirming++
		}
	default:
		v.staging++
	}
}

// countFailed counts on how many nodes each version failed, by their own marks: after a reboot into it. What staging, a
// drain or an activation failed at is no version's fault. A node that is Lost in an attempt, or will be when this
// process has passed over it, failed too, unless it is well in its old boot: then the version was not tried. Nor is it
// the version that failed where the kubelet finds all well, and only the agent doesn't say so. A cycle says nothing of
// the version that it ends on.
func (v *survey) countFailed(m *member, overdue bool) {
	lost := ""
	if overdue && m.TriedTarget() && !m.Cycles() {
		lost = m.Marks.Intent.Target
	}
	if lost != "" {
		v.failed[lost]++
	}
	if f := m.Marks.Failure; f != nil {
		for _, version := range f.Broken {
			// One that failed here before and is Lost in its next attempt is one node all the same.
			if version != lost {
				v.failed[version]++
			}
		}
	}
}

// budget counts the members into the budgets. Up to maxLost Lost ones are left out.
func (v *survey) budget() {
	unknown := len(v.Slots)
	for i := range v.members {
		m := &v.members[i]
		if m.Slot {
			unknown--
		}
		away, again := v.isAway(m)
		m.away = away
		v.wakeAt(again)
		claim := budget.Claim{Disrupted: m.Slot || m.Disrupted(), Unreadable: !m.Slot && m.DisruptionUnreadable(),
			Away: m.away, Until: v.countsUntil(m)}
		if claim.Disrupted && !m.Fresh() {
			v.disrupted++
		}
		if m.lost && v.uncounted < v.maxLost() {
			v.uncounted++
			claim.Disrupted = false
		}
		for _, s := range m.budgets {
			s.Add(m.Node, m.Labelled() && m.Leaving == "", claim)
		}
	}
	// Slots of nodes that are gone, or that a late watch doesn't show yet: it isn't known of which group and zone they
	// are, so they count in each, until they are freed.
	v.disrupted += unknown
	v.fleet.scope.Settle(unknown)
	v.fresh.Settle(unknown)
	for _, g := range v.groups {
		g.scope.Settle(unknown)
	}
}

// maxLost is how many Lost nodes the limits leave out.
func (v *survey) maxLost() int { return v.set.MaxLost.Of(len(v.members)) }

// isAway reports whether a node uses budgets up that the operator didn't take out of service, and when the clock alone
// ends that.
func (v *survey) isAway(m *member) (away bool, again time.Time) {
	if !v.set.CountUnavailable || m.Fresh() || m.Slot || m.Disrupted() || !m.Labelled() || m.Leaving != "" || m.Ready && !m.Unschedulable {
		return false, time.Time{}
	}
	end := v.countsUntil(m)
	return end.IsZero() || v.Now.Before(end), end
}

// countsUntil is until when such a node does; zero if this process doesn't know since when it is.
func (v *survey) countsUntil(m *member) time.Time {
	if m.UnavailableSince.IsZero() {
		return time.Time{}
	}
	return m.UnavailableSince.Add(v.set.IgnoreAfter)
}
