package drain

import (
	"context"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Evictor requests the eviction of a pod, once. Errors are those of the Kubernetes API.
type Evictor interface {
	Evict(ctx context.Context, e *policyv1.Eviction) error
}

// NewEvictor returns an Evictor that sends its requests to the API server.
func NewEvictor(client kubernetes.Interface) Evictor { return evictor{client.PolicyV1().RESTClient()} }

type evictor struct{ api rest.Interface }

// Evict implements Evictor without client-go's retries: client-go would wait for a 429's Retry-After here, 10 s for a
// budget with an old status, and hold up the whole pass.
func (v evictor) Evict(ctx context.Context, e *policyv1.Eviction) error {
	return v.api.Post().AbsPath("/api/v1").MaxRetries(0).
		Namespace(e.Namespace).Resource("pods").Name(e.Name).SubResource("eviction").
		Body(e).Do(ctx).Error()
}
