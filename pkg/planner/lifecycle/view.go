package lifecycle

import (
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// View is one node with all that counts for it whatever the others do.
type View struct {
	*fleet.Node
	Now      time.Time
	Settings *policy.Settings
	// Rules are those of the node's group.
	Rules *policy.Rules
	// Slot: the node holds one by the controller's list.
	Slot bool
	// Alone: it is the only node of its cluster, but for those that are on their way out.
	Alone bool
}

// deadline is a moment by which something must have happened.
type deadline struct {
	// over: it has gone by, by the clock alone. passed: and this process has passed over the node in its phase since, so
	// that a new leader acts on nothing that it sees for the first time.
	over, passed bool
	// again is when the clock alone changes that; zero if it doesn't.
	again time.Time
}

// deadline is the end of a time that began at since. A beginning implausibly far in the future, by a clock that ran
// ahead, is over too.
func (v *View) deadline(since time.Time, d time.Duration) deadline {
	end := since.Add(d)
	switch {
	case v.Now.Before(end) && !since.After(v.Now.Add(v.Settings.RetryMax)):
		return deadline{again: end}
	case !v.PassedOver:
		return deadline{over: true, again: v.Now.Add(time.Second)}
	}
	return deadline{over: true, passed: true}
}

// LeftInPlace reports whether the node is updated without a drain.
func (v *View) LeftInPlace() bool { return v.Settings.SingleNode == policy.SingleNodeAllow && v.Alone }

// rebooted reports whether the kubelet names another boot than the one to be left behind. A kubelet that names none has
// not said so.
func (v *View) rebooted() bool { return v.BootID != "" && v.BootID != v.Marks.Intent.RebootFrom }

// confirmed reports whether agent and kubelet name the same new boot and the same version.
func (v *View) confirmed() bool {
	return v.rebooted() && v.BootID == v.Marks.Report.BootID && v.OSVersion == v.Marks.Report.Current
}

// answer is what the node's agent says of the current intent.
func (v *View) answer() marker.State { return v.Marks.Report.Answer(v.Marks.Intent.ID) }

// withdrawn reports whether the node's host neither offers the target any more nor runs it.
func (v *View) withdrawn() bool {
	m := &v.Marks
	return m.Report.Available != m.Intent.Target && m.Report.Current != m.Intent.Target
}

// soaked is when the soak that runs is over.
func (v *View) soaked() time.Time { return v.Marks.Disruption.Soak.Add(v.Rules.Soak) }

// agentPatience is how long a node that serves nothing is kept for an agent that isn't Ready. It is longer than the
// update of the agents or of the proxies takes.
const agentPatience = 2 * time.Minute

// agentAway is when the node's agent has been away for too long. Without the kubelet's report nothing can be said of the
// agent.
func (v *View) agentAway() deadline {
	if !v.Ready || v.AgentReady || v.AgentLostSince.IsZero() {
		return deadline{}
	}
	return v.deadline(v.AgentLostSince, agentPatience)
}

// OutOfService reports whether the node is disrupted and isn't known to be back.
func (v *View) OutOfService() bool {
	switch v.Phase() {
	case intent.PhaseVerifying:
		return v.Unschedulable || !v.Ready || v.lost().passed
	case intent.PhaseResetting:
		return true
	default:
		return v.Disrupted()
	}
}

// Denied reports whether the node has come through its update as its kubelet reports, while its agent says something else.
func (v *View) Denied() bool {
	m := &v.Marks
	if !v.rebooted() || !v.Ready || v.OSVersion != m.Intent.Target || v.confirmed() && v.answer() != marker.StateError {
		return false
	}
	d := m.Disruption
	return v.Phase() != intent.PhaseVerifying || d.Soak != nil && d.Ready == v.ReadySince && !v.Now.Before(v.soaked())
}

// TriedTarget reports whether the version that a late node is to go to may have been booted: as its kubelet reports, or
// because the node isn't there to say anything else.
func (v *View) TriedTarget() bool { return (v.rebooted() || !v.Ready) && !v.Denied() }

// RebootBegun reports whether a node is past the point of no return and it was not seen yet what came of it: its host may
// go down at any moment, whatever is written to the Node.
func RebootBegun(n *fleet.Node) bool {
	v := View{Node: n}
	failed := v.answer() == marker.StateError && n.Marks.Report.BootID == n.BootID
	return intent.PointOfNoReturn(n.Marks) && !v.rebooted() && !failed
}

func orNoReason(s string) string {
	if s == "" {
		return "no reason given"
	}
	return s
}
