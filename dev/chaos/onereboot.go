package chaos

import (
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// begun is a reboot past its point of no return.
type begun struct {
	id, from string
	used     bool
}

// oneReboot (S3): a reboot begins with an accepted `busy`, before the end of its intent and on a cordoned
// node; and each boot that a kubelet reports has one of its own.
func oneReboot(s *story) {
	for _, name := range sortedNodes(s.nodes) {
		var open []*begun
		for _, st := range s.nodes[name] {
			if b := s.begins(st); b != nil && (len(open) == 0 || open[len(open)-1].id != b.id) {
				open = append(open, b)
				s.figures.Begun++
			}
			from, to := st.before.bootID, st.after.bootID
			if st.first || from == "" || to == from {
				continue
			}
			s.figures.Reboots++
			s.check(claim(open, from), name, st.at, "rebooted from %s to %s, and no intent that was begun stands for that", from, to)
		}
	}
}

func claim(open []*begun, from string) bool {
	for _, b := range open {
		if b.from == from && !b.used {
			b.used = true
			return true
		}
	}
	return false
}

// begins reports whether a step says busy to a reboot, also once more.
func (s *story) begins(st step) *begun {
	n := st.after
	id := n.mark(marker.KeyIntentID)
	busy := id != "" && n.mark(marker.KeyActionWanted) == string(marker.ActionRebootUpdate) &&
		n.mark(marker.KeyActiveID) == id && n.mark(marker.KeyActionState) == string(marker.StateBusy)
	_, says := st.patch.Metadata.Annotations[string(marker.KeyActionState)]
	if !busy || !says && !st.hole() {
		return nil
	}
	if !st.hole() {
		until, err := time.Parse(time.RFC3339, n.mark(marker.KeyIntentUntil))
		s.check(err == nil && st.at.Before(until), st.node, st.at, "intent %s was begun after its end, %s", id, n.mark(marker.KeyIntentUntil))
		s.check(n.unschedulable, st.node, st.at, "intent %s was begun on a node that is not cordoned", id)
		_, paused := n.annotations[string(marker.KeyPaused)]
		s.check(!paused, st.node, st.at, "intent %s was begun on a paused node", id)
	}
	return &begun{id: id, from: n.mark(marker.KeyRebootFrom)}
}
