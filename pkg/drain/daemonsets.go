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

// daemonSetTime is for how long a DaemonSet that was there is taken to be there still.
const daemonSetTime = time.Minute

// remembering is a client for kubectl's choice of pods. That reads the DaemonSet of each of its pods, only to learn if
// it is there, and a pass is made every few moments: twenty requests each time for what is hardly ever another answer.
type remembering struct {
	kubernetes.Interface
	d *Drainer
	// fresh reads all the same.
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

func (a rememberingApps) DaemonSets(namespace string) typedapps.DaemonSetInterface {
	return rememberingDaemonSets{a.AppsV1Interface.DaemonSets(namespace), a.r, namespace}
}

type rememberingDaemonSets struct {
	typedapps.DaemonSetInterface
	r         remembering
	namespace string
}

// Get says no more of a DaemonSet than that it is there.
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
