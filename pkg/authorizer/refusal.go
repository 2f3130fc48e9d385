package authorizer

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reason is why a request was refused; it is the metric's label and the audit line's field.
type Reason string

// The closed list of reasons.
const (
	ReasonNoToken     Reason = "NoToken"
	ReasonBadToken    Reason = "BadToken"
	ReasonAccount     Reason = "WrongAccount"
	ReasonUnbound     Reason = "TokenNotBoundToNode"
	ReasonNode        Reason = "OtherNode"
	ReasonNodeUID     Reason = "OtherNodeOfThatName"
	ReasonVerb        Reason = "VerbNotAllowed"
	ReasonQuery       Reason = "QueryNotAllowed"
	ReasonAccept      Reason = "MetadataOnly"
	ReasonPatchType   Reason = "PatchTypeNotAllowed"
	ReasonPatch       Reason = "PatchNotUnderstood"
	ReasonVersion     Reason = "NoResourceVersion"
	ReasonConflict    Reason = "Conflict"
	ReasonKey         Reason = "KeyNotAllowed"
	ReasonValue       Reason = "ValueNotAllowed"
	ReasonIntent      Reason = "NotTheStandingIntent"
	ReasonUntil       Reason = "IntentExpired"
	ReasonPaused      Reason = "Paused"
	ReasonAfterError  Reason = "BusyAfterError"
	ReasonNotCordoned Reason = "NotCordoned"
	ReasonTooMany     Reason = "TooManyRequests"
	ReasonUpstream    Reason = "APIServerUnavailable"
)

var reasons = []Reason{ReasonNoToken, ReasonBadToken, ReasonAccount, ReasonUnbound, ReasonNode, ReasonNodeUID, ReasonVerb,
	ReasonQuery, ReasonAccept, ReasonPatchType, ReasonPatch, ReasonVersion, ReasonConflict, ReasonKey, ReasonValue, ReasonIntent,
	ReasonUntil, ReasonPaused, ReasonAfterError, ReasonNotCordoned, ReasonTooMany, ReasonUpstream}

// Reasons is the closed list.
func Reasons() []Reason { return slices.Clone(reasons) }

// Refusal is a no, with the sentence that the agent, and whoever reads its log, gets.
type Refusal struct {
	Reason  Reason
	Message string
}

func refuse(r Reason, format string, args ...any) *Refusal {
	return &Refusal{Reason: r, Message: fmt.Sprintf(format, args...)}
}

func (r *Refusal) Error() string { return r.Message }

// status is the refusal as the Kubernetes API says it.
func (r *Refusal) status() metav1.Status {
	s := metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Message: r.Message, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden}
	switch r.Reason {
	case ReasonNoToken, ReasonBadToken:
		s.Code, s.Reason = http.StatusUnauthorized, metav1.StatusReasonUnauthorized
	case ReasonConflict:
		s.Code, s.Reason = http.StatusConflict, metav1.StatusReasonConflict
	case ReasonTooMany:
		s.Code, s.Reason = http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests
	case ReasonUpstream:
		s.Code, s.Reason = http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable
	}
	return s
}

func (r *Refusal) write(w http.ResponseWriter) {
	s := r.status()
	w.Header().Set("Content-Type", "application/json")
	if r.Reason == ReasonTooMany {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(int(s.Code))
	_ = json.NewEncoder(w).Encode(s)
}
