package agent

import (
	"context"
	"encoding/json"
	"maps"
	"strconv"
	"strings"

	"github.com/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// Node is the agent's own node: all that it sees of Kubernetes. Errors are those of the Kubernetes API,
// so that a conflict or a refusal can be told apart.
type Node interface {
	// Get reads the node live.
	Get(ctx context.Context) (*Seen, error)
	// Patch writes annotations and returns the node with them.
	Patch(ctx context.Context, p Patch) (*Seen, error)
	// Watch calls seen with the node whenever it changes, with nil when it is gone, until ctx ends.
	Watch(ctx context.Context, seen func(*Seen))
	// Hears says, as nil, that Watch would show a change that is made now. It doesn't ask: what came through Watch lately
	// tells.
	Hears() error
}

// Seen is the node as it was at one resource version. It is not changed any more.
type Seen struct {
	UID             string
	ResourceVersion string
	// Annotations are the operator's alone.
	Annotations map[string]string
}

// SeenOf takes from a node's metadata what an agent needs.
func SeenOf(m *metav1.ObjectMeta) *Seen {
	s := &Seen{UID: string(m.UID), ResourceVersion: m.ResourceVersion, Annotations: map[string]string{}}
	for k, v := range m.Annotations {
		if strings.HasPrefix(k, marker.Prefix) {
			s.Annotations[k] = v
		}
	}
	return s
}

// newerThan tells if s is a later version of the node than o. Versions that aren't numbers can't be
// ordered; then the one that came last counts.
func (s *Seen) newerThan(o *Seen) bool {
	if o == nil {
		return true
	}
	a, errA := strconv.ParseUint(s.ResourceVersion, 10, 64)
	b, errB := strconv.ParseUint(o.ResourceVersion, 10, 64)
	return errA != nil || errB != nil || a > b
}

func (s *Seen) sameMarks(o *Seen) bool {
	return o != nil && s.UID == o.UID && maps.Equal(s.Annotations, o.Annotations)
}

// Patch is one write of an agent.
type Patch struct {
	// ResourceVersion is that of the node that was decided from.
	ResourceVersion string
	// Annotations are set, or deleted where the value is nil.
	Annotations map[marker.Key]*string
}

// Body is the JSON merge patch that p stands for.
func (p Patch) Body() ([]byte, error) {
	type metadata struct {
		ResourceVersion string                 `json:"resourceVersion"`
		Annotations     map[marker.Key]*string `json:"annotations"`
	}
	body, err := json.Marshal(struct {
		Metadata metadata `json:"metadata"`
	}{metadata{p.ResourceVersion, p.Annotations}})
	return body, errors.Wrap(err, "encoding patch")
}
