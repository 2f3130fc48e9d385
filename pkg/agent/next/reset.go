package next

import (
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

func reset(v View, answer marker.State) Step {
	h := v.Host
	if answer == marker.StateReady {
		return keepFresh(v)
	}
	if h.Locked {
		return locked(v, answer)
	}
	if h.State != HostReady {
		return report(marker.StateReady, "")
	}
	if done, _ := ended(v, CommandDeactivate); done {
		if answer != marker.StateError {
			return report(marker.StateError, "deactivating %s: %s", orUnknown(h.Staged), problem(h))
		}
		if v.Now.Sub(v.Asked.At) < time.Minute {
			return wait(pollSlow)
		}
		return command(CommandDeactivate)
	}
	if step, ok := settle(v, CommandDeactivate); ok && v.Asked.ID == v.Intent.ID {
		return step
	}
	return command(CommandDeactivate)
}
