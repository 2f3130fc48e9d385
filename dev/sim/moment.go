package sim

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// await lets a fault happen at its moment.
func (w *world) await(f Fault) { w.awaited = append(w.awaited, f) }

// moment lets what was put off to it happen, within the time of a few requests.
func (w *world) moment(node string, m Moment) {
	if w.calm {
		return
	}
	at := time.Duration(-1)
	for i := 0; i < len(w.awaited); {
		f := w.awaited[i]
		// One at a time, or those that belong together.
		if f.When != m || at >= 0 && f.At != at {
			i++
			continue
		}
		at = f.At
		w.awaited = append(w.awaited[:i:i], w.awaited[i+1:]...)
		for i, machine := range w.machines {
			if machine.nodeName == node {
				f.On = i
			}
		}
		d := w.between(0, 10*time.Millisecond)
		switch w.rng.IntN(4) {
		case 0:
			d = w.between(0, 10*time.Second)
		case 1:
			d = w.between(0, 60*time.Millisecond)
		}
		w.after(d, func() {
			if !w.calm {
				w.apply(f)
			}
		})
	}
}

// momentOf finds out which moment a write of a node is.
func momentOf(before, after *corev1.Node) Moment {
	switch was, is := has(before, marker.KeyDisruption), has(after, marker.KeyDisruption); {
	case !was && is:
		return AtCordon
	case was && !is:
		return AtEnd
	}
	action := annotation(after, marker.KeyActionWanted)
	if annotation(before, marker.KeyIntentID) != annotation(after, marker.KeyIntentID) {
		switch action {
		case string(marker.ActionPrepareUpdate):
			return AtPrepare
		case string(marker.ActionConfirmUpdate):
			return AtConfirm
		case string(marker.ActionRebootUpdate):
			return AtReboot
		}
		if has(after, marker.KeyDisruption) {
			return AtReturn
		}
		return ""
	}
	state := annotation(after, marker.KeyActionState)
	if state == annotation(before, marker.KeyActionState) && annotation(before, marker.KeyActiveID) == annotation(after, marker.KeyActiveID) {
		return ""
	}
	switch {
	case state != string(marker.StateBusy):
		return AtAnswer
	case action == string(marker.ActionRebootUpdate):
		return AtBusy
	}
	return ""
}
