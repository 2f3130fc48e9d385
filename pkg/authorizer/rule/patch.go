package rule

import (
	"encoding/json"
	"maps"

	"github.com/pkg/errors"
)

// Patch is the only form of merge patch that agents may send: annotations, on one resourceVersion.
type Patch struct {
	ResourceVersion string
	// Annotations are set, or deleted where the value is nil.
	Annotations map[string]*string
}

// Body returns the patch for the API server, composed anew, so that it holds only what was judged.
func (p Patch) Body() ([]byte, error) {
	type metadata struct {
		ResourceVersion string             `json:"resourceVersion"`
		Annotations     map[string]*string `json:"annotations,omitempty"`
	}
	out, err := json.Marshal(struct {
		Metadata metadata `json:"metadata"`
	}{metadata(p)})
	return out, errors.Wrap(err, "encoding the patch")
}

// apply returns the annotations after the patch.
func (p Patch) apply(before map[string]string) map[string]string {
	after := maps.Clone(before)
	if after == nil {
		after = map[string]string{}
	}
	for k, v := range p.Annotations {
		if v == nil {
			delete(after, k)
		} else {
			after[k] = *v
		}
	}
	return after
}
