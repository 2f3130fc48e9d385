package agent

import (
	"context"
	"encoding/json"
	"maps"
	"strings"

	"github.com/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// Node is the agent's own node: all that it uses of Kubernetes. Its errors are those of the Kubernetes API, so that a
// conflict differs from a refusal.
type Node interface {
	// Get reads the node live.
	Get(ctx context.Context) (*Snapshot, error)
	// Patch writes annotations and returns the node with them.
	Patch(ctx context.Context, p Patch) (*Snapshot, error)
	// Watch calls update with the node whenever it changes, and with nil when it is gone, until ctx ends.
	Watch(ctx context.Context, update func(*Snapshot))
	// WatchErr returns why a change that is made now would not come through Watch; nil if it would. It sends no request:
	// it goes by what came through Watch lately.
	WatchErr() error
}

// Snapshot is the node at one resource version. It is immutable.
type Snapshot struct {
	UID             string
	ResourceVersion string
	// Annotations are the operator's alone.
	Annotations map[string]string
}

// SnapshotOf returns what an agent needs of a node's metadata.
func SnapshotOf(m *metav1.ObjectMeta) *Snapshot {
	s := &Snapshot{UID: string(m.UID), ResourceVersion: m.ResourceVersion, Annotations: map[string]string{}}
	for k, v := range m.Annotations {
		if strings.HasPrefix(k, marker.Prefix) {
			s.Annotations[k] = v
		}
	}
	return s
}

// newerThan reports whether s is a later state of the node than o. Resource versions that aren't numbers can't be
// ordered; then the state that came last counts.
func (s *Snapshot) newerThan(o *Snapshot) bool {
	if o == nil {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(s.ResourceVersion, o.ResourceVersion)
	return err != nil || order > 0
}

func (s *Snapshot) sameMarks(o *Snapshot) bool {
	return o != nil && s.UID == o.UID && maps.Equal(s.Annotations, o.Annotations)
}

// Patch is one write of an agent.
type Patch struct {
	// ResourceVersion is that of the state that the write was decided from.
	ResourceVersion string
	// Annotations are set, or removed where the value is nil.
	Annotations map[marker.Key]*string
}

// Body returns p as a JSON merge patch.
func (p Patch) Body() ([]byte, error) {
	type metadata struct {
		ResourceVersion string                 `json:"resourceVersion"`
		Annotations     map[marker.Key]*string `json:"annotations"`
	}
	body, err := json.Marshal(struct {
		Metadata metadata `json:"metadata"`
	}{metadata(p)})
	return body, errors.Wrap(err, "encoding patch")
}
