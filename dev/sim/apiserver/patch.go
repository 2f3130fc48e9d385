package apiserver

import (
	"bytes"
	"encoding/json"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"
)

// mergePatch returns old with a JSON merge patch applied. Almost all patches are of annotations, labels
// and a node's spec.unschedulable; for those the object needn't become JSON and back.
func (r *resource) mergePatch(old object, data []byte) (object, error) {
	var diff map[string]any
	if err := json.Unmarshal(data, &diff); err != nil {
		return nil, apierrors.NewBadRequest("error decoding patch: " + err.Error())
	}
	obj := r.shallow(old)
	if patchKnown(obj, diff) {
		return obj, nil
	}
	return r.patchAny(old, data)
}

// patchKnown applies a patch of nothing but the fields that it knows; if there are others, or values of
// another type, it returns false, and obj is to be thrown away.
func patchKnown(obj object, diff map[string]any) bool {
	for k, v := range diff {
		m, ok := v.(map[string]any)
		if !ok {
			return false
		}
		switch k {
		case "metadata":
			ok = patchMetadata(obj, m)
		case "spec":
			ok = patchUnschedulable(obj, m)
		default:
			ok = false
		}
		if !ok {
			return false
		}
	}
	return true
}

func patchMetadata(obj object, diff map[string]any) bool {
	for k, v := range diff {
		switch k {
		case "annotations":
			a, ok := patchStrings(obj.GetAnnotations(), v)
			if !ok {
				return false
			}
			obj.SetAnnotations(a)
		case "labels":
			l, ok := patchStrings(obj.GetLabels(), v)
			if !ok {
				return false
			}
			obj.SetLabels(l)
		case "resourceVersion":
			text, ok := v.(string)
			if !ok && v != nil {
				return false
			}
			obj.SetResourceVersion(text)
		case "uid":
			text, ok := v.(string)
			if !ok && v != nil {
				return false
			}
			obj.SetUID(types.UID(text))
		default:
			return false
		}
	}
	return true
}

// patchStrings returns a changed copy: the map that is there is stored.
func patchStrings(old map[string]string, diff any) (map[string]string, bool) {
	if diff == nil {
		return nil, true
	}
	d, ok := diff.(map[string]any)
	if !ok {
		return nil, false
	}
	m := make(map[string]string, len(old)+len(d))
	maps.Copy(m, old)
	for k, v := range d {
		switch v := v.(type) {
		case nil:
			delete(m, k)
		case string:
			m[k] = v
		default:
			return nil, false
		}
	}
	return m, true
}

func patchUnschedulable(obj object, diff map[string]any) bool {
	n, ok := obj.(*corev1.Node)
	if !ok {
		return false
	}
	for k, v := range diff {
		on, ok := v.(bool)
		if k != "unschedulable" || !ok && v != nil {
			return false
		}
		n.Spec.Unschedulable = on
	}
	return true
}

// strict decodes what is JSON, and knows which fields are unknown.
var strict = kjson.NewSerializerWithOptions(kjson.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, kjson.SerializerOptions{Strict: true})

// patchAny is the way through JSON.
func (r *resource) patchAny(old object, data []byte) (object, error) {
	current, err := json.Marshal(old)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	var doc, diff any
	for raw, into := range map[*[]byte]*any{&current: &doc, &data: &diff} {
		d := json.NewDecoder(bytes.NewReader(*raw))
		d.UseNumber()
		if err := d.Decode(into); err != nil {
			return nil, apierrors.NewBadRequest("error decoding patch: " + err.Error())
		}
	}
	patched, err := json.Marshal(merge(doc, diff))
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	obj := r.empty()
	if _, _, err := strict.Decode(patched, &r.kind, obj); err != nil {
		if _, unknown := runtime.AsStrictDecodingError(err); unknown {
			notSimulated("a patch of %s with what isn't there (%v)", r.plural.Resource, err)
		}
		return nil, apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{field.Invalid(field.NewPath("patch"), string(patched), err.Error())})
	}
	r.clean(obj)
	return obj, nil
}

// merge is RFC 7386.
func merge(doc, diff any) any {
	d, ok := diff.(map[string]any)
	if !ok {
		return diff
	}
	m, ok := doc.(map[string]any)
	if !ok {
		m = map[string]any{}
	}
	for k, v := range d {
		if v == nil {
			delete(m, k)
		} else {
			m[k] = merge(m[k], v)
		}
	}
	return m
}
