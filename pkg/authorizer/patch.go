package authorizer

import (
	"bytes"
	"encoding/json"
	"maps"
	"unicode/utf8"

	"github.com/pkg/errors"
)

// maxKeys and maxValue bound a patch; marker's own limits per key are tighter.
const (
	maxKeys  = 32
	maxValue = 1024
)

// Patch is the only form of merge patch that agents send: annotations, on one resourceVersion.
type Patch struct {
	ResourceVersion string
	// Annotations are set, or deleted where the value is nil.
	Annotations map[string]*string
}

// ParsePatch reads a merge patch strictly: a field that isn't known is a change that nobody judged.
func ParsePatch(body []byte) (Patch, error) {
	var p struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			ResourceVersion string             `json:"resourceVersion"`
			Annotations     map[string]*string `json:"annotations"`
		} `json:"metadata"`
	}
	if err := unique(body); err != nil {
		return Patch{}, err
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return Patch{}, errors.Wrap(err, "decoding the patch")
	}
	if d.More() {
		return Patch{}, errors.New("decoding the patch: something follows its object")
	}
	if p.APIVersion != "" && p.APIVersion != "v1" || p.Kind != "" && p.Kind != "Node" {
		return Patch{}, errors.New("the patch is not one of a Node")
	}
	if len(p.Metadata.Annotations) > maxKeys {
		return Patch{}, errors.Errorf("the patch has %d annotations, more than %d", len(p.Metadata.Annotations), maxKeys)
	}
	for k, v := range p.Metadata.Annotations {
		if v != nil && (len(*v) > maxValue || !utf8.ValidString(*v)) {
			return Patch{}, errors.Errorf("annotation %.80q is too long or not UTF-8", k)
		}
	}
	return Patch{ResourceVersion: p.Metadata.ResourceVersion, Annotations: p.Metadata.Annotations}, nil
}

// unique refuses objects that name a field twice, or in another case: two readers could see two patches.
func unique(body []byte) error {
	d := json.NewDecoder(bytes.NewReader(body))
	return walk(d, 0)
}

func walk(d *json.Decoder, depth int) error {
	token, err := d.Token()
	if err != nil {
		return errors.Wrap(err, "decoding the patch")
	}
	delim, ok := token.(json.Delim)
	if !ok {
		return nil
	}
	if depth > 4 || delim != '{' {
		return errors.New("the patch has an array or too many levels")
	}
	seen := map[string]bool{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return errors.Wrap(err, "decoding the patch")
		}
		key, _ := name.(string)
		if seen[key] {
			return errors.Errorf("the patch names %.80q twice", key)
		}
		seen[key] = true
		if depth < 2 && !known[key] {
			return errors.Errorf("the patch changes %.80q, which is not the agent's", key)
		}
		if err := walk(d, depth+1); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return errors.Wrap(err, "decoding the patch")
}

// known are the fields that a patch may have above the annotations, in exactly this case.
var known = map[string]bool{"apiVersion": true, "kind": true, "metadata": true, "resourceVersion": true, "annotations": true}

// body is the patch as it goes on to the API server: made anew, so that only what was judged is in it.
func (p Patch) body() ([]byte, error) {
	type metadata struct {
		ResourceVersion string             `json:"resourceVersion"`
		Annotations     map[string]*string `json:"annotations,omitempty"`
	}
	out, err := json.Marshal(struct {
		Metadata metadata `json:"metadata"`
	}{metadata{p.ResourceVersion, p.Annotations}})
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
