package rule

import (
	"maps"
	"slices"
	"time"
	"unicode"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// Live is a Node that was just read from the API server.
type Live struct {
	Name, UID, ResourceVersion string
	Annotations                map[string]string
	Unschedulable              bool
}

// Write is what an agent wants to write, and all that it is judged by.
type Write struct {
	// NodeName and NodeUID are the node that the agent's identity is bound to.
	NodeName, NodeUID string
	Live              Live
	Patch             Patch
	// Now is the clock of the process that judges.
	Now time.Time
}

// Judge returns why a write is refused, nil if it is allowed. In this order:
//
//  1. The Node is the one that the token was issued for, by name and by UID.
//  2. The patch says which resourceVersion it was made from.
//  3. Every key is one of the agent's. Deletions count as changes.
//  4. That resourceVersion is the present one; otherwise the answer is 409, and the agent reads the Node again.
//  5. Every value that is set is one printable line, can be read back, and is within its limit; a reason is one of the
//     closed list; activated-id names the present intent.
//  6. Facts may be written at any time: if no answer changes, the write is allowed. A `busy` that is written once more
//     counts as a changed answer, so that it is judged against the present Node.
//  7. An answer names the present intent, which must be readable. Answer and facts together can be read back.
//  8. `busy` begins an intent: only if its answer was nothing or `busy` before, not after intent-until, not on a paused
//     node, and for a reboot only while the node is cordoned and in the boot of reboot-from. On a paused node a
//     `stabilize` may begin that gives the host's lock back; none begins under a lock that can't be read.
//  9. `ready` doesn't contradict the report's facts: after a reboot the boot ID must differ from reboot-from;
//     after an `error` on a prepare, the host must run the target.
//  10. `error` has a message.
//
// A node with an attempt of a plan differs in reboot-update alone, which is where the plan's pod runs: a plan that
// drains nothing needs no cordon; `ready` needs the target in current-version, and another boot ID only if the plan
// reboots. Where the plan can't be read, neither is allowed, nor `busy` on anything else.
//
// It checks what safety needs and no more, so that older and newer builds work together: which other answers suit an
// action is up to the agent. All of Live is of its resourceVersion, which the write has as its precondition.
func Judge(w Write) *Refusal {
	l := w.Live
	if l.Name != w.NodeName {
		return Refuse(ReasonNode, "node %.80q is not the agent's own, %q", l.Name, w.NodeName)
	}
	if l.UID != w.NodeUID {
		return OtherNode(l.Name)
	}
	if w.Patch.ResourceVersion == "" {
		return Refuse(ReasonVersion, "the patch has no metadata.resourceVersion")
	}
	keys := slices.Sorted(maps.Keys(w.Patch.Annotations))
	for _, k := range keys {
		if !marker.Owns(marker.WriterAgent, k) {
			return Refuse(ReasonKey, "annotation %.80q is not the agent's to write", k)
		}
	}
	if w.Patch.ResourceVersion != l.ResourceVersion {
		return Refuse(ReasonConflict, "node %q was changed since resourceVersion %.40q: read it again", l.Name, w.Patch.ResourceVersion)
	}
	after := w.Patch.apply(l.Annotations)
	if refusal := judgeValues(w.Patch, after); refusal != nil {
		return refusal
	}
	if !answers(w.Patch, l.Annotations, after) {
		return nil
	}
	return judgeAnswer(w, after)
}

// OtherNode is the refusal of a Node that has the name and not the UID of the identity.
func OtherNode(name string) *Refusal {
	return Refuse(ReasonNodeUID, "node %q is another one than the token was issued for", name)
}

// flagKeys are read by users and their scripts alone, so marker doesn't decode them.
var flagKeys = []marker.Key{marker.KeyActionActive, marker.KeyUpdateAvailable}

func judgeValues(p Patch, after map[string]string) *Refusal {
	for _, k := range slices.Sorted(maps.Keys(p.Annotations)) {
		v := p.Annotations[k]
		if v == nil {
			continue
		}
		for _, r := range *v {
			if !unicode.IsPrint(r) {
				return Refuse(ReasonValue, "annotation %q has a character that can't be printed: %U", k, r)
			}
		}
		if k == string(marker.KeyActivatedID) && *v != after[string(marker.KeyIntentID)] {
			return Refuse(ReasonIntent, "annotation %q must name the node's current intent", k)
		}
		if slices.Contains(flagKeys, marker.Key(k)) && *v != "true" && *v != "false" {
			return Refuse(ReasonValue, "annotation %q is neither true nor false", k)
		}
		if k == string(marker.KeyReason) && !slices.Contains(marker.ReportReasons(), marker.ReportReason(*v)) {
			return Refuse(ReasonValue, "annotation %q is not a reason: %.40q", k, *v)
		}
	}
	_, problems := marker.DecodeReport(after)
	for _, problem := range problems {
		if _, touched := p.Annotations[string(problem.Key)]; touched {
			return Refuse(ReasonValue, "annotation %s", problem)
		}
	}
	return nil
}

// answers reports whether the patch changes an answer, or writes busy once more.
func answers(p Patch, before, after map[string]string) bool {
	for _, k := range marker.AnswerKeys() {
		b, had := before[string(k)]
		a, has := after[string(k)]
		if had != has || b != a {
			return true
		}
		if _, touched := p.Annotations[string(k)]; touched && after[string(marker.KeyActionState)] == string(marker.StateBusy) {
			return true
		}
	}
	return false
}

func judgeAnswer(w Write, after map[string]string) *Refusal {
	i, problems := marker.DecodeIntent(w.Live.Annotations)
	if len(problems) > 0 {
		return Refuse(ReasonIntent, "the node's intent can't be read: annotation %s", problems[0])
	}
	if i.ID == "" {
		return Refuse(ReasonIntent, "the node has no intent to answer")
	}
	report, problems := marker.DecodeReport(after)
	if report.ActiveID != i.ID {
		return Refuse(ReasonIntent, "annotation %q must name the node's current intent, %q", marker.KeyActiveID, i.ID)
	}
	if len(problems) > 0 {
		return Refuse(ReasonValue, "annotation %s", problems[0])
	}
	switch report.State {
	case marker.StateBusy:
		return judgeBusy(w, i, report)
	case marker.StateReady:
		return judgeReady(w, i, report)
	case marker.StateError:
		if report.Message == "" {
			return Refuse(ReasonValue, "annotation %q is missing: an error needs a message", marker.KeyMessage)
		}
	case marker.StateNone:
		// An answer may be deleted.
	}
	return nil
}

func judgeBusy(w Write, i marker.Intent, report marker.Report) *Refusal {
	before, problems := marker.DecodeReport(w.Live.Annotations)
	for _, p := range problems {
		// The unreadable answer may be the error that forbids it.
		if p.Key == marker.KeyActiveID || p.Key == marker.KeyActionState {
			return Refuse(ReasonAfterAnswer, "the previous answer can't be read: annotation %s", p)
		}
	}
	switch before.Answer(i.ID) {
	case marker.StateError:
		return Refuse(ReasonAfterError, "intent %q was answered with an error already", i.ID)
	case marker.StateReady:
		return Refuse(ReasonAfterAnswer, "intent %q was answered already", i.ID)
	case marker.StateNone, marker.StateBusy:
	}
	if !w.Now.Before(i.Until) {
		return Refuse(ReasonUntil, "intent %q may not begin after %s", i.ID, i.Until.UTC().Format(time.RFC3339))
	}
	var lock *marker.Lock
	if i.Action == marker.ActionStabilize {
		if lock, problems = marker.DecodeLock(w.Live.Annotations); len(problems) > 0 {
			return Refuse(ReasonIntent, "the node's lock can't be read: annotation %s", problems[0])
		}
	}
	if _, paused := w.Live.Annotations[string(marker.KeyPaused)]; paused && (lock == nil || !lock.GiveBack) {
		return Refuse(ReasonPaused, "the node is paused")
	}
	plan, problems := marker.DecodePlan(w.Live.Annotations)
	if len(problems) > 0 {
		return planUnreadable(problems)
	}
	if i.Action != marker.ActionRebootUpdate {
		return nil
	}
	if inService := plan != nil && plan.Drain == marker.DrainNothing; !w.Live.Unschedulable && !inService {
		return Refuse(ReasonNotCordoned, "the node is not cordoned")
	}
	if report.BootID != "" && report.BootID != i.RebootFrom {
		return Refuse(ReasonRebooted, "annotation %q shows that the host rebooted already", marker.KeyBootID)
	}
	return nil
}

func judgeReady(w Write, i marker.Intent, report marker.Report) *Refusal {
	switch i.Action {
	case marker.ActionRebootUpdate:
		plan, problems := marker.DecodePlan(w.Live.Annotations)
		if len(problems) > 0 {
			return planUnreadable(problems)
		}
		if plan != nil && report.Current != i.Target {
			return Refuse(ReasonUnproven, "annotation %q does not show the target, %s", marker.KeyCurrentVersion, i.Target)
		}
		if plan != nil && plan.Effect != marker.EffectReboot {
			return nil
		}
		if report.BootID == "" || report.BootID == i.RebootFrom {
			return Refuse(ReasonUnproven, "annotation %q does not show that the host rebooted", marker.KeyBootID)
		}
	case marker.ActionPrepareUpdate, marker.ActionConfirmUpdate:
		before, _ := marker.DecodeReport(w.Live.Annotations)
		if before.Answer(i.ID) == marker.StateError && report.Current != i.Target {
			return Refuse(ReasonUnproven, "intent %q was answered with an error already, and the host does not run %s", i.ID, i.Target)
		}
	case marker.ActionStabilize, marker.ActionResetState:
		// The facts can't contradict them.
	}
	return nil
}

func planUnreadable(problems []marker.Problem) *Refusal {
	return Refuse(ReasonIntent, "the node's plan can't be read: annotation %s", problems[0])
}
