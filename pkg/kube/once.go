package kube

import (
	"context"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// WriteOnce carries out a change of a node that was read live, for a process that watches nothing. It reports whether
// there was anything to write. ErrConflict means that the node was written to, or replaced, since it was read.
func WriteOnce(ctx context.Context, client kubernetes.Interface, read *corev1.Node, c *plan.Change, o metav1.PatchOptions) (bool, error) {
	body, err := patch(read, c)
	if err != nil {
		return false, errors.Wrapf(err, "composing the change of node %q", read.Name)
	}
	if body == nil {
		return false, nil
	}
	_, err = client.CoreV1().Nodes().Patch(ctx, read.Name, types.MergePatchType, body, o)
	switch {
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		return false, errors.WithMessagef(ErrConflict, "writing node %q", read.Name)
	case err != nil:
		return false, errors.Wrapf(err, "writing node %q", read.Name)
	}
	return true, nil
}
