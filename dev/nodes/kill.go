package nodes

import (
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/process"
)

// Kill ends the processes of all pods that match with SIGKILL, and returns how many ran when they have
// ended. Their kubelets start them again after a pause.
func (f *Fleet) Kill(match func(*corev1.Pod) bool) int {
	var victims []*process.Process
	for _, m := range f.Machines() {
		victims = append(victims, m.processes(match)...)
	}
	var ends sync.WaitGroup
	for _, p := range victims {
		ends.Go(p.Kill)
	}
	ends.Wait()
	return len(victims)
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
	for _, run := range up.pods {
		if p := run.process.Load(); p != nil && p.Running() && match(run.seen()) {
			running = append(running, p)
		}
	}
	return running
}
