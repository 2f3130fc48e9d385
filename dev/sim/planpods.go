package sim

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// planned is what a machine of plans has beside the others.
type planned struct {
	// kubeletVersion is that of its kubelet, nextKubelet the one of its next boot, has the content that it has, by plan.
	kubeletVersion, nextKubelet string
	has                         map[string]string
	// mute is until when its kubelet does not run; what it started runs on.
	mute time.Time
	// fates are the faults that wait for its next pod.
	fates []Fault
	// runs are its kubelet's records of pods, by UID, and ran counts the starts for each Node and intent.
	runs map[string]*planRun
	ran  map[string]int
	// tested are the versions that a pod was run for that ended by itself, or that a boot followed.
	tested map[string]bool
}

// planRun is one pod of a plan on its machine.
type planRun struct {
	pod *corev1.Pod
	// version is what its node was to go to as it began.
	version string
	fate    Fault
	running bool
	began   metav1.Time
	// over is how it ended; nil: it has not, or it isn't known how.
	over *planEnd
}

// planEnd is how a pod ended.
type planEnd struct {
	status  int32
	reason  string
	message string
	// ofPod is the reason of the pod itself, where it didn't end by itself.
	ofPod string
	ended metav1.Time
	// started: its container ran.
	started bool
}

func (p *planEnd) phase() corev1.PodPhase {
	if p.status == 0 && p.ofPod == "" {
		return corev1.PodSucceeded
	}
	return corev1.PodFailed
}

// planPodWrote is told of each write of a pod of a plan.
func (w *world) planPodWrote(before, after *corev1.Pod) {
	p := after
	if p == nil {
		p = before
	}
	m := w.cluster.machineOf(p.Spec.NodeName)
	switch {
	case m == nil:
		// The pod collector ends pods of Nodes that are gone.
		if before == nil {
			w.after(time.Minute, func() { w.collect(p) })
		}
	case after == nil:
		if run := m.runs[string(p.UID)]; run != nil {
			run.running = false
			delete(m.runs, string(p.UID))
		}
	case before == nil, after.DeletionTimestamp != nil && before.DeletionTimestamp == nil:
		w.after(w.between(50*time.Millisecond, 3*time.Second), m.syncPlanPods)
	}
}

// collect ends a pod whose Node is gone.
func (w *world) collect(p *corev1.Pod) {
	now := w.server.Pod(p.Namespace, p.Name)
	if now == nil || now.UID != p.UID || w.server.Node(p.Spec.NodeName) != nil {
		return
	}
	now = now.DeepCopy()
	now.Status.Phase = corev1.PodFailed
	must(w.cluster.client.CoreV1().Pods(p.Namespace).UpdateStatus(background, now, metav1.UpdateOptions{}))
	w.cluster.remove(now)
}

// kubeletRuns reports whether the machine's kubelet does.
func (m *machine) kubeletRuns() bool { return m.up && !m.w.now.Before(m.mute) }

// syncPlanPods is the kubelet doing what the pods of plans on its node ask for.
func (m *machine) syncPlanPods() {
	w := m.w
	if !m.kubeletRuns() || !m.isPlanned {
		return
	}
	for _, p := range w.planPodsOn(m.nodeName) {
		run := m.runs[string(p.UID)]
		over := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		switch {
		case over && p.DeletionTimestamp != nil:
			w.cluster.remove(p)
		case over:
		case run != nil && run.over != nil:
			m.reportEnd(p, run)
		case run != nil && run.running && p.DeletionTimestamp != nil:
			m.endRun(run, planEnd{status: []int32{143, 137, 0, 1}[run.fate.N%4], reason: "Error", started: true})
		case run != nil && run.running:
		case run != nil && !run.began.IsZero():
			// It was running as the machine went down.
			m.endRun(run, planEnd{status: 137, reason: "ContainerStatusUnknown", started: true})
		case p.DeletionTimestamp != nil:
			m.endRun(m.run(p), planEnd{status: 0, reason: "", ofPod: "Deleted"})
		case run == nil:
			m.admit(p)
		default:
			// It waits for its image.
			m.pull(run)
		}
	}
}

func (m *machine) run(p *corev1.Pod) *planRun {
	run := m.runs[string(p.UID)]
	if run == nil {
		run = &planRun{pod: p}
		m.runs[string(p.UID)] = run
	}
	return run
}

// admit is the kubelet deciding whether a pod may run, as the scheduler would have.
func (m *machine) admit(p *corev1.Pod) {
	w, run := m.w, m.run(p)
	n := m.node()
	if n == nil || n.Labels[string(marker.KeyInterfaceVersion)] != p.Spec.NodeSelector[string(marker.KeyInterfaceVersion)] {
		m.endRun(run, planEnd{ofPod: "NodeAffinity"})
		return
	}
	if len(m.fates) > 0 && !w.calm {
		run.fate, m.fates = m.fates[0], m.fates[1:]
		w.strike(run.fate.Kind)
		w.note(m.name, "will have %s on pod %s", run.fate.Kind, p.Name)
	}
	if run.fate.Kind == PlanPodRejected {
		m.endRun(run, planEnd{ofPod: "OutOfcpu"})
		return
	}
	m.pull(run)
}

func (m *machine) pull(run *planRun) {
	w := m.w
	takes := w.between(100*time.Millisecond, 10*time.Second)
	if run.fate.Kind == ImageNotPulled && !w.calm {
		takes += run.fate.For
	}
	w.after(takes, m.inBoot(func() {
		if m.runs[string(run.pod.UID)] != run || run.running || run.over != nil || !run.began.IsZero() {
			return
		}
		if !m.kubeletRuns() {
			return
		}
		if p := w.server.Pod(run.pod.Namespace, run.pod.Name); p != nil && p.UID == run.pod.UID && p.DeletionTimestamp == nil {
			m.begin(run)
		}
	}))
}

// begin starts the container.
func (m *machine) begin(run *planRun) {
	w := m.w
	run.running, run.began = true, second(w.now)
	run.version = annotationOf(m.node(), marker.KeyTargetVersion)
	m.ran[run.pod.Annotations[planNodeUID]+" "+run.pod.Annotations[planIntent]]++
	w.checks.ran(m, run)
	m.podStatus(run.pod, corev1.PodRunning, "", corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: run.began}})
	if run.pod.Spec.ActiveDeadlineSeconds != nil {
		w.after(time.Duration(*run.pod.Spec.ActiveDeadlineSeconds)*time.Second, m.inBoot(func() {
			m.endRun(run, planEnd{status: 137, reason: "Error", ofPod: "DeadlineExceeded", started: true})
		}))
	}
	w.after(w.between(time.Second, 30*time.Second), m.inBoot(func() {
		if run.running {
			m.work(run)
		}
	}))
}

// work is what the container does, and how it ends.
func (m *machine) work(run *planRun) {
	w, p := m.w, run.pod
	template, plan, want := p.Annotations[planTemplate], p.Labels[planLabel], p.Annotations[planTarget]
	reboots := template == newKubeletReboot || template == newFilesReboot
	late := run.fate.N%2 == 1
	brings := template != prepares && template != prepares+"-files"
	switch run.fate.Kind {
	case PlanPodHangs:
		return
	case PlanPodFails, PlanPodNoEffect:
		brings = brings && run.fate.Kind == PlanPodFails && late
	case PlanPodEvicted:
		brings = brings && late
	case KubeletDies:
		m.silence(run.fate.For + 5*time.Second)
	default:
		// The others come before it, or after it.
	}
	end := planEnd{reason: "Completed", started: true}
	if brings {
		switch template {
		case newKubelet:
			m.kubeletVersion = want
			m.silence(w.between(2*time.Second, 20*time.Second))
		case newKubeletReboot:
			m.nextKubelet = want
		case newFiles:
			m.has[plan], end.message = want, want
		case newFilesReboot:
			m.has[plan], end.message = want, want+" reboot"
		}
	}
	switch run.fate.Kind {
	case PlanPodFails:
		end.status, end.reason = 1, "Error"
	case PlanPodEvicted:
		end.status, end.reason, end.ofPod = 137, "Error", "Evicted"
	case RebootInPod:
		// The host goes down under its pod, whatever that did.
		if run.fate.N%3 == 0 {
			m.endRun(run, planEnd{status: 143, reason: "Error", ofPod: "Terminated", started: true})
		}
		w.note(m.name, "goes down in mid pod")
		m.cycle()
		return
	default:
		// It ends by itself.
	}
	if brings && reboots && run.fate.Kind == "" && w.chance(4) {
		// The pod asks for the boot itself, and goes down with it.
		if template == newFilesReboot {
			m.record(run, end)
		}
		w.note(m.name, "boots before its pod is over")
		m.cycle()
		return
	}
	m.endRun(run, end)
	if reboots && run.fate.Kind != PlanPodFails && (brings || late) {
		w.after(w.between(time.Second, time.Minute), m.inBoot(m.cycle))
	}
}

// record keeps how a container ended.
func (m *machine) record(run *planRun, end planEnd) {
	end.ended = second(m.w.now)
	run.running, run.over = false, &end
	if end.ofPod == "" && end.started {
		m.tested[run.version] = true
	}
}

// endRun ends a container, and tells of it if the kubelet can.
func (m *machine) endRun(run *planRun, end planEnd) {
	if run.over != nil {
		return
	}
	m.record(run, end)
	if !m.kubeletRuns() {
		return
	}
	if p := m.w.server.Pod(run.pod.Namespace, run.pod.Name); p != nil && p.UID == run.pod.UID {
		m.reportEnd(p, run)
	}
}

func (m *machine) reportEnd(p *corev1.Pod, run *planRun) {
	end := run.over
	m.w.note(m.name, "pod %s ends: %s %d %s %s", p.Name, end.phase(), end.status, end.reason, end.ofPod)
	state := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}
	if end.started {
		state = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: end.status, Reason: end.reason, Message: end.message,
			StartedAt: run.began, FinishedAt: end.ended}}
	}
	m.podStatus(p, end.phase(), end.ofPod, state)
	if p.DeletionTimestamp != nil {
		m.w.after(m.w.between(100*time.Millisecond, 2*time.Second), m.syncPlanPods)
	}
}

func (m *machine) podStatus(p *corev1.Pod, phase corev1.PodPhase, reason string, state corev1.ContainerState) {
	now := m.w.server.Pod(p.Namespace, p.Name)
	if now == nil || now.UID != p.UID {
		return
	}
	now = now.DeepCopy()
	now.Status.Phase, now.Status.Reason = phase, reason
	now.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: second(m.w.now)}}
	now.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: now.Spec.Containers[0].Name, State: state}}
	must(m.w.cluster.client.CoreV1().Pods(p.Namespace).UpdateStatus(background, now, metav1.UpdateOptions{}))
}

// silence ends the kubelet for a while; its Node shows so only if that is long.
func (m *machine) silence(d time.Duration) {
	w := m.w
	m.mute = maxTime(m.mute, w.now.Add(d))
	until := m.mute
	w.note(m.name, "the kubelet is down for %s", d)
	w.after(40*time.Second, m.inBoot(func() {
		if !m.kubeletRuns() {
			w.cluster.setReady(m.nodeName, corev1.ConditionUnknown)
			w.cluster.podsUnready(m.nodeName)
		}
	}))
	w.restore(d, m.inBoot(func() {
		if w.calm {
			until, m.mute = w.now, minTime(m.mute, w.now)
		}
		if m.mute.After(until) {
			return
		}
		w.cluster.kubeletReports(m, w.chance(2))
		w.after(w.between(100*time.Millisecond, 3*time.Second), m.inBoot(func() {
			w.cluster.kubeletReports(m, true)
			w.cluster.podsStart(m.nodeName)
			m.syncPlanPods()
		}))
	}))
}

// losesPods is what a power loss does to the pods of plans: those that run are lost.
func (m *machine) losesPods() {
	for _, run := range m.runs {
		run.running = false
	}
}

// bootsPlanned is what a machine of plans becomes by a boot.
func (m *machine) bootsPlanned() {
	m.mute = time.Time{}
	if m.nextKubelet != "" {
		m.kubeletVersion, m.nextKubelet = m.nextKubelet, ""
	}
	if n := m.node(); n != nil && annotation(n, marker.KeyActionWanted) == string(marker.ActionRebootUpdate) {
		m.tested[annotation(n, marker.KeyTargetVersion)] = true
	}
}

// podFault puts a fault off to the machine's next pod of a plan, or lets it happen to the one that runs.
func (h hit) podFault() {
	m := h.m
	if !m.isPlanned || h.w.calm {
		return
	}
	for _, p := range h.w.planPodsOn(m.nodeName) {
		run := m.runs[string(p.UID)]
		if run == nil || !run.running || run.fate.Kind != "" {
			continue
		}
		run.fate = h.Fault
		h.strike()
		h.w.note(m.name, "has %s on pod %s, which runs", h.Kind, p.Name)
		return
	}
	m.fates = append(m.fates, h.Fault)
}

func (h hit) kubeletDies() {
	if h.m.isPlanned && h.m.kubeletRuns() && h.N%2 == 0 {
		h.strike()
		h.m.silence(h.For + 5*time.Second)
		return
	}
	h.podFault()
}

func (h hit) crashRunner() {
	if len(h.w.runners) == 0 {
		return
	}
	if r := h.w.runners[h.N%len(h.w.runners)]; r.process.runs() {
		h.strike()
		r.crash(h.For/8 + time.Second)
	}
}

func (h hit) freezeRunner() {
	if len(h.w.runners) > 0 {
		h.w.freeze(h.w.runners[h.N%len(h.w.runners)].process, h.Fault, 3)
	}
}

func (h hit) deletePlanPod() {
	pods := h.w.planPodsOn(h.m.nodeName)
	if len(pods) == 0 {
		return
	}
	h.strike()
	h.w.note(people, "delete pod %s", pods[h.N%len(pods)].Name)
	_ = h.w.people.CoreV1().Pods(plansNamespace).Delete(background, pods[h.N%len(pods)].Name, metav1.DeleteOptions{})
}

func (h hit) changeTemplate() {
	if h.w.scenario.PlanNodes > 0 {
		h.strike()
		h.w.changeTemplates(h.N%2 == 0)
	}
}

func (h hit) refusePlanPods() { h.w.quota = maxTime(h.w.quota, h.end) }

func second(t time.Time) metav1.Time { return metav1.NewTime(t.Truncate(time.Second)) }

// The marks that the runner makes on its pods.
const (
	planLabel    = marker.Prefix + "plan"
	planIntent   = marker.Prefix + "intent-id"
	planNodeUID  = marker.Prefix + "node-uid"
	planTemplate = marker.Prefix + "plan-template"
	planTarget   = marker.Prefix + "target"
)

// planLog is the log of a pod of a plan.
func planLog(string, string) (string, error) { return "it broke\n", nil }
