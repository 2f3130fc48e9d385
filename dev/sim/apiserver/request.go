package apiserver

import (
	"fmt"
	"net"
	"net/url"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Request says what a client asks for. Verbs are those of audit logs and RBAC.
type Request struct {
	Verb, Resource, Subresource, Namespace, Name string
	// DryRun: nothing is stored.
	DryRun bool
}

// String is for logs and failures of tests.
func (r Request) String() string {
	s := r.Verb + " " + r.Resource
	if r.Subresource != "" {
		s += "/" + r.Subresource
	}
	if r.DryRun {
		s = "try to " + s
	}
	switch {
	case r.Namespace != "" && r.Name != "":
		return s + " " + r.Namespace + "/" + r.Name
	case r.Namespace != "":
		return s + " in " + r.Namespace
	case r.Name != "":
		return s + " " + r.Name
	}
	return s
}

// Around is called around each request of a client. It may wait before and after run, call it not at all
// and return an error, or call it and return another error than it did: an answer that was lost.
type Around func(r Request, run func() error) error

// Throttled is the answer of a server that is asked too much: 429, come back after that time.
func Throttled(retryAfter time.Duration) error {
	return apierrors.NewTooManyRequests("too many requests, please try again later", int((retryAfter+time.Second-1)/time.Second))
}

// ServerTimeout is the answer of a server that can't reach etcd in time; the write may have happened.
func ServerTimeout(r Request) error {
	return apierrors.NewServerTimeout(schema.GroupResource{Group: group(r.Resource), Resource: r.Resource}, r.Verb, 2)
}

// ConnectionLost is what a client sees when the connection breaks before the answer: no answer of the
// server, nothing that apierrors knows.
func ConnectionLost(r Request) error {
	return &url.Error{
		Op: r.Verb, URL: fmt.Sprintf("https://apiserver/%s/%s/%s", r.Namespace, r.Resource, r.Name),
		Err: &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET},
	}
}
