package rule

import (
	"fmt"
	"slices"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plain"
)

// maxMessage limits the message of a refusal, in bytes.
const maxMessage = 400

// Reason is why a request was refused: a label of the metric and a field of the log line.
type Reason string

// The closed list of reasons.
const (
	// ReasonNoToken: the request has no bearer token.
	ReasonNoToken Reason = "NoToken"
	// ReasonBadToken: the token is malformed, not valid for the API server, or for another audience.
	ReasonBadToken Reason = "BadToken"
	// ReasonAccount: the token is another account's than the agents'.
	ReasonAccount Reason = "WrongAccount"
	// ReasonUnbound: the token isn't bound to a pod on a node.
	ReasonUnbound Reason = "TokenNotBoundToNode"
	// ReasonNode: the request is about another node than the agent's own.
	ReasonNode Reason = "OtherNode"
	// ReasonNodeUID: the node is gone, or another one has its name.
	ReasonNodeUID Reason = "OtherNodeOfThatName"
	// ReasonVerb: the path, or the method on it, is not allowed.
	ReasonVerb Reason = "VerbNotAllowed"
	// ReasonQuery: a query parameter is not allowed.
	ReasonQuery Reason = "QueryNotAllowed"
	// ReasonAccept: the request didn't ask for metadata.
	ReasonAccept Reason = "MetadataOnly"
	// ReasonPatchType: the patch isn't a merge patch.
	ReasonPatchType Reason = "PatchTypeNotAllowed"
	// ReasonPatch: the patch can't be read, or could be read in two ways.
	ReasonPatch Reason = "PatchNotUnderstood"
	// ReasonField: the patch changes a field other than annotations.
	ReasonField Reason = "FieldNotAllowed"
	// ReasonVersion: the patch has no resourceVersion.
	ReasonVersion Reason = "NoResourceVersion"
	// ReasonConflict: the node changed since the patch's resourceVersion. This is normal: the agent reads the node again.
	ReasonConflict Reason = "Conflict"
	// ReasonKey: an annotation is not the agent's to write.
	ReasonKey Reason = "KeyNotAllowed"
	// ReasonValue: a value can't be read back, or exceeds its limits.
	ReasonValue Reason = "ValueNotAllowed"
	// ReasonIntent: the answer is to another intent than the node's current one.
	ReasonIntent Reason = "NotTheCurrentIntent"
	// ReasonUntil: the intent is too old to begin.
	ReasonUntil Reason = "IntentExpired"
	// ReasonPaused: nothing begins on a paused node.
	ReasonPaused Reason = "Paused"
	// ReasonAfterError: an intent that failed doesn't begin again.
	ReasonAfterError Reason = "BusyAfterError"
	// ReasonAfterAnswer: an intent that is done doesn't begin again.
	ReasonAfterAnswer Reason = "BusyAfterAnswer"
	// ReasonNotCordoned: a node that takes new pods must not be rebooted.
	ReasonNotCordoned Reason = "NotCordoned"
	// ReasonRebooted: an intent allows at most one reboot.
	ReasonRebooted Reason = "AlreadyRebooted"
	// ReasonUnproven: the report's own facts contradict its success.
	ReasonUnproven Reason = "ReadyNotProven"
	// ReasonTooMany: one agent, or one address without a good token, sends too many requests.
	ReasonTooMany Reason = "TooManyRequests"
	// ReasonUpstream: the API server didn't answer, or its answer can't be passed on.
	ReasonUpstream Reason = "APIServerUnavailable"
)

var reasons = []Reason{ReasonNoToken, ReasonBadToken, ReasonAccount, ReasonUnbound, ReasonNode, ReasonNodeUID, ReasonVerb,
	ReasonQuery, ReasonAccept, ReasonPatchType, ReasonPatch, ReasonField, ReasonVersion, ReasonConflict, ReasonKey, ReasonValue,
	ReasonIntent, ReasonUntil, ReasonPaused, ReasonAfterError, ReasonAfterAnswer, ReasonNotCordoned, ReasonRebooted, ReasonUnproven,
	ReasonTooMany, ReasonUpstream}

// Reasons returns all reasons.
func Reasons() []Reason { return slices.Clone(reasons) }

// Refusal is why a request was refused, with a message for the agent's and the proxy's log.
type Refusal struct {
	Reason  Reason
	Message string
}

// Refuse returns a refusal whose message is one short printable line.
func Refuse(r Reason, format string, args ...any) *Refusal {
	return &Refusal{Reason: r, Message: plain.Line(fmt.Sprintf(format, args...), maxMessage)}
}
