package sim

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// cycleOf is the request that a disruption is for that brings no version; empty if it brings one.
func cycleOf(n *corev1.Node) string {
	var d struct {
		Cycle string `json:"cycle"`
	}
	_ = json.Unmarshal([]byte(annotation(n, marker.KeyDisruption)), &d)
	return d.Cycle
}

// cycles reports whether the attempt that stands on a node brings no version.
func cycles(n *corev1.Node) bool {
	if has(n, marker.KeyDisruption) {
		return cycleOf(n) != ""
	}
	return has(n, marker.KeyCycle) && annotation(n, marker.KeyTargetVersion) == annotation(n, marker.KeyCurrentVersion)
}

// cycles: a request has one attempt at most, and is removed with the end of that alone; a cycle goes to what runs, and
// says nothing of a version (S3, S10).
func (c *checks) cycles(actor string, before, after *corev1.Node, ended attempt) {
	w := c.w
	if c.tampered[string(after.UID)] {
		return
	}
	asked, stands, id := annotation(before, marker.KeyCycle), annotation(after, marker.KeyCycle), cycleOf(after)
	remembered := func(id string) bool {
		for _, a := range history(before) {
			if a.Cycle == id {
				return true
			}
		}
		return false
	}
	if stands != "" && stands != asked {
		w.violate("S5", "%s asks for a cycle of %s itself", actor, after.Name)
	}
	if asked != "" && stands == "" {
		// What a node has asked for that leaves is gone, also while its host is unlocked.
		leaves := !has(after, marker.KeyIntentID) || givesBack(after) && after.Labels[string(marker.KeyInterfaceVersion)] == ""
		of := before.Labels[string(marker.KeyInterfaceVersion)] == "plan" && !has(before, marker.KeyDisruption)
		if ended.Cycle != asked && !remembered(asked) && !leaves && !of {
			w.violate("L1", "%s removes the request %q of %s, and no attempt for it has ended", actor, asked, after.Name)
		}
	}
	if ended.Cycle != "" && stands == ended.Cycle {
		w.violate("S3", "%s ends an attempt on %s for the request %q, and leaves that", actor, after.Name, stands)
	}
	if has(after, marker.KeyDisruption) && !has(before, marker.KeyDisruption) {
		c.cycleBegins(actor, before, id, remembered)
	}
	if cycleOf(before) != "" && ended.Outcome != "" {
		c.count(CycleEnded)
		if annotation(before, marker.KeyFailure) != annotation(after, marker.KeyFailure) {
			w.violate("S10", "%s changes the failures of %s with the end of a cycle", actor, after.Name)
		}
		if ended.Outcome == string(marker.OutcomeUpdated) || ended.Cycle != cycleOf(before) {
			w.violate("S10", "%s calls the cycle %q of %s %s of %q", actor, cycleOf(before), after.Name, ended.Outcome, ended.Cycle)
		}
	}
}

// cycleBegins: the request that stands at a cordon had none before, and a cycle goes to what both witnesses say that
// runs.
func (c *checks) cycleBegins(actor string, n *corev1.Node, id string, remembered func(string) bool) {
	w, k := c.w, c.of(n)
	asked := annotation(n, marker.KeyCycle)
	if asked != "" {
		k.requests[asked]++
		if k.requests[asked] > 1 && !k.again[asked] || remembered(asked) {
			w.violate("S3", "%s cordons %s once more for the request %q", actor, n.Name, asked)
		}
	}
	runs := annotation(n, marker.KeyTargetVersion) == annotation(n, marker.KeyCurrentVersion)
	switch {
	case id == "" && runs:
		w.violate("S6", "%s cordons %s for what it runs, and for no request", actor, n.Name)
	case id == "":
		return
	case id != asked:
		w.violate("S6", "%s cordons %s for the request %q, and %q stands", actor, n.Name, id, asked)
	case !runs:
		w.violate("S6", "%s cordons %s for a cycle on %s, and it runs %s", actor, n.Name, annotation(n, marker.KeyTargetVersion), annotation(n, marker.KeyCurrentVersion))
	}
	c.count(Cycled)
}
