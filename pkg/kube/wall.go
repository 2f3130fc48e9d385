package kube

import (
	"context"
	"strings"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// foreignMark sets an annotation that no writer of the operator has.
const foreignMark = `{"metadata":{"annotations":{"` + marker.Prefix + `wall":"asked"}}}`

// Walled reports whether an admission policy keeps the client's account from writing to a Node what isn't its own to
// write. It asks for such a write as a dry run, which admission judges like any other and which is never stored: a
// policy that is there and matches another account, or none, is found out too. An error says nothing of the policy; one
// is also a refusal by anything else.
func Walled(ctx context.Context, client kubernetes.Interface, node string) (bool, error) {
	_, err := client.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, []byte(foreignMark), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
		return true, nil
	}
	return false, errors.Wrapf(err, "asking for a write of node %q that is to be refused", node)
}
