package planner

import (
	"maps"
	"slices"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// verdict is why a version is no target now; without a reason it is one.
type verdict struct {
	reason   plan.Reason
	sentence plan.Message
}

// compare orders two versions; few are asked for, and often.
func (p *planner) compare(a, b string) int {
	if a == b {
		return 0
	}
	c, known := p.compared[[2]string{a, b}]
	if !known {
		c = marker.CompareVersions(a, b)
		p.compared[[2]string{a, b}] = c
	}
	return c
}

// target judges a version, once in a plan.
func (p *planner) target(version string) verdict {
	v, known := p.verdicts[version]
	if !known {
		v = p.judge(version)
		p.verdicts[version] = v
	}
	return v
}

func (p *planner) judge(version string) verdict {
	r := &p.set.Versions
	switch {
	case r.Deny != nil && r.Deny.Contains(version):
		return verdict{plan.ReasonVersionDenied, plan.Say("the policy denies {s}: it is in {s2}").With(version, r.Deny.String())}
	case r.Allow != nil && !r.Allow.Contains(version):
		return verdict{plan.ReasonVersionDenied, plan.Say("the policy does not allow {s}: it is not in {s2}").With(version, r.Allow.String())}
	case r.Hold != "" && marker.CompareVersions(version, r.Hold) != 0:
		return verdict{plan.ReasonHeld, plan.Say("the policy holds the fleet at {s2}, and {s} is offered").With(version, r.Hold)}
	}
	if failed, limit := p.failed[version], p.set.MaxFailed.Of(p.fleet.nodes); failed >= limit && !p.Acknowledged[version] {
		return verdict{plan.ReasonVersionStopped, stoppedSentence(version, failed, limit)}
	}
	if r.MinAge > 0 {
		since, seen := p.Seen[version]
		if !seen && !p.known(version) {
			return verdict{plan.ReasonVersionTooNew, plan.Say("{s} is named by no other node: that it has been known for {d} counts from when a second one is offered it, or runs it").
				With(version).Lasting(r.MinAge)}
		}
		if !seen || since.After(p.Now) {
			since = p.Now
		}
		if end := since.Add(r.MinAge); p.Now.Before(end) {
			p.wakeAt(end)
			return verdict{plan.ReasonVersionTooNew, plan.Say("{s} was first seen {t} and must be known for {d}").
				With(version).At(since).Lasting(r.MinAge).Over(end)}
		}
	}
	return verdict{}
}

func stoppedSentence(version string, failed, limit int) plan.Message {
	return plan.Say("{s} failed on {n} nodes, and from {n2} on nothing starts for it: it goes on with a newer version, or after `kubectl bottlerocket acknowledge {s}`").
		With(version).Count(failed, limit)
}

// stopVersions tells of all versions that failed on too many nodes and that some node would go to.
func (p *planner) stopVersions() {
	limit := p.set.MaxFailed.Of(p.fleet.nodes)
	for _, version := range slices.Sorted(maps.Keys(p.failed)) {
		if failed := p.failed[version]; failed >= limit && !p.Acknowledged[version] && p.wanted(version) {
			p.out.Stopped = append(p.out.Stopped, plan.StoppedVersion{Version: version, Message: stoppedSentence(version, failed, limit)})
		}
	}
}

// wanted tells if some node is offered a version that it doesn't run, or is on its way to it.
func (p *planner) wanted(version string) bool {
	for i := range p.Nodes {
		m := &p.Nodes[i].Marks
		if p.Nodes[i].Labelled() && m.Report.Current != version && (m.Report.Available == version || m.Intent.Target == version) {
			return true
		}
	}
	return false
}

// countFailed counts on how many nodes each version failed, by their own marks: after a reboot into it. What staging, a
// drain or an activation failed at is no version's fault. A node that is Lost in an attempt, or will be when this
// process has passed over it, failed too, unless it is well in its old boot: then the version was not tried. Nor is it
// the version that failed where the kubelet finds all well, and only the agent doesn't say so.
func (p *planner) countFailed(n *fleet.Node, late bool) {
	lost := ""
	if late && (rebooted(n) || !n.Ready) && !p.denied(n) {
		lost = n.Marks.Intent.Target
	}
	if lost != "" {
		p.failed[lost]++
	}
	if f := n.Marks.Failure; f != nil {
		for _, v := range f.Broken {
			// One that failed here before and is Lost in its next attempt is one node all the same.
			if v != lost {
				p.failed[v]++
			}
		}
	}
}

// blamesVersion reports whether a failure can be the version's own doing, which takes that the host has booted it
// (S10). Before that only the old version runs, and what fails is the host's repository, disk or lock, or its power.
func blamesVersion(r plan.Reason) bool { return r == plan.ReasonRolledBack }

// denied reports whether a node has come through its update by its kubelet's word, and its agent says something else.
func (p *planner) denied(n *fleet.Node) bool {
	m := &n.Marks
	if !rebooted(n) || !n.Ready || n.OSVersion != m.Intent.Target || confirmed(n) && m.Report.Answer(m.Intent.ID) != marker.StateError {
		return false
	}
	d := m.Disruption
	return n.Phase() != intent.PhaseVerifying || d.Soak != nil && d.Ready == n.ReadySince && !p.Now.Before(p.soaked(n))
}

// workloadsBlameVersion tells if workloads that did not come back are held against the version that a node has now: they
// were seen, and no other node in our hands could be where their pods are missing.
func (p *planner) workloadsBlameVersion(n *fleet.Node) bool {
	if n.Checked.Failed != "" {
		return false
	}
	for i := range p.Nodes {
		if other := &p.Nodes[i]; other.UID != n.UID && p.outOfService(other) {
			return false
		}
	}
	return true
}

// outOfService tells if a node is in our hands and isn't back, as far as anybody can tell.
func (p *planner) outOfService(n *fleet.Node) bool {
	switch n.Phase() {
	case intent.PhaseVerifying:
		return n.Unschedulable || !n.Ready || p.isLost(n)
	case intent.PhaseResetting:
		return true
	}
	return n.Disrupted()
}
