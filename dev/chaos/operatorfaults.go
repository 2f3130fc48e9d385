package chaos

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/simcluster"
)

// The components, as labels name them.
const (
	controller = "controller"
	proxy      = "proxy"
	agent      = "agent"
)

// leader is the name of the pod that holds the Lease.
func (w *world) leader(ctx context.Context) (string, error) {
	lease, err := w.Client.CoordinationV1().Leases(simcluster.Namespace).Get(ctx, "update-operator-controller", metav1.GetOptions{})
	if err != nil {
		return "", errors.Wrap(err, "reading the controllers' Lease")
	}
	if lease.Spec.HolderIdentity == nil {
		return "", nil
	}
	pod, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
	return pod, nil
}

// hit tries again until a process was hit: the leader, or one of the pods of a component that
// run now.
func (w *world) hit(ctx context.Context, s Strike, component string, strike func(match func(*corev1.Pod) bool) int) (string, error) {
	name := ""
	err := simcluster.Await(ctx, "there is a "+component+" to hit", patience, func() (bool, error) {
		var err error
		if component == controller {
			name, err = w.leader(ctx)
		} else {
			name, err = w.choose(ctx, s, component)
		}
		if err != nil || name == "" {
			return false, err
		}
		return strike(func(p *corev1.Pod) bool { return p.Namespace == simcluster.Namespace && p.Name == name }) > 0, nil
	})
	return name, err
}

// choose picks a pod by the seed.
func (w *world) choose(ctx context.Context, s Strike, component string) (string, error) {
	pods, err := w.Pods(ctx, component)
	if err != nil || len(pods) == 0 {
		return "", err
	}
	// Names of pods are made up anew each time; where they run isn't.
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(a.Spec.NodeName+a.Name, b.Spec.NodeName+b.Name) })
	return pods[s.Target%len(pods)].Name, nil
}

func (w *world) kill(component string) strikeFunc {
	return func(ctx context.Context, s Strike) (string, error) { return w.hit(ctx, s, component, w.Fleet.Kill) }
}

func (w *world) pause(component string) strikeFunc {
	return func(ctx context.Context, s Strike) (string, error) {
		resume := func() {}
		defer func() { resume() }()
		name, err := w.hit(ctx, s, component, func(match func(*corev1.Pod) bool) int {
			n, r := w.Fleet.Pause(match)
			resume = r
			return n
		})
		if err != nil {
			return "", err
		}
		began := time.Now()
		if !pauseFor(ctx, s.Hold) {
			return "", ctx.Err()
		}
		if component == controller {
			// The first one wakes up when another one leads.
			err = simcluster.Await(ctx, "another controller leads", patience, func() (bool, error) {
				now, err := w.leader(ctx)
				return now != "" && now != name, err
			})
		}
		return fmt.Sprintf("%s for %s", name, since(began)), err
	}
}

// cutNetwork counts if it froze a connection or refused one.
func (w *world) cutNetwork(ctx context.Context, s Strike) (string, error) {
	machines := w.Fleet.Machines()
	node := machines[s.Target%len(machines)].Name()
	r, err := w.network.of(node)
	if err != nil {
		return "", err
	}
	hit := ""
	err = simcluster.Await(ctx, "the cut hits a connection of "+node, patience, func() (bool, error) {
		frozen, mend := r.cut()
		if !pauseFor(ctx, s.Hold) {
			mend()
			return false, ctx.Err()
		}
		refused := mend()
		hit = fmt.Sprintf("%s for %s: %d connections frozen, %d refused", node, s.Hold.Round(time.Millisecond), frozen, refused)
		return frozen+refused > 0, nil
	})
	return hit, err
}

// pauseFor waits; false: ctx ended first.
func pauseFor(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func since(t time.Time) string { return time.Since(t).Round(10 * time.Millisecond).String() }
