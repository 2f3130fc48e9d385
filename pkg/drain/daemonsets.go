package drain

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	typedapps "k8s.io/client-go/kubernetes/typed/apps/v1"
)

// daemonSetTime is how long a DaemonSet that was read counts as existing.
const daemonSetTime = time.Minute

// remembering is a client for kubectl's choice of pods, which reads the DaemonSet of each DaemonSet pod to learn if it
// exists. With a pass every few seconds that would be twenty requests each time, with hardly ever a new answer.
type remembering struct {
	kubernetes.Interface
	d *Drainer
	// fresh reads every DaemonSet.
	fresh bool
}

// AppsV1 implements kubernetes.Interface.
func (r remembering) AppsV1() typedapps.AppsV1Interface {
	return rememberingApps{r.Interface.AppsV1(), r}
}

type rememberingApps struct {
	typedapps.AppsV1Interface
	r remembering
}

// DaemonSets returns a client whose Get remembers what it found.
func (a rememberingApps) DaemonSets(namespace string) typedapps.DaemonSetInterface {
	return rememberingDaemonSets{a.AppsV1Interface.DaemonSets(namespace), a.r, namespace}
}

type rememberingDaemonSets struct {
	typedapps.DaemonSetInterface
	r         remembering
	namespace string
}

// Get returns an empty DaemonSet for one that is known to exist.
func (s rememberingDaemonSets) Get(ctx context.Context, name string, o metav1.GetOptions) (*appsv1.DaemonSet, error) {
	known, key, now := &s.r.d.daemonSets, types.NamespacedName{Namespace: s.namespace, Name: name}, s.r.d.Now()
	if !s.r.fresh && now.Sub(known.last(key)) < daemonSetTime {
		return &appsv1.DaemonSet{}, nil
	}
	set, err := s.DaemonSetInterface.Get(ctx, name, o)
	switch {
	case err == nil:
		known.note(key, now, daemonSetTime)
	case apierrors.IsNotFound(err):
		known.forget(key)
	}
	return set, err
}
