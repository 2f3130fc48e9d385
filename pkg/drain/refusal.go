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
	// going: it is gone, or goes by itself.
	going answer = "going"
	// blocked: it may not go now, but perhaps later.
	blocked answer = "blocked"
	// unevictable: the answer will always be the same.
	unevictable answer = "unevictable"
	// unanswered: there was no answer in time. The pod may still go; the next pass tries it again, by its UID.
	unanswered answer = "unanswered"
	// unasked: the pass had no time for it, or had made its most evictions.
	unasked answer = "unasked"
	// notLeading: this process may not be the leader any more.
	notLeading answer = "not leading"
)

// severalBudgets is in the answer, with status 500, for a pod that more than one PodDisruptionBudget selects.
const severalBudgets = "more than one PodDisruptionBudget"

// ownPolicy is in a refusal by the operator's own admission policy. What that refuses once it refuses always: another
// grace period than a pod has, without docs/grace-period.yaml.
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

// ofBudget reports whether a PodDisruptionBudget is the cause: one that counts too many evictions under way answers
// 403, and not for ever.
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
