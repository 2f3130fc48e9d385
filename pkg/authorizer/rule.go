package authorizer

import (
	"maps"
	"slices"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// Live is a Node as it was just read.
type Live struct {
	Name, UID, ResourceVersion string
	Annotations                map[string]string
	Unschedulable              bool
}

// Write is what an agent wants to write, and all that it is judged by.
type Write struct {
	Identity Identity
	Live     Live
	Patch    Patch
	// Now is the proxy's clock.
	Now time.Time
}

// answerKeys are the keys that answer an intent; the agent's others are facts.
var answerKeys = []marker.Key{marker.KeyActiveID, marker.KeyActionState, marker.KeyMessage}

// Judge returns why a write is refused, nil if it is allowed. In this order:
//
//  1. The Node is the one that the token was issued for, by name and UID.
//  2. The patch was made from the resourceVersion that stands now (409 else: look again).
//  3. Every key is the agent's own; a deletion is a change like any other.
//  4. Every value that is set can be read back and is within its limit.
//  5. Facts may be written at any time. If nothing but facts changes, that is all. An answer that is
//     written once more counts as one, so that `busy` can be affirmed against what stands now.
//  6. An answer names the intent that stands, which can be read.
//  7. `busy` begins: not after intent-until, not on a paused node, not after this intent was answered
//     `error`, and for a reboot only while the node is cordoned.
//  8. `error` says what is wrong.
//
// Older and newer builds get along with this: which answer suits which action is the agent's matter.
func Judge(w Write) *Refusal {
	l := w.Live
	if l.Name != w.Identity.NodeName {
		return refuse(ReasonNode, "node %q is not the agent's own, %q", l.Name, w.Identity.NodeName)
	}
	if l.UID != w.Identity.NodeUID {
		return refuse(ReasonNodeUID, "node %q is another one than the token was issued for", l.Name)
	}
	if w.Patch.ResourceVersion == "" {
		return refuse(ReasonVersion, "the patch has no metadata.resourceVersion")
	}
	if w.Patch.ResourceVersion != l.ResourceVersion {
		return refuse(ReasonConflict, "node %q was changed since resourceVersion %s: look again", l.Name, w.Patch.ResourceVersion)
	}
	keys := slices.Sorted(maps.Keys(w.Patch.Annotations))
	for _, k := range keys {
		if !marker.Owns(marker.WriterAgent, k) {
			return refuse(ReasonKey, "annotation %q is not the agent's to write", k)
		}
	}
	after := w.Patch.apply(l.Annotations)
	_, problems := marker.DecodeReport(after)
	for _, p := range problems {
		if _, touched := w.Patch.Annotations[string(p.Key)]; touched {
			return refuse(ReasonValue, "annotation %s", p)
		}
	}
	if !answers(w.Patch, l.Annotations, after) {
		return nil
	}
	return judgeAnswer(w, after)
}

// answers tells if the patch changes an answer, or says busy once more.
func answers(p Patch, before, after map[string]string) bool {
	for _, k := range answerKeys {
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
		return refuse(ReasonIntent, "the intent that stands can't be read: annotation %s", problems[0])
	}
	if i.ID == "" {
		return refuse(ReasonIntent, "no intent stands that could be answered")
	}
	report, problems := marker.DecodeReport(after)
	if len(problems) > 0 {
		return refuse(ReasonValue, "annotation %s", problems[0])
	}
	if report.ActiveID != i.ID {
		return refuse(ReasonIntent, "annotation %q must name the intent that stands, %q", marker.KeyActiveID, i.ID)
	}
	switch report.State {
	case marker.StateBusy:
		return judgeBusy(w, i)
	case marker.StateError:
		if report.Message == "" {
			return refuse(ReasonValue, "annotation %q is missing: an error says what is wrong", marker.KeyMessage)
		}
	}
	return nil
}

func judgeBusy(w Write, i marker.Intent) *Refusal {
	before, _ := marker.DecodeReport(w.Live.Annotations)
	if before.Answer(i.ID) == marker.StateError {
		return refuse(ReasonAfterError, "intent %q was answered with an error already", i.ID)
	}
	if !w.Now.Before(i.Until) {
		return refuse(ReasonUntil, "intent %q may not begin after %s", i.ID, i.Until.UTC().Format(time.RFC3339))
	}
	if _, paused := w.Live.Annotations[string(marker.KeyPaused)]; paused {
		return refuse(ReasonPaused, "the node is paused")
	}
	if i.Action == marker.ActionRebootUpdate && !w.Live.Unschedulable {
		return refuse(ReasonNotCordoned, "the node is not cordoned any more")
	}
	return nil
}
