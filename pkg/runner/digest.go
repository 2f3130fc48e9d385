package runner

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// digestLength is that of a digest, in hex digits.
const digestLength = 16

// reader reads what is in the namespace of plans; nil for what isn't there.
type reader interface {
	template(ctx context.Context, name string) (*corev1.PodTemplate, error)
	configMap(ctx context.Context, name string) (*corev1.ConfigMap, error)
	secret(ctx context.Context, name string) (*corev1.Secret, error)
}

// content is what a digest is of. Names are part of it.
type content struct {
	Prepare    *templateOf        `json:"prepare,omitempty"`
	Apply      *templateOf        `json:"apply"`
	ConfigMaps map[string]*mapped `json:"configMaps,omitempty"`
	Secrets    map[string]*mapped `json:"secrets,omitempty"`
}

type templateOf struct {
	Name     string                 `json:"name"`
	Template corev1.PodTemplateSpec `json:"template"`
}

// mapped is the data of a ConfigMap or a Secret; nil where an optional one is missing.
type mapped struct {
	Data   map[string]string `json:"data,omitempty"`
	Binary map[string][]byte `json:"binary,omitempty"`
}

// found is what a look at a plan found, and its templates, by name.
type found struct {
	target    fleet.PlanTarget
	templates map[string]*corev1.PodTemplate
	// sources are the versions of what was read, in the order of reading, which is always the same.
	sources []string
}

// look reads a plan's templates and all that they mount, and computes the digest with the key.
func look(ctx context.Context, from reader, key []byte, p *policy.Plan) (found, error) {
	f := found{target: fleet.PlanTarget{Prepare: p.Prepare, Apply: p.Apply}, templates: map[string]*corev1.PodTemplate{}}
	all, refs := content{}, references{}
	for _, name := range []string{p.Apply, p.Prepare} {
		if name == "" {
			continue
		}
		t, err := from.template(ctx, name)
		if err != nil {
			return f, err
		}
		if t == nil {
			f.missing("PodTemplate", name)
			return f, nil
		}
		f.templates[name] = t
		f.source("PodTemplate", name, t)
		part := &templateOf{name, t.Template}
		if name == p.Apply {
			all.Apply = part
		} else {
			all.Prepare = part
		}
		refs.collect(&t.Template.Spec)
	}
	if err := f.read(ctx, from, refs, &all); err != nil || f.target.Missing {
		return f, err
	}
	text, err := json.Marshal(all)
	if err != nil {
		return f, errors.Wrapf(err, "encoding the content of plan %q", p.Name)
	}
	sum := hmac.New(sha256.New, key)
	sum.Write(text)
	f.target.Digest = hex.EncodeToString(sum.Sum(nil))[:digestLength]
	versions := sha256.Sum256([]byte(strings.Join(f.sources, "\n")))
	f.target.Sources = hex.EncodeToString(versions[:])[:digestLength]
	return f, nil
}

// source notes the version of an object that was read.
func (f *found) source(kind, name string, of metav1.Object) {
	f.sources = append(f.sources, strings.Join([]string{kind, name, string(of.GetUID()), of.GetResourceVersion()}, " "))
}

// keep keeps the digest that stands for a plan while all that it is of stands.
func keep(t *fleet.PlanTarget, stands fleet.PlanTarget) {
	if t.Sources != "" && t.Sources == stands.Sources && stands.Digest != "" {
		t.Digest = stands.Digest
	}
}

func (f *found) missing(kind, name string) {
	f.target.Missing, f.target.Problem = true, fmt.Sprintf("%s %s is not there", kind, name)
}

// read adds the data of what templates mount and read.
func (f *found) read(ctx context.Context, from reader, refs references, all *content) error {
	all.ConfigMaps, all.Secrets = map[string]*mapped{}, map[string]*mapped{}
	for _, name := range slices.Sorted(maps.Keys(refs.configMaps)) {
		c, err := from.configMap(ctx, name)
		switch {
		case err != nil:
			return err
		case c != nil:
			all.ConfigMaps[name] = &mapped{c.Data, c.BinaryData}
			f.source("ConfigMap", name, c)
		case refs.configMaps[name]:
			f.missing("ConfigMap", name)
			return nil
		default:
			all.ConfigMaps[name] = nil
		}
	}
	for _, name := range slices.Sorted(maps.Keys(refs.secrets)) {
		s, err := from.secret(ctx, name)
		switch {
		case err != nil:
			return err
		case s != nil:
			all.Secrets[name] = &mapped{nil, s.Data}
			f.source("Secret", name, s)
		case refs.secrets[name]:
			f.missing("Secret", name)
			return nil
		default:
			all.Secrets[name] = nil
		}
	}
	return nil
}

// references are the ConfigMaps and Secrets that pods mount and read, by name, and whether they need them.
type references struct{ configMaps, secrets map[string]bool }

func (r *references) add(to *map[string]bool, name string, optional *bool) {
	if *to == nil {
		*to = map[string]bool{}
	}
	(*to)[name] = (*to)[name] || optional == nil || !*optional
}

// collect adds those of a pod. Secrets for pulling images are not content.
func (r *references) collect(s *corev1.PodSpec) {
	for _, v := range s.Volumes {
		if c := v.ConfigMap; c != nil {
			r.add(&r.configMaps, c.Name, c.Optional)
		}
		if c := v.Secret; c != nil {
			r.add(&r.secrets, c.SecretName, c.Optional)
		}
		if v.Projected == nil {
			continue
		}
		for _, p := range v.Projected.Sources {
			if c := p.ConfigMap; c != nil {
				r.add(&r.configMaps, c.Name, c.Optional)
			}
			if c := p.Secret; c != nil {
				r.add(&r.secrets, c.Name, c.Optional)
			}
		}
	}
	for _, c := range slices.Concat(s.InitContainers, s.Containers) {
		r.environment(&c)
	}
}

func (r *references) environment(c *corev1.Container) {
	for _, e := range c.EnvFrom {
		if f := e.ConfigMapRef; f != nil {
			r.add(&r.configMaps, f.Name, f.Optional)
		}
		if f := e.SecretRef; f != nil {
			r.add(&r.secrets, f.Name, f.Optional)
		}
	}
	for _, e := range c.Env {
		if e.ValueFrom == nil {
			continue
		}
		if f := e.ValueFrom.ConfigMapKeyRef; f != nil {
			r.add(&r.configMaps, f.Name, f.Optional)
		}
		if f := e.ValueFrom.SecretKeyRef; f != nil {
			r.add(&r.secrets, f.Name, f.Optional)
		}
	}
}

// cached reads what the watches have shown.
type cached struct {
	w         *watches
	namespace string
}

func (c cached) template(_ context.Context, name string) (*corev1.PodTemplate, error) {
	return stored[*corev1.PodTemplate](c.w.templates.GetIndexer(), c.namespace+"/"+name)
}

func (c cached) configMap(_ context.Context, name string) (*corev1.ConfigMap, error) {
	return stored[*corev1.ConfigMap](c.w.configMaps.GetIndexer(), c.namespace+"/"+name)
}

func (c cached) secret(_ context.Context, name string) (*corev1.Secret, error) {
	return stored[*corev1.Secret](c.w.secrets.GetIndexer(), c.namespace+"/"+name)
}

// stored returns an object of a store, or its zero value.
func stored[T any](from cache.Store, key string) (none T, err error) {
	obj, there, err := from.GetByKey(key)
	if err != nil || !there {
		return none, errors.Wrapf(err, "looking up %q", key)
	}
	out, _ := obj.(T)
	return out, nil
}

// live reads from the API server.
type live struct {
	client    kubernetes.Interface
	namespace string
}

func (l live) template(ctx context.Context, name string) (*corev1.PodTemplate, error) {
	t, err := l.client.CoreV1().PodTemplates(l.namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return t, errors.Wrapf(err, "reading PodTemplate %s/%s", l.namespace, name)
}

func (l live) configMap(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	c, err := l.client.CoreV1().ConfigMaps(l.namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return c, errors.Wrapf(err, "reading ConfigMap %s/%s", l.namespace, name)
}

func (l live) secret(ctx context.Context, name string) (*corev1.Secret, error) {
	s, err := l.client.CoreV1().Secrets(l.namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return s, errors.Wrapf(err, "reading Secret %s/%s", l.namespace, name)
}
