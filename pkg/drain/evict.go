package drain

import (
	"context"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Evictor asks once for the eviction of a pod. Errors are those of the Kubernetes API.
type Evictor interface {
	Evict(ctx context.Context, e *policyv1.Eviction) error
}

// NewEvictor returns an Evictor that asks the API server.
func NewEvictor(client kubernetes.Interface) Evictor { return evictor{client.PolicyV1().RESTClient()} }

type evictor struct{ api rest.Interface }

// Evict implements Evictor without client-go's retries: it would sit out a 429's Retry-After here, 10 s
// for a budget whose status is old, and hold up the whole pass.
func (v evictor) Evict(ctx context.Context, e *policyv1.Eviction) error {
	return v.api.Post().AbsPath("/api/v1").MaxRetries(0).
		Namespace(e.Namespace).Resource("pods").Name(e.Name).SubResource("eviction").
		Body(e).Do(ctx).Error()
}
