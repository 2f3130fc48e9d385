package sim

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

var agentKeys = []marker.Key{marker.KeyActiveID, marker.KeyActionState, marker.KeyReason, marker.KeyMessage, marker.KeyAvailableVersion, marker.KeyCurrentVersion,
	marker.KeyOfferedVersions, marker.KeyVersionLock, marker.KeyWaveSeed,
	marker.KeyBootID, marker.KeyActivatedID, marker.KeyProtocol, marker.KeyOperatorVersion, marker.KeyActionActive, marker.KeyUpdateAvailable}

// report holds an agent's write against S3 and S4.
func (c *checks) report(before, after *corev1.Node) {
	w := c.w
	c.count("S4")
	for _, key := range changedKeys(before, after) {
		if !slices.Contains(agentKeys, marker.Key(key)) {
			w.violate("S4", "the agent of %s wrote %s", after.Name, key)
		}
	}
	if before.Spec.Unschedulable != after.Spec.Unschedulable {
		w.violate("S4", "the agent of %s changed the cordon", after.Name)
	}
	id, state := annotation(after, marker.KeyActiveID), annotation(after, marker.KeyActionState)
	if id == annotation(before, marker.KeyActiveID) && state == annotation(before, marker.KeyActionState) {
		return
	}
	w.note("agent", "%s: %s to %s %s", after.Name, state, annotation(after, marker.KeyActionWanted), annotation(after, marker.KeyMessage))
	if id != annotation(after, marker.KeyIntentID) {
		w.violate("S4", "the agent of %s answered %q, and %q stands", after.Name, id, annotation(after, marker.KeyIntentID))
	}
	c.answered(before, after, w.cluster.machineOf(after.Name).agent.judged)
	if state == string(marker.StateReady) {
		if annotation(after, marker.KeyActionWanted) == string(marker.ActionRebootUpdate) {
			c.count("S7")
			m := w.cluster.machineOf(after.Name)
			if s := m.host.Snapshot(); s.Version != annotation(after, marker.KeyTargetVersion) || s.BootID == annotation(after, marker.KeyRebootFrom) {
				w.violate("S7", "the agent of %s claims %s, and the host runs %s", after.Name, annotation(after, marker.KeyTargetVersion), s.Version)
			}
		}
	}
}

// answered holds an answer against S3 and S6; judged is the clock by which it was judged.
func (c *checks) answered(before, after *corev1.Node, judged time.Time) {
	w, k, id := c.w, c.of(after), annotation(after, marker.KeyActiveID)
	switch annotation(after, marker.KeyActionState) {
	case string(marker.StateError):
		k.failed[id] = true
	case string(marker.StateBusy):
		c.count("S3")
		if until, err := time.Parse(time.RFC3339, annotation(after, marker.KeyIntentUntil)); err != nil || !judged.Before(until) {
			w.violate("S3", "%s began intent %q after its end", after.Name, id)
		}
		if has(before, marker.KeyPaused) && !givesBack(before) {
			w.violate("S6", "%s began intent %q although it is paused", after.Name, id)
		}
		if k.failed[id] {
			w.violate("S3", "%s began intent %q after it had failed", after.Name, id)
		}
		k.begun[id] = true
	}
}

// command is what an agent is about to ask of its host.
func (c *checks) command(m *machine, command string) {
	w := c.w
	n := m.node()
	id, wanted := "", ""
	var k *watched
	if n != nil && string(n.UID) == m.agent.identity.NodeUID {
		id, wanted, k = annotation(n, marker.KeyIntentID), annotation(n, marker.KeyActionWanted), c.of(n)
	}
	if command != "refresh-updates" {
		w.note(m.name, "is asked to %s", command)
	}
	switch command {
	case "reboot", "activate-update":
		c.count("S3")
		if k == nil {
			// The Node was deleted, or another one has its name: the agent could not know that in time.
			break
		}
		busy := wanted == string(marker.ActionRebootUpdate) && k.begun[id] && annotation(n, marker.KeyActiveID) == id && annotation(n, marker.KeyActionState) == string(marker.StateBusy)
		if !busy && !c.tampered[string(n.UID)] {
			w.violate("S3", "%s is asked to %s, and the intent that stands is %q, answered %q", n.Name, command, wanted, annotation(n, marker.KeyActionState))
		}
	}
	if command == "reboot" && n != nil && cycleOf(n) != "" && m.sawReady {
		w.violate("S6", "%s is asked to reboot for a cycle, and its agent has seen that another set boots next", n.Name)
	}
	if command == "reboot" {
		m.asked, m.askedOn = id, m.agent.identity.NodeUID
	}
}

// reboot is a machine going down because it was asked to.
func (c *checks) reboot(m *machine) {
	w := c.w
	n := m.node()
	c.count("S2")
	c.count("S3")
	if m.asked != "" && m.rebooted[m.asked] > 0 {
		w.violate("S3", "%s reboots twice for intent %q", m.name, m.asked)
	}
	if n == nil || string(n.UID) != m.askedOn || c.tampered[string(n.UID)] {
		// The Node for which it was asked is gone, so nothing could hold the reboot back.
		return
	}
	k := c.of(n)
	if id := cycleOf(n); id != "" {
		if k.rebooted[id]++; k.rebooted[id] > 1 && !k.again[id] {
			w.violate("S3", "%s reboots twice for the request %q", m.name, id)
		}
	}
	c.goes(m, annotation(n, marker.KeyTargetVersion))
	if !n.Spec.Unschedulable && !k.uncordoned[m.asked] {
		w.violate("S2", "%s reboots and is not cordoned", n.Name)
	}
}
