package manifest

import (
	"bytes"
	"encoding/json"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	serializerjson "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
)

// Patched returns o with strategic merge patches, a YAML file of objects that hold only what is to be
// different. Each must name an object of o.
func (o Objects) Patched(patches []byte) (Objects, error) {
	docs, err := split(patches)
	if err != nil {
		return Objects{}, err
	}
	all := make([]runtime.Object, len(o.All))
	for i, obj := range o.All {
		all[i] = obj.DeepCopyObject()
	}
	for i, doc := range docs {
		if all, err = patchOne(all, doc); err != nil {
			return Objects{}, errors.WithMessagef(err, "patch %d", i+1)
		}
	}
	var out Objects
	for _, obj := range all {
		if err := out.add(obj); err != nil {
			return Objects{}, err
		}
	}
	return out, nil
}

func patchOne(all []runtime.Object, doc []byte) ([]runtime.Object, error) {
	patch, err := utilyaml.ToJSON(doc)
	if err != nil {
		return nil, errors.Wrap(err, "reading YAML")
	}
	var target metav1.PartialObjectMetadata
	if err := json.Unmarshal(patch, &target); err != nil {
		return nil, errors.Wrap(err, "reading its name")
	}
	for i, obj := range all {
		m, err := meta.Accessor(obj)
		if err != nil {
			return nil, errors.Wrap(err, "reading an object's name")
		}
		kind := obj.GetObjectKind().GroupVersionKind()
		if kind != target.GroupVersionKind() || m.GetName() != target.Name || m.GetNamespace() != target.Namespace {
			continue
		}
		before, err := json.Marshal(obj)
		if err != nil {
			return nil, errors.Wrapf(err, "encoding %s %s", kind.Kind, target.Name)
		}
		after, err := strategicpatch.StrategicMergePatch(before, patch, obj)
		if err != nil {
			return nil, errors.Wrapf(err, "patching %s %s", kind.Kind, target.Name)
		}
		// Decoded like the manifest itself, so a misspelt field in a patch is found.
		decoded, err := Decode(after)
		if err != nil {
			return nil, errors.WithMessagef(err, "patching %s %s", kind.Kind, target.Name)
		}
		all[i] = decoded.All[0]
		return all, nil
	}
	return nil, errors.Errorf("%s %s/%s is not in the manifest", target.Kind, target.Namespace, target.Name)
}

// SetImage makes every container run image.
func (o Objects) SetImage(image string) {
	for _, w := range o.Workloads() {
		for i := range w.Template.Spec.Containers {
			w.Template.Spec.Containers[i].Image = image
		}
	}
}

// YAML is what kubectl apply takes.
func (o Objects) YAML() ([]byte, error) {
	s := serializerjson.NewSerializerWithOptions(serializerjson.DefaultMetaFactory, scheme.Scheme, scheme.Scheme,
		serializerjson.SerializerOptions{Yaml: true})
	var out bytes.Buffer
	for i, obj := range o.All {
		if i > 0 {
			out.WriteString("---\n")
		}
		if err := s.Encode(obj, &out); err != nil {
			return nil, errors.Wrapf(err, "encoding object %d", i+1)
		}
	}
	return out.Bytes(), nil
}
