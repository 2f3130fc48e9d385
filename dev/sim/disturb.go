package sim

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

func (f Fault) jump() time.Duration {
	d := time.Duration(1+f.N) * 5 * time.Minute
	if f.N%3 == 0 {
		return -d
	}
	return d
}

// some picks the processes that a fault of the network hits.
func (w *world) some(f Fault) []*process {
	var out []*process
	for i, p := range w.processes {
		if !p.dead && (f.N%2 == 0 || i%2 == f.On%2) {
			out = append(out, p)
		}
	}
	return out
}

// freeze is SIGSTOP and, later, SIGCONT.
func (w *world) freeze(p *process, f Fault, times int) {
	if p == nil || p.dead || p.stopped {
		return
	}
	w.strike(f.Kind)
	p.stopped = true
	w.restore(time.Duration(times)*f.For/3+10*time.Second, func() { p.stopped = false })
}

func (w *world) disturbWatches(f Fault, end time.Time) {
	if f.Kind == Compaction {
		w.server.Compact(w.server.Revision())
	}
	for i, feed := range w.watches {
		if feed.p.dead || f.N%2 == 1 && i%3 == f.On%3 {
			continue
		}
		switch f.Kind {
		case WatchLag:
			w.strike(f.Kind)
			feed.stuck = maxTime(feed.stuck, end)
		case WatchRepeat:
			if feed.last != nil {
				w.strike(f.Kind)
				feed.sink.event(*feed.last)
			}
		case WatchRestart, Compaction:
			// A watch that broke, and a list instead, by a server whose history is gone.
			if f.Kind == WatchRestart {
				w.strike(f.Kind)
			}
			feed.stuck = maxTime(feed.stuck, w.now.Add(f.For/8))
			w.after(f.For/8, func() {
				if !feed.p.dead && !feed.p.stopped {
					if f.Kind == Compaction {
						w.strike(f.Kind)
					}
					feed.list(false)
					feed.schedule()
				}
			})
		default:
			panic("not a fault of watches: " + f.Kind)
		}
	}
}

func (k *cluster) hasGone() bool {
	for _, m := range k.w.machines {
		if m.gone {
			return true
		}
	}
	return false
}

func (k *cluster) unstick(uid, name string) {
	delete(k.stuck, uid)
	if p := k.w.server.Pod(appsNamespace, name); p != nil && string(p.UID) == uid && p.DeletionTimestamp != nil {
		k.end(p)
	}
}

func (w *world) unwell(m *machine, f Fault) {
	w.strike(f.Kind)
	m.unwell = true
	if m.up {
		w.cluster.setReady(m.nodeName, corev1.ConditionFalse)
	}
	d := f.For
	if f.Kind == NodeFlaps {
		d = min(d, 10*time.Second)
		if f.N%2 == 0 {
			// Too short to be seen: only the transition's time tells.
			d = time.Duration(1+f.N) * time.Millisecond
		}
	}
	w.restore(d, func() {
		m.unwell = false
		if m.up {
			w.cluster.setReady(m.nodeName, corev1.ConditionTrue)
		}
	})
}

// deleteNode deletes a Node; its kubelet registers again after a while, under the same name or another.
func (w *world) deleteNode(m *machine, f Fault) {
	n := m.node()
	if n == nil {
		return
	}
	w.strike(f.Kind)
	m.agent.podRemoved()
	// What its record said goes with the Node: the lock reads as another's from here on.
	m.theirLock, m.ourLock = m.host.Snapshot().Settings.VersionLock, false
	m.unregistered = true
	for _, p := range w.server.PodsOn(n.Name) {
		w.cluster.remove(p)
	}
	if err := w.cluster.client.CoreV1().Nodes().Delete(background, n.Name, metav1.DeleteOptions{}); err != nil {
		panic(err)
	}
	if f.Kind == NodeRenamed {
		w.renames++
		m.nodeName = fmt.Sprintf("%s-renamed-%d", m.name, w.renames)
	}
	w.restore(f.For+time.Second, func() {
		m.unregistered = false
		if m.up {
			w.cluster.kubeletReports(m, true)
			w.cluster.podsStart(m.nodeName)
		}
	})
}

// edit is a person's write to a node.
func (w *world) edit(m *machine, change func(n *corev1.Node)) bool {
	n := m.node()
	if n == nil {
		return false
	}
	n = n.DeepCopy()
	if n.Annotations == nil {
		n.Annotations = map[string]string{}
	}
	change(n)
	must(w.people.CoreV1().Nodes().Update(background, n, metav1.UpdateOptions{}))
	return true
}

// garbage are values that users write where they don't belong.
var garbage = []struct {
	key   marker.Key
	value string
}{
	{marker.KeyDisruption, "{"}, {marker.KeyIntentID, "\x01"}, {marker.KeyActionWanted, "perform-update"}, {marker.KeyIntentTime, "yesterday"},
	{marker.KeyActionState, "done"}, {marker.KeyFailure, `{"count":-1}`}, {marker.KeyHistory, "[["}, {marker.KeyWaitingFor, ""},
	{marker.KeyTargetVersion, "latest"}, {marker.KeyRebootFrom, ""}, {marker.KeyActiveID, "x"}, {marker.KeyBootID, "y"}, {marker.KeyProtocol, "two"},
}

func (w *world) person(m *machine, f Fault) {
	done := false
	switch f.Kind {
	case PersonCordons:
		done = w.edit(m, func(n *corev1.Node) {
			n.Spec.Unschedulable = true
			n.Annotations[marker.AnnotationScaleDown] = "false"
		})
	case PersonUncordons:
		done = w.edit(m, func(n *corev1.Node) { n.Spec.Unschedulable = false })
	case PersonPauses:
		done = w.edit(m, func(n *corev1.Node) { n.Annotations[string(marker.KeyPaused)] = "maintenance" })
		w.restore(2*f.For, func() {
			w.edit(m, func(n *corev1.Node) { delete(n.Annotations, string(marker.KeyPaused)) })
		})
	case PersonUnlabels:
		if done = m.labelled; done {
			w.label(m, false)
			if f.N%4 != 0 {
				w.restore(2*f.For, func() { w.label(m, true) })
			}
		}
	case PersonEditsMarks:
		g := garbage[f.N%len(garbage)]
		n := m.node()
		if n == nil {
			return
		}
		w.checks.tampered[string(n.UID)] = true
		if g.key == marker.KeyActiveID || g.key == marker.KeyActionState {
			// The answer is gone, and the host's record may be another command's by now: the agent may begin again.
			clear(w.checks.of(n).failed)
		}
		old, had := n.Annotations[string(g.key)]
		done = w.edit(m, func(n *corev1.Node) { n.Annotations[string(g.key)] = g.value })
		uid := n.UID
		w.restore(f.For, func() {
			if n := m.node(); n == nil || n.UID != uid || n.Annotations[string(g.key)] != g.value {
				return
			}
			w.edit(m, func(n *corev1.Node) {
				// What stood there before, if nothing went on since; else it is removed.
				delete(n.Annotations, string(g.key))
				if had {
					n.Annotations[string(g.key)] = old
				}
			})
		})
	case PersonWritesPolicy:
		if done = len(w.scenario.Policies) > 0; done {
			w.writePolicy(w.scenario.Policies[f.N%len(w.scenario.Policies)].Text())
		}
	case PersonBreaksPolicy:
		done = w.breakPolicy(f)
	case PersonDeletesPolicy:
		done = w.deletePolicy(f)
	case PersonAcknowledges:
		w.acknowledge()
		done = true
	case PersonEditsSlots:
		done = w.editSlots(f)
	case PersonExcludes:
		value := []string{"true", "", "by-hand"}[f.N%3]
		done = w.edit(m, func(n *corev1.Node) { n.Labels[marker.LabelExcluded] = value })
		w.restore(f.For, func() {
			if n := m.node(); n != nil && n.Labels[marker.LabelExcluded] == value {
				w.edit(m, func(n *corev1.Node) { delete(n.Labels, marker.LabelExcluded) })
			}
		})
	case PersonRetries:
		done = w.edit(m, func(n *corev1.Node) { n.Annotations[string(marker.KeyRetry)] = "" })
	default:
		panic("not what a person does: " + f.Kind)
	}
	if done {
		w.strike(f.Kind)
	}
}

// label puts a machine into the operator's care, or takes it out; the DaemonSet follows.
func (w *world) label(m *machine, on bool) {
	m.labelled = on
	w.edit(m, func(n *corev1.Node) {
		delete(n.Labels, string(marker.KeyInterfaceVersion))
		if on {
			if n.Labels == nil {
				n.Labels = map[string]string{}
			}
			n.Labels[string(marker.KeyInterfaceVersion)] = m.interfaceLabel()
		}
	})
	w.after(w.between(100*time.Millisecond, 5*time.Second), m.agent.follow)
}

// editSlots breaks, or removes, the controller's own object, and puts it right again.
func (w *world) editSlots(f Fault) bool {
	maps := w.people.CoreV1().ConfigMaps(namespace)
	cm := w.server.ConfigMap(namespace, kube.StateConfigMap)
	if cm == nil {
		return false
	}
	if f.N%2 == 0 {
		_ = maps.Delete(background, kube.StateConfigMap, metav1.DeleteOptions{})
		return true
	}
	cm = cm.DeepCopy()
	cm.Data = map[string]string{"slots": "nobody"}
	must(maps.Update(background, cm, metav1.UpdateOptions{}))
	w.restore(f.For, func() {
		if cm := w.server.ConfigMap(namespace, kube.StateConfigMap); cm != nil && cm.Data["slots"] == "nobody" {
			_ = maps.Delete(background, kube.StateConfigMap, metav1.DeleteOptions{})
		}
	})
	return true
}

// hostFault is a fault of a host, by its id.
func (w *world) hostFault(m *machine, f Fault) {
	id := hostsim.FaultID(f.Kind)
	h := m.host
	switch f.Kind {
	case "F11":
		// The host's API server is made anew behind another socket.
		w.strike(f.Kind)
		if m.agent.process != nil && !m.agent.process.dead {
			m.agent.crash()
		}
		return
	case "F18":
		m.unwell = true
		if m.up {
			w.strike(f.Kind)
			m.cycle()
		}
		w.restore(4*f.For, func() {
			m.unwell = false
			if m.up {
				w.cluster.setReady(m.nodeName, corev1.ConditionTrue)
			}
		})
		return
	case "F19", "F20":
		// Another program reboots the host, with whatever is activated or staged.
		if m.up {
			w.strike(f.Kind)
			if f.Kind == "F19" {
				_ = h.ApplyOutside(w.newest)
			}
			m.cycle()
		}
		return
	case "F21":
		s := h.Snapshot()
		if h.Foreign(hostsim.Deactivate) == nil {
			// If the agent has looked for the last time before its reboot, the host comes back as if rolled back.
			m.tried[s.Sets[s.Next].Version] = true
			w.strike(f.Kind)
		} else if h.Foreign(hostsim.Activate) == nil {
			w.strike(f.Kind)
		}
		return
	case "F22":
		w.release()
		if h.Foreign(hostsim.Refresh) == nil {
			w.strike(f.Kind)
		}
		return
	case "F23":
		w.strike(f.Kind)
		w.wavesOpen = maxTime(w.wavesOpen, w.now.Add(4*f.For))
		w.release(map[uint32]time.Time{0: w.now, 1024: w.now.Add(4 * f.For)})
		return
	case "F24":
		w.strike(f.Kind)
		version := w.newest
		w.repo.Withdraw(variant, arch, version)
		_ = w.repo.SetMaxVersion(variant, arch, firstVersion)
		w.restore(2*f.For, func() { w.publish(version, nil); _ = w.repo.SetMaxVersion(variant, arch, w.newest) })
		return
	default:
		// The host does the others by itself, once it is told.
	}
	fault := hostsim.Fault{ID: id, Until: w.now.Add(f.lasts()), Delay: hostsim.Duration(f.For / 4)}
	if variants := hostsim.Variants(id); len(variants) > 0 {
		fault.Variant = variants[f.N%len(variants)]
	}
	switch f.Kind {
	case "F2", "F28":
		fault.Delay = 0
	case "F29":
		fault.Delay = hostsim.Duration(f.jump())
	case "F26":
		// It is a state: while it lasts the agent can neither read nor change the host's lock.
	default:
		fault.Count = 1 + f.N%5
	}
	if f.Kind == "F9" {
		fault.Version = otherVersion
	}
	if f.Kind == "F15" && fault.Variant == "delay" {
		fault.Delay = hostsim.Duration(min(f.For, 290*time.Second))
	}
	if err := h.AddFault(fault); err != nil {
		panic(err)
	}
	m.injected++
	m.countStrikes()
}

// remaining is what is left of a host's faults of one kind.
type remaining struct {
	strikes int
	until   time.Time
}

// countStrikes counts what struck in the request that just ended. Faults without a count are a state.
func (m *machine) countStrikes() {
	if m.injected == 0 {
		return
	}
	w := m.w
	now := map[hostsim.FaultID]remaining{}
	for _, f := range m.host.Faults() {
		r := now[f.ID]
		now[f.ID] = remaining{r.strikes + f.Count, maxTime(r.until, f.Until)}
		if f.Count == 0 && f.Version == "" {
			w.strike(Kind(f.ID))
		}
	}
	for id, r := range m.left {
		if now[id].strikes < r.strikes && w.now.Before(r.until) {
			w.strike(Kind(id))
		}
	}
	m.left = now
}

// release publishes another version.
func (w *world) release(waves ...map[uint32]time.Time) {
	w.releases++
	w.newest = fmt.Sprintf("1.%d.0", 50+w.releases)
	var first map[uint32]time.Time
	if len(waves) > 0 {
		first = waves[0]
	}
	w.publish(w.newest, first)
}

// otherVersion is published beside the newest one.
const otherVersion = "1.50.1"

func (w *world) publish(version string, waves map[uint32]time.Time) {
	if err := w.repo.Release(hostsim.Release{Version: version, Variant: variant, Arch: arch, Waves: waves}); err != nil {
		panic(err)
	}
}
