package authorizer

import (
	"encoding/json"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/authorizer/rule"
)

// What the rule judges, and by.
type (
	Reason  = rule.Reason
	Refusal = rule.Refusal
	Patch   = rule.Patch
	Live    = rule.Live
	Write   = rule.Write
)

// Status returns a refusal in the form of the Kubernetes API.
func Status(r *Refusal) metav1.Status {
	s := metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Message: r.Message}
	switch r.Reason {
	case rule.ReasonNoToken, rule.ReasonBadToken:
		s.Code, s.Reason = http.StatusUnauthorized, metav1.StatusReasonUnauthorized
	case rule.ReasonConflict:
		s.Code, s.Reason = http.StatusConflict, metav1.StatusReasonConflict
	case rule.ReasonTooMany:
		s.Code, s.Reason = http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests
	case rule.ReasonUpstream:
		s.Code, s.Reason = http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable
	default:
		s.Code, s.Reason = http.StatusForbidden, metav1.StatusReasonForbidden
	}
	return s
}

// write answers with a refusal, always in JSON: clients go by its Content-Type.
func write(w http.ResponseWriter, r *Refusal) {
	s := Status(r)
	body, err := json.Marshal(s)
	if err != nil {
		panic("authorizer: " + err.Error())
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if r.Reason == rule.ReasonTooMany {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(int(s.Code))
	_, _ = w.Write(body)
}
