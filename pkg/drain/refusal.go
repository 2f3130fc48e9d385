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

// answer is what came of asking for one pod to go.
type answer string

const (
	// accepted: the pod shuts down now.
	accepted answer = "accepted"
	// going: it is gone, or goes without our doing.
	going answer = "going"
	// blocked: it may not go now, and it is worth asking again.
	blocked answer = "blocked"
	// hopeless: asking again leads to nothing.
	hopeless answer = "hopeless"
	// unanswered: nobody said anything in time. It may go all the same, and is asked for again by its UID.
	unanswered answer = "unanswered"
	// unasked: the pass had no time left for it, or might ask for no more.
	unasked answer = "unasked"
	// doubted: this process could not know that it still leads.
	doubted answer = "doubted"
)

// severalBudgets is what the API server says, with status 500, of a pod that more than one PodDisruptionBudget chooses.
const severalBudgets = "more than one PodDisruptionBudget"

// ownPolicy is how the API server names, in a refusal, the admission policy that holds the controller's account. What it
// refuses once it refuses always: another time to shut down than a pod asks for, without docs/grace-period.yaml.
const ownPolicy = "ValidatingAdmissionPolicy 'update-operator-controller-evictions'"

// judge tells what a refusal of the API server means for a drain.
func judge(err error) answer {
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
		// Gone, or another pod has the name by now: the next pass lists anew.
		return going
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		// It goes with its namespace.
		return going
	case strings.Contains(err.Error(), severalBudgets) || strings.Contains(err.Error(), ownPolicy):
		return hopeless
	case denied(err) || ofBudget(err):
		return blocked
	case apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err):
		return hopeless
	}
	return blocked
}

// denied tells if a webhook or another admission policy said no. They decide anew each time that they are asked, and many
// say no only while they make room for the pod elsewhere.
func denied(err error) bool {
	return strings.Contains(err.Error(), "admission webhook ") || strings.Contains(err.Error(), "ValidatingAdmissionPolicy ")
}

// ofBudget tells if a PodDisruptionBudget in a state of its own is the cause: one that counts too many evictions as
// under way says 403, and not for ever.
func ofBudget(err error) bool {
	details := detailsOf(err)
	return details != nil && strings.HasPrefix(details.Kind, "poddisruptionbudget") && details.Group == policyv1.GroupName
}

// why picks the most telling words of a refusal: for a PodDisruptionBudget the cause names it.
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
