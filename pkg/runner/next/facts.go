package next

import (
	"strconv"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// report is an answer with the facts that go with it.
func (v *View) report(answer marker.Report) marker.Report {
	n := v.Node
	answer.Available, answer.ActivatedID = "", ""
	answer.BootID, answer.Current = n.BootID, v.current()
	answer.Protocol, answer.OperatorVersion = marker.Protocol, marker.Clip(v.Build, 128)
	return answer
}

// current is what the node runs, of the attempt's plan; empty outside an attempt.
func (v *View) current() string {
	n := v.Node
	switch {
	case n.Unreadable:
		return n.Report.Current
	case n.Plan == nil:
		return ""
	case n.Plan.Proof == marker.ProofContent:
		return v.content()
	}
	shows := n.Plan.Version(n.Info.Shows(n.Plan.Proof))
	if same(shows, n.Intent.Target) {
		return n.Intent.Target
	}
	return shows
}

// content is what the node has of a plan whose target is its content. A pod proves it, for the attempt that it was made
// for; after that, until the attempt ends, it is as it was said.
func (v *View) content() string {
	n := v.Node
	done := n.Plan.Done(n.Plan.Digest)
	switch n.Intent.Action {
	case marker.ActionRebootUpdate:
		if p := v.own(); p != nil && p.Over() && v.proven(p) {
			return done
		}
	case marker.ActionStabilize:
		if n.Report.Current == done {
			return done
		}
	case marker.ActionPrepareUpdate, marker.ActionConfirmUpdate, marker.ActionResetState:
		// Nothing was applied yet, or what was is not known.
	}
	return n.Plan.Done("")
}

// same reports whether a version is the target, however its v is written.
func same(version, target string) bool {
	if marker.PlanOf(version) != marker.PlanOf(target) || marker.PlanDigestOf(version) != marker.PlanDigestOf(target) {
		return false
	}
	order, ordered := marker.ComparePlanTargets(marker.PlanTargetOf(version), marker.PlanTargetOf(target))
	return ordered && order == 0
}

// encode returns the annotations of a report: the agent's but for what only hosts with the Update API have.
func encode(r marker.Report) map[marker.Key]string {
	out := marker.EncodeReport(r)
	delete(out, marker.KeyAvailableVersion)
	delete(out, marker.KeyUpdateAvailable)
	out[marker.KeyActionActive] = strconv.FormatBool(r.State == marker.StateBusy)
	return out
}

// facts returns what the facts change of the Node while the answer stays. The answer's keys are left out: a patch that
// names them would be judged as an answer.
func (v *View) facts() map[marker.Key]*string {
	n := v.Node
	changes := marker.Diff(n.Annotations, encode(v.report(n.Report)), marker.WriterAgent)
	for _, k := range marker.AnswerKeys() {
		delete(changes, k)
	}
	if n.Report.Protocol >= marker.Protocol && len(changes) == len(builds(changes)) {
		return nil
	}
	return changes
}

// builds are the keys among changes that tell of the runner alone. They are written beside others, and by themselves
// only for a newer protocol: runners of two builds, as there are while one replaces the other, would write in turn.
func builds(changes map[marker.Key]*string) []marker.Key {
	var found []marker.Key
	for _, k := range []marker.Key{marker.KeyProtocol, marker.KeyOperatorVersion} {
		if _, has := changes[k]; has {
			found = append(found, k)
		}
	}
	return found
}
