package chaos

import (
	"strings"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// drained (S2): a reboot is asked only of a node that is cordoned and empty at that moment. Of a pod that
// was bound after the controller's last look it could not know. A node that was rebooted by another program
// since its cordon has nothing to lose any more.
func drained(s *story) {
	for _, st := range s.nodes.all() {
		id, action := st.after.mark(marker.KeyIntentID), st.after.mark(marker.KeyActionWanted)
		if action != string(marker.ActionRebootUpdate) || id == st.before.mark(marker.KeyIntentID) {
			continue
		}
		s.check(st.after.unschedulable, st.node, st.at, "asked to reboot while it is not cordoned")
		s.check(st.after.disrupted(), st.node, st.at, "asked to reboot without a disruption")
		if st.after.bootID != st.after.mark(marker.KeyRebootFrom) {
			continue
		}
		last, ok := s.pods.lastLook(st.node, st.at)
		cordoned := st.at
		if d := st.after.marks().Disruption; d != nil {
			cordoned = d.Since
		}
		ok = ok && last.at.After(cordoned)
		from := cordoned
		if ok {
			from = last.at
		}
		if st.hole() || s.inOutage(from, st.at) {
			// When it was written isn't known, or a look may be missing.
			continue
		}
		s.check(ok, st.node, st.at, "asked to reboot without a look at its pods since the cordon")
		s.check(len(last.left) == 0, st.node, st.at, "asked to reboot when the controller's last look showed %s", strings.Join(last.left, ", "))
		left := s.pods.left(st.node, st.after.version, st.at, last.at)
		s.check(len(left) == 0, st.node, st.at, "asked to reboot with pods on it: %s", strings.Join(left, ", "))
	}
}
