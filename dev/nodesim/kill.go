package nodesim

import (
	"sync"
	"syscall"

	corev1 "k8s.io/api/core/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/process"
)

// Kill ends the processes of all pods that match with SIGKILL, and returns how many ran when they have
// ended. Their kubelets start them again after a pause.
func (f *Fleet) Kill(match func(*corev1.Pod) bool) int {
	victims := f.processes(match)
	var ends sync.WaitGroup
	for _, p := range victims {
		ends.Go(p.Kill)
	}
	ends.Wait()
	return len(victims)
}

// Pause stops the processes of all pods that match with SIGSTOP, and returns how many there are and what
// lets those very processes go on, if they are still there then.
func (f *Fleet) Pause(match func(*corev1.Pod) bool) (int, func()) {
	var paused []*process.Process
	for _, p := range f.processes(match) {
		if p.Signal(syscall.SIGSTOP) == nil {
			paused = append(paused, p)
		}
	}
	return len(paused), func() {
		for _, p := range paused {
			_ = p.Signal(syscall.SIGCONT)
		}
	}
}

func (f *Fleet) processes(match func(*corev1.Pod) bool) []*process.Process {
	var running []*process.Process
	for _, m := range f.Machines() {
		running = append(running, m.processes(match)...)
	}
	return running
}

// processes are those that run now, of pods that match.
func (m *Machine) processes(match func(*corev1.Pod) bool) []*process.Process {
	m.mu.Lock()
	up := m.up
	m.mu.Unlock()
	if up == nil {
		return nil
	}
	up.mu.Lock()
	defer up.mu.Unlock()
	var running []*process.Process
	for _, life := range up.pods {
		run, ok := life.(*podRun)
		if !ok {
			continue
		}
		if p := run.process.Load(); p != nil && p.Running() && match(run.seen()) {
			running = append(running, p)
		}
	}
	return running
}
