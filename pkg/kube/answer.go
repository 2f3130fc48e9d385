package kube

import (
	"context"
	"net/http"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// Slow reports whether a request got no answer in the time that it was given. What came of it is not known: it may be
// carried out later still.
func Slow(err error) bool { return errors.Is(err, context.DeadlineExceeded) }

// Answer returns, as one line of at most marker.MaxMessage bytes, what the API server had against one request:
// admission refused it, for example, or a webhook that is asked about it failed. It is empty if there was no answer,
// and if the answer would have been the same to any other request: too many of them, or none to be taken just now, or
// none of this account.
func Answer(err error) string {
	var said apierrors.APIStatus
	if !errors.As(err, &said) {
		return ""
	}
	switch code := said.Status().Code; {
	case code < http.StatusBadRequest, code == http.StatusUnauthorized, code == http.StatusTooManyRequests, code == http.StatusServiceUnavailable:
		return ""
	}
	return marker.Clip(said.Status().Message, marker.MaxMessage)
}
