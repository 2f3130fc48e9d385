package apiserver

import (
	"fmt"
	"slices"
	"sort"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// Selection says which objects of a resource are meant. Empty means all.
type Selection struct {
	Resource, Namespace, LabelSelector, FieldSelector string
}

// selector is a parsed Selection.
type selector struct {
	namespace string
	labels    labels.Selector
	fields    fields.Selector
	// name and node are what the fields ask for, if they do: these are looked up.
	name, node string
}

func (s *Server) selector(sel Selection) (*selector, error) {
	text := sel.Resource + "\x00" + sel.Namespace + "\x00" + sel.LabelSelector + "\x00" + sel.FieldSelector
	if p, ok := s.selectors[text]; ok {
		return p, nil
	}
	if s.resources[sel.Resource] == nil {
		notSimulated("resource %q", sel.Resource)
	}
	p := &selector{namespace: sel.Namespace}
	var err error
	if p.labels, err = labels.Parse(sel.LabelSelector); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if p.fields, err = fields.ParseSelector(sel.FieldSelector); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	for _, r := range p.fields.Requirements() {
		if _, ok := fieldOf(s.resources[sel.Resource].empty(), r.Field); !ok {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("field label not supported: %s", r.Field))
		}
	}
	p.name, _ = p.fields.RequiresExactMatch("metadata.name")
	p.node, _ = p.fields.RequiresExactMatch("spec.nodeName")
	s.selectors[text] = p
	return p, nil
}

func (p *selector) matches(o object) bool {
	if o == nil || p.namespace != "" && o.GetNamespace() != p.namespace {
		return false
	}
	return (p.fields.Empty() || p.fields.Matches(fieldsOf{o})) && (p.labels.Empty() || p.labels.Matches(labels.Set(o.GetLabels())))
}

type fieldsOf struct{ o object }

// Has is for fields.Fields.
func (f fieldsOf) Has(name string) bool { _, ok := fieldOf(f.o, name); return ok }

// Get is for fields.Fields.
func (f fieldsOf) Get(name string) string { v, _ := fieldOf(f.o, name); return v }

// fieldOf are the fields that can be selected by.
func fieldOf(o object, name string) (string, bool) {
	switch name {
	case "metadata.name":
		return o.GetName(), true
	case "metadata.namespace":
		_, cluster := o.(*corev1.Node)
		return o.GetNamespace(), !cluster
	}
	switch o := o.(type) {
	case *corev1.Node:
		if name == "spec.unschedulable" {
			return strconv.FormatBool(o.Spec.Unschedulable), true
		}
	case *corev1.Pod:
		switch name {
		case "spec.nodeName":
			return o.Spec.NodeName, true
		case "status.phase":
			return string(o.Status.Phase), true
		}
	}
	return "", false
}

// find lists what is stored now, sorted.
func (s *Server) find(r *resource, p *selector) []object {
	var out []object
	switch {
	case p.name != "" && (p.namespace != "" || !r.namespaced):
		if o := r.objects[key(p.namespace, p.name)]; p.matches(o) {
			out = append(out, o)
		}
	case p.node != "":
		for _, o := range s.byNode[p.node] {
			if p.matches(o) {
				out = append(out, o)
			}
		}
	default:
		keys := r.inNamespace(p.namespace)
		out = make([]object, 0, len(keys))
		for _, k := range keys {
			if o := r.objects[k]; p.matches(o) {
				out = append(out, o)
			}
		}
	}
	return out
}

// list lists live, or as it was if the options ask for exactly that.
func (s *Server) list(sel Selection, o metav1.ListOptions) ([]object, string, error) {
	sel.LabelSelector, sel.FieldSelector = o.LabelSelector, o.FieldSelector
	p, err := s.selector(sel)
	if err != nil {
		return nil, "", err
	}
	if o.Continue != "" {
		notSimulated("a page of a list")
	}
	r := s.resources[sel.Resource]
	if o.ResourceVersionMatch == metav1.ResourceVersionMatchExact {
		rev, err := strconv.ParseInt(o.ResourceVersion, 10, 64)
		if err != nil {
			return nil, "", apierrors.NewBadRequest(err.Error())
		}
		found, err := s.findAt(r, p, rev)
		return found, o.ResourceVersion, err
	}
	return s.find(r, p), strconv.FormatInt(s.revision, 10), nil
}

// findAt lists what was stored at a revision.
func (s *Server) findAt(r *resource, p *selector, revision int64) ([]object, error) {
	switch {
	case revision < s.compacted:
		return nil, apierrors.NewResourceExpired("The resourceVersion for the provided list is too old.")
	case revision > s.revision:
		return nil, apierrors.NewTimeoutError("Too large resource version", 1)
	}
	// was is what stood there, for what has changed since; nil is nothing.
	was := map[string]object{}
	for i := len(r.log) - 1; i >= 0 && r.log[i].revision > revision; i-- {
		c := r.log[i]
		if c.before != nil {
			was[keyOf(c.before)] = c.before
		} else {
			was[keyOf(c.after)] = nil
		}
	}
	var out []object
	keys := slices.Clone(r.inNamespace(p.namespace))
	for k := range was {
		if _, ok := r.objects[k]; !ok {
			keys = append(keys, k)
		}
	}
	sort.Strings(keys)
	for _, k := range keys {
		o, changed := was[k]
		if !changed {
			o = r.objects[k]
		}
		if o != nil && p.matches(o) {
			out = append(out, o)
		}
	}
	return out, nil
}

// ListAt lists copies of what was stored at a revision, sorted: a cache that lags shows that. A revision
// older than the last Compact is answered with 410.
func (s *Server) ListAt(sel Selection, revision int64) ([]runtime.Object, error) {
	p, err := s.selector(sel)
	if err != nil {
		return nil, err
	}
	found, err := s.findAt(s.resources[sel.Resource], p, revision)
	if err != nil {
		return nil, err
	}
	out := make([]runtime.Object, len(found))
	for i, o := range found {
		out[i] = o.DeepCopyObject()
	}
	return out, nil
}
