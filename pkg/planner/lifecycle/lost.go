package lifecycle

import (
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// Lost reports whether a node is past its deadline after the point of no return and hasn't what ends that; overdue reports
// whether it is by the clock alone, so that it will be Lost once this process has passed over it. again is when the clock
// alone changes either.
func (v *View) Lost() (lost, overdue bool, again time.Time) {
	d := v.lost()
	return d.passed, d.over, d.again
}

func (v *View) lost() deadline {
	if v.Marks.Disruption == nil || len(v.Problems) > 0 {
		return deadline{}
	}
	m, d := &v.Marks, &v.Settings.Deadlines
	switch intent.PhaseOf(*m) {
	case intent.PhaseRebooting:
		if !intent.PointOfNoReturn(*m) && !v.rebooted() {
			return deadline{}
		}
		return v.deadline(m.Intent.Time, d.Reboot)
	case intent.PhaseReturning:
		failed := v.answer() == marker.StateError
		if failed && v.inOldBoot() {
			return deadline{}
		}
		switch well := v.Ready && v.confirmed() && (failed || m.Report.Current == m.Intent.Target); {
		case !well:
			return v.deadline(m.Intent.Time, d.Reboot+d.Return)
		case v.podsUnwell(time.Time{}):
			return v.deadline(m.Intent.Time, d.Reboot+d.Return+v.Rules.Verify.Deadline)
		}
		return v.hookLate()
	case intent.PhaseVerifying:
		// A node that comes and goes is never well for a whole soak, and Lost like one that stays away.
		well := v.Ready && v.BootID == m.Report.BootID && v.OSVersion == m.Report.Current
		soak := m.Disruption.Soak
		switch {
		case !well || soak == nil || m.Disruption.Ready != v.ReadySince || v.Now.Before(v.soaked()):
			return v.deadline(m.Intent.Time, v.Rules.Soak+d.Return)
		case v.podsUnwell(v.soaked()):
			return v.deadline(v.soaked(), v.Rules.Verify.Deadline)
		}
	default:
		// The host can't have begun to reboot.
	}
	return deadline{}
}

// inOldBoot reports whether neither agent nor kubelet has left the boot that is to be left behind.
func (v *View) inOldBoot() bool {
	m := &v.Marks
	return m.Report.BootID == m.Intent.RebootFrom && v.BootID == m.Intent.RebootFrom
}

// lostSoon reports whether the node will be Lost once this process has passed over it. What another leader noted on it,
// that it is Lost for example, is not written over for that moment.
func (v *View) lostSoon() bool { return !v.PassedOver && v.lost().over }

// missed is what was not seen of a reboot by its deadline.
func (v *View) missed() string {
	switch m := &v.Marks; {
	case !v.rebooted() && m.Report.BootID != m.Intent.RebootFrom:
		return "is back by its agent's word, and its kubelet has not reported the new boot"
	case !v.rebooted() && v.Ready:
		return "has not begun to reboot"
	case !v.rebooted():
		return "has not come back from its reboot"
	case !v.Ready:
		return "has not become Ready on its new boot"
	}
	return "is Ready on its new boot, and its agent does not say the same of it"
}

// waitLost leaves a Lost node as it is, and says what was not seen of it.
func (v *View) waitLost(what string) Next {
	if !v.Unschedulable {
		return v.wait(intent.PhaseLost, plan.ReasonLost,
			plan.Messagef("%s %s; it counts as Lost until it is healthy, deleted, or its label is removed", v.Name, what))
	}
	return v.wait(intent.PhaseLost, plan.ReasonLost,
		plan.Messagef("%s %s; it stays cordoned until it is healthy, deleted, or its label is removed", v.Name, what))
}
