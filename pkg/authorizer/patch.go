package authorizer

import (
	"bytes"
	"encoding/json"
	"io"
	"unicode/utf8"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/authorizer/rule"
)

const (
	// maxAnnotations and maxValue bound a patch; marker's own limits per key are tighter.
	maxAnnotations = 32
	maxValue       = 1024
)

// ParsePatch reads a merge patch strictly. An unknown field would be a change that was not judged; a name that comes
// twice, or in another case, could be read in two ways; null instead of an object would delete all of its fields.
func ParsePatch(body []byte) (Patch, *Refusal) {
	if !utf8.Valid(body) {
		return Patch{}, rule.Refuse(rule.ReasonPatch, "the patch is not valid UTF-8")
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
		return rule.Refuse(rule.ReasonField, "the patch changes %.80q, which is not the agent's", name)
	})
	if refusal != nil {
		return Patch{}, refusal
	}
	if _, err := r.Token(); !errors.Is(err, io.EOF) {
		return Patch{}, rule.Refuse(rule.ReasonPatch, "there is text after the patch: send one JSON object")
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
			refusal = rule.Refuse(rule.ReasonField, "the patch changes %.80q, which is not the agent's", "metadata."+name)
		}
		return refusal
	})
}

func (r reader) annotations(into map[string]*string) *Refusal {
	return r.object("metadata.annotations", func(name string) *Refusal {
		if len(into) == maxAnnotations {
			return rule.Refuse(rule.ReasonPatch, "the patch has more than %d annotations", maxAnnotations)
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
				return rule.Refuse(rule.ReasonValue, "annotation %.80q is %d bytes long, more than %d", name, len(v), maxValue)
			}
			into[name] = &v
		default:
			return rule.Refuse(rule.ReasonPatch, "annotation %.80q is neither a string nor null", name)
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
		return rule.Refuse(rule.ReasonPatch, "%s is not an object", what)
	}
	seen := map[string]bool{}
	for r.More() {
		token, err := r.Token()
		if err != nil {
			return unreadable(err)
		}
		name, ok := token.(string)
		if !ok {
			return rule.Refuse(rule.ReasonPatch, "%s has a name that is not a string", what)
		}
		if seen[name] {
			return rule.Refuse(rule.ReasonPatch, "%s names %.80q twice", what, name)
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
		return "", rule.Refuse(rule.ReasonPatch, "%q is not a string of at most %d bytes", name, maxValue)
	}
	return s, nil
}

func (r reader) constant(name, want string) *Refusal {
	s, refusal := r.text(name)
	if refusal == nil && s != want {
		refusal = rule.Refuse(rule.ReasonPatch, "the patch is not for a Node: %q is %.80q", name, s)
	}
	return refusal
}

func unreadable(err error) *Refusal {
	return rule.Refuse(rule.ReasonPatch, "the patch can't be read: %v", err)
}
