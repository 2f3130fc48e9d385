package authorizer

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plain"
)

// Reason is why a request was refused; it is the metric's label and the audit line's field.
type Reason string

// The closed list of reasons.
const (
	// ReasonNoToken: there is no bearer token, or nothing that could be one.
	ReasonNoToken Reason = "NoToken"
	// ReasonBadToken: the API server doesn't know the token, it is for another audience, or has no token's form.
	ReasonBadToken Reason = "BadToken"
	// ReasonAccount: the token is of another account than the agents'.
	ReasonAccount Reason = "WrongAccount"
	// ReasonUnbound: the token isn't bound to a pod on a node.
	ReasonUnbound Reason = "TokenNotBoundToNode"
	// ReasonNode: the request is about another node than the agent's own.
	ReasonNode Reason = "OtherNode"
	// ReasonNodeUID: the node is gone, or another one has its name.
	ReasonNodeUID Reason = "OtherNodeOfThatName"
	// ReasonVerb: no path, or no method on it, that is served.
	ReasonVerb Reason = "VerbNotAllowed"
	// ReasonQuery: a query that could mean more than was judged.
	ReasonQuery Reason = "QueryNotAllowed"
	// ReasonAccept: the request didn't ask for metadata.
	ReasonAccept Reason = "MetadataOnly"
	// ReasonPatchType: another patch than a merge patch.
	ReasonPatchType Reason = "PatchTypeNotAllowed"
	// ReasonPatch: the patch can't be read, or not in one way only.
	ReasonPatch Reason = "PatchNotUnderstood"
	// ReasonField: the patch changes something else than annotations.
	ReasonField Reason = "FieldNotAllowed"
	// ReasonVersion: the patch doesn't say what it was made from.
	ReasonVersion Reason = "NoResourceVersion"
	// ReasonConflict: the node was changed since. This is everyday life: the agent looks again.
	ReasonConflict Reason = "Conflict"
	// ReasonKey: an annotation that isn't the agent's.
	ReasonKey Reason = "KeyNotAllowed"
	// ReasonValue: a value that can't be read back or is out of its limits.
	ReasonValue Reason = "ValueNotAllowed"
	// ReasonIntent: an answer to something else than the intent that stands.
	ReasonIntent Reason = "NotTheStandingIntent"
	// ReasonUntil: too late to begin.
	ReasonUntil Reason = "IntentExpired"
	// ReasonPaused: nothing begins on a paused node.
	ReasonPaused Reason = "Paused"
	// ReasonAfterError: an intent that failed doesn't begin again.
	ReasonAfterError Reason = "BusyAfterError"
	// ReasonAfterAnswer: an intent that was answered otherwise doesn't begin again.
	ReasonAfterAnswer Reason = "BusyAfterAnswer"
	// ReasonNotCordoned: nobody reboots a node that takes new pods.
	ReasonNotCordoned Reason = "NotCordoned"
	// ReasonRebooted: one intent is one reboot at most.
	ReasonRebooted Reason = "AlreadyRebooted"
	// ReasonUnproven: success that the report's own facts deny.
	ReasonUnproven Reason = "ReadyNotProven"
	// ReasonTooMany: one agent, or one address without a good token, asks too often.
	ReasonTooMany Reason = "TooManyRequests"
	// ReasonUpstream: the API server didn't answer, or not in a way that could be passed on.
	ReasonUpstream Reason = "APIServerUnavailable"
)

var reasons = []Reason{ReasonNoToken, ReasonBadToken, ReasonAccount, ReasonUnbound, ReasonNode, ReasonNodeUID, ReasonVerb,
	ReasonQuery, ReasonAccept, ReasonPatchType, ReasonPatch, ReasonField, ReasonVersion, ReasonConflict, ReasonKey, ReasonValue,
	ReasonIntent, ReasonUntil, ReasonPaused, ReasonAfterError, ReasonAfterAnswer, ReasonNotCordoned, ReasonRebooted, ReasonUnproven,
	ReasonTooMany, ReasonUpstream}

// Reasons is the closed list.
func Reasons() []Reason { return slices.Clone(reasons) }

// Refusal is a no, with the sentence that the agent, and whoever reads its log, gets.
type Refusal struct {
	Reason  Reason
	Message string
}

// refuse says no in one short line, whatever is quoted in it.
func refuse(r Reason, format string, args ...any) *Refusal {
	return &Refusal{Reason: r, Message: plain.Line(fmt.Sprintf(format, args...), maxMessage)}
}

// Status is the refusal as the Kubernetes API says it.
func (r *Refusal) Status() metav1.Status {
	s := metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Message: r.Message}
	switch r.Reason {
	case ReasonNoToken, ReasonBadToken:
		s.Code, s.Reason = http.StatusUnauthorized, metav1.StatusReasonUnauthorized
	case ReasonConflict:
		s.Code, s.Reason = http.StatusConflict, metav1.StatusReasonConflict
	case ReasonTooMany:
		s.Code, s.Reason = http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests
	case ReasonUpstream:
		s.Code, s.Reason = http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable
	default:
		s.Code, s.Reason = http.StatusForbidden, metav1.StatusReasonForbidden
	}
	return s
}

// write answers with the refusal. It is JSON whatever was asked for: clients read it by its Content-Type.
func (r *Refusal) write(w http.ResponseWriter) {
	s := r.Status()
	body, err := json.Marshal(s)
	if err != nil {
		panic("authorizer: " + err.Error())
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if r.Reason == ReasonTooMany {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(int(s.Code))
	_, _ = w.Write(body)
}
