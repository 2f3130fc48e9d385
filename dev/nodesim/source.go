package nodesim

import (
	"context"
	"path"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// followConfigMap sets the files of a ConfigMap, now and at every change.
func (r *podRun) followConfigMap(ctx context.Context, p corev1.ConfigMapProjection, set func(files)) {
	r.missing(p.Optional, set)
	watch(ctx, &r.wg, r.m.kubelet.CoreV1().RESTClient(), "configmaps", r.namespace, named(p.Name), func(_, c *corev1.ConfigMap, gone bool) {
		if gone {
			return // the files stay, as on a node
		}
		data := map[string][]byte{}
		for k, v := range c.Data {
			data[k] = []byte(v)
		}
		for k, v := range c.BinaryData {
			data[k] = v
		}
		set(pick(data, p.Items))
	})
}

// followSecret does the same for a Secret.
func (r *podRun) followSecret(ctx context.Context, p corev1.SecretProjection, set func(files)) {
	r.missing(p.Optional, set)
	watch(ctx, &r.wg, r.m.kubelet.CoreV1().RESTClient(), "secrets", r.namespace, named(p.Name), func(_, s *corev1.Secret, gone bool) {
		if !gone {
			set(pick(s.Data, p.Items))
		}
	})
}

// missing lets a pod start without a source that is optional.
func (r *podRun) missing(optional *bool, set func(files)) {
	if optional != nil && *optional {
		set(files{})
	}
}

// downward makes the files of the pod's own fields.
func (r *podRun) downward(p corev1.DownwardAPIProjection) files {
	out := files{}
	for _, item := range p.Items {
		if item.FieldRef == nil {
			continue
		}
		if value, err := field(r.seen(), r.m, item.FieldRef.FieldPath); err == nil {
			out[item.Path] = []byte(value)
		}
	}
	return out
}

func named(name string) fields.Selector { return fields.OneTermEqualSelector("metadata.name", name) }

// pick takes all entries, or those asked for under the paths asked for.
func pick(data map[string][]byte, items []corev1.KeyToPath) files {
	out := files{}
	if len(items) == 0 {
		for k, v := range data {
			out[k] = v
		}
		return out
	}
	for _, i := range items {
		if v, ok := data[i.Key]; ok {
			out[path.Clean(i.Path)] = v
		}
	}
	return out
}

func firstPart(name string) string {
	first, _, _ := strings.Cut(name, "/")
	return first
}

func itoa(n int) string { return strconv.Itoa(n) }
