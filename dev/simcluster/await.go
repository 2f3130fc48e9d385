package simcluster

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/nodesim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/process"
)

// Await polls until ok holds, for at most bound. Its error is the last one of ok's own: the end of the
// time is no news.
func Await(ctx context.Context, what string, bound time.Duration, ok func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		held, err := ok()
		if held {
			return nil
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			if last != nil {
				return errors.WithMessagef(last, "waiting until %s", what)
			}
			return errors.Errorf("waited until %s, for %s in vain", what, bound)
		case <-tick.C:
		}
	}
}

// AwaitOperator waits until all pods of the operator are Ready, with agents on all machines of Bottlerocket if they are
// labelled, and a runner if there are machines of plans.
func (c *Cluster) AwaitOperator(ctx context.Context, bound time.Duration, labelled bool) error {
	agents, runners := 0, 0
	for _, m := range c.Fleet.Machines() {
		switch {
		case m.Planned():
			runners = 1
		case labelled:
			agents++
		}
	}
	return Await(ctx, "the operator's pods are Ready", bound, func() (bool, error) {
		for what, want := range map[string]int{"controller": 1, "proxy": 2, "agent": agents, "runner": runners} {
			pods, err := c.Pods(ctx, what)
			if err != nil {
				return false, err
			}
			err = errors.Errorf("%s has %d pods of %d", what, len(pods), want)
			ready := 0
			for i := range pods {
				if nodesim.Serving(&pods[i]) {
					ready++
				} else {
					err = c.unready(&pods[i])
				}
			}
			if ready < want {
				return false, err
			}
		}
		return true, nil
	})
}

// unready says what is known of a pod of the operator that isn't Ready.
func (c *Cluster) unready(pod *corev1.Pod) error {
	if pod.Spec.NodeName == "" {
		return errors.Errorf("pod %s is on no node: %+v", pod.Name, pod.Status.Conditions)
	}
	state := ""
	for _, container := range pod.Status.ContainerStatuses {
		if w := container.State.Waiting; w != nil {
			state += w.Reason + ", " + w.Message + ", "
		}
		state += fmt.Sprintf("%d restarts, ", container.RestartCount)
	}
	log := process.LogTail(filepath.Join(c.Fleet.Logs(), pod.Spec.NodeName+"-"+pod.Name+".log"), 1024)
	return errors.Errorf("pod %s on %s is %s, %sdeleted %v, its log ends with:\n%s",
		pod.Name, pod.Spec.NodeName, pod.Status.Phase, state, pod.DeletionTimestamp, log)
}
