package drain

import (
	"slices"
	"strings"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// answer is the answer to the eviction of one pod.
type answer string

const (
	// accepted: the pod shuts down now.
	accepted answer = "accepted"
	// going: the pod is gone, or shuts down for another reason.
	going answer = "going"
	// blocked: the pod may not be evicted now, but perhaps later.
	blocked answer = "blocked"
	// unevictable: the answer will always be the same.
	unevictable answer = "unevictable"
	// unanswered: there was no answer in time. The eviction may still happen; the next pass requests it again, by UID.
	unanswered answer = "unanswered"
	// unasked: the pass had no time for the pod, or had reached its limit of evictions.
	unasked answer = "unasked"
	// notLeading: this process may not be the leader any more.
	notLeading answer = "not leading"
)

// severalBudgets is in the answer, with status 500, for a pod that more than one PodDisruptionBudget selects.
const severalBudgets = "more than one PodDisruptionBudget"

// ownPolicy is in a refusal by the operator's own admission policy. It always refuses a grace period other than the
// pod's own, unless components/grace-period/grace-period.yaml was applied.
const ownPolicy = "ValidatingAdmissionPolicy 'update-operator-controller-evictions'"

// judge returns what an error of the API server means for a drain.
func judge(err error) answer {
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
		// It is gone, and another pod may have its name: the next pass lists again.
		return going
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		// It goes with its namespace.
		return going
	case strings.Contains(err.Error(), severalBudgets) || strings.Contains(err.Error(), ownPolicy):
		return unevictable
	case denied(err) || ofBudget(err):
		return blocked
	case apierrors.IsForbidden(err), apierrors.IsMethodNotSupported(err),
		apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return unevictable
	}
	return blocked
}

// denied reports whether a webhook or another admission policy refused. They decide anew each time, and many refuse
// only until there is room for the pod elsewhere.
func denied(err error) bool {
	text := err.Error()
	return strings.Contains(text, "admission webhook ") || strings.Contains(text, "ValidatingAdmissionPolicy ")
}

// ofBudget reports whether a PodDisruptionBudget refused. One with too many evictions under way answers 403 for a
// while.
func ofBudget(err error) bool {
	details := detailsOf(err)
	return details != nil && strings.HasPrefix(details.Kind, "poddisruptionbudget") && details.Group == policyv1.GroupName
}

// why returns the reason of a refusal: that of a cause, which names the PodDisruptionBudget, or else the whole error.
func why(err error) string {
	if d := detailsOf(err); d != nil {
		if i := slices.IndexFunc(d.Causes, func(c metav1.StatusCause) bool { return c.Message != "" }); i >= 0 {
			return d.Causes[i].Message
		}
	}
	return err.Error()
}

func detailsOf(err error) *metav1.StatusDetails {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Details
	}
	return nil
}
