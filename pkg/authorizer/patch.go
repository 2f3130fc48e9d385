package authorizer

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"unicode/utf8"

	"github.com/pkg/errors"
)

const (
	// maxAnnotations and maxValue bound a patch; marker's own limits per key are tighter.
	maxAnnotations = 32
	maxValue       = 1024
)

// Patch is the only form of merge patch that agents may send: annotations, on one resourceVersion.
type Patch struct {
	ResourceVersion string
	// Annotations are set, or deleted where the value is nil.
	Annotations map[string]*string
}

// ParsePatch reads a merge patch strictly. An unknown field would be a change that was not judged; a name that comes
// twice, or in another case, could be read in two ways; null instead of an object would delete all of its fields.
func ParsePatch(body []byte) (Patch, *Refusal) {
	if !utf8.Valid(body) {
		return Patch{}, refuse(ReasonPatch, "the patch is not valid UTF-8")
	}
	var p Patch
	r := reader{json.NewDecoder(bytes.NewReader(body))}
	refusal := r.object("the patch", func(name string) *Refusal {
		switch name {
		case "apiVersion":
			return r.constant(name, "v1")
		case "kind":
			return r.constant(name, "Node")
		case "metadata":
			return r.metadata(&p)
		}
		return refuse(ReasonField, "the patch changes %.80q, which is not the agent's", name)
	})
	if refusal != nil {
		return Patch{}, refusal
	}
	if _, err := r.Token(); !errors.Is(err, io.EOF) {
		return Patch{}, refuse(ReasonPatch, "there is text after the patch: send one JSON object")
	}
	return p, nil
}

// reader reads a patch token by token and stops at the first mistake, so that neither depth nor size of the rest
// matters.
type reader struct{ *json.Decoder }

func (r reader) metadata(p *Patch) *Refusal {
	return r.object("metadata", func(name string) *Refusal {
		var refusal *Refusal
		switch name {
		case "resourceVersion":
			p.ResourceVersion, refusal = r.text(name)
		case "annotations":
			p.Annotations = map[string]*string{}
			refusal = r.annotations(p.Annotations)
		default:
			refusal = refuse(ReasonField, "the patch changes %.80q, which is not the agent's", "metadata."+name)
		}
		return refusal
	})
}

func (r reader) annotations(into map[string]*string) *Refusal {
	return r.object("metadata.annotations", func(name string) *Refusal {
		if len(into) == maxAnnotations {
			return refuse(ReasonPatch, "the patch has more than %d annotations", maxAnnotations)
		}
		token, err := r.Token()
		if err != nil {
			return unreadable(err)
		}
		switch v := token.(type) {
		case nil:
			into[name] = nil
		case string:
			if len(v) > maxValue {
				return refuse(ReasonValue, "annotation %.80q is %d bytes long, more than %d", name, len(v), maxValue)
			}
			into[name] = &v
		default:
			return refuse(ReasonPatch, "annotation %.80q is neither a string nor null", name)
		}
		return nil
	})
}

// object reads an object, and calls value to read the value of each name.
func (r reader) object(what string, value func(name string) *Refusal) *Refusal {
	token, err := r.Token()
	if err != nil {
		return unreadable(err)
	}
	if token != json.Delim('{') {
		return refuse(ReasonPatch, "%s is not an object", what)
	}
	seen := map[string]bool{}
	for r.More() {
		token, err := r.Token()
		if err != nil {
			return unreadable(err)
		}
		name, ok := token.(string)
		if !ok {
			return refuse(ReasonPatch, "%s has a name that is not a string", what)
		}
		if seen[name] {
			return refuse(ReasonPatch, "%s names %.80q twice", what, name)
		}
		seen[name] = true
		if refusal := value(name); refusal != nil {
			return refusal
		}
	}
	if _, err = r.Token(); err != nil {
		return unreadable(err)
	}
	return nil
}

func (r reader) text(name string) (string, *Refusal) {
	token, err := r.Token()
	if err != nil {
		return "", unreadable(err)
	}
	s, ok := token.(string)
	if !ok || len(s) > maxValue {
		return "", refuse(ReasonPatch, "%q is not a string of at most %d bytes", name, maxValue)
	}
	return s, nil
}

func (r reader) constant(name, want string) *Refusal {
	s, refusal := r.text(name)
	if refusal == nil && s != want {
		refusal = refuse(ReasonPatch, "the patch is not for a Node: %q is %.80q", name, s)
	}
	return refusal
}

func unreadable(err error) *Refusal { return refuse(ReasonPatch, "the patch can't be read: %v", err) }

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
