package apiserver

import (
	"context"
	"net/http"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	typedapps "k8s.io/client-go/kubernetes/typed/apps/v1"
	typedcoordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	typedpolicy "k8s.io/client-go/kubernetes/typed/policy/v1"
	typedstorage "k8s.io/client-go/kubernetes/typed/storage/v1"
	"k8s.io/client-go/rest"
)

// Client is one process's way to the server. It is a kubernetes.Interface; a call that isn't simulated
// panics and names the request.
type Client struct {
	kubernetes.Interface
	s      *Server
	actor  string
	around Around
	// nodes and pods, by namespace, are asked for all the time.
	nodes *nodes
	pods  map[string]*pods
}

// Client returns a client for one process. actor is the name that OnWrite gets; around may be nil.
func (s *Server) Client(actor string, around Around) *Client {
	if around == nil {
		around = func(_ Request, run func() error) error { return run() }
	}
	return &Client{Interface: elsewhere(), s: s, actor: actor, around: around, pods: map[string]*pods{}}
}

// elsewhere is the real client of a server that can't be reached: what no type below overrides ends there,
// composed to a request that can be named. Composing hundreds of clients takes a while, so it is one
// for all.
var elsewhere = sync.OnceValue(func() kubernetes.Interface {
	return kubernetes.NewForConfigOrDie(&rest.Config{Host: "http://simulated", QPS: -1, Transport: nowhere{}})
})

type nowhere struct{}

// RoundTrip is for http.RoundTripper.
func (nowhere) RoundTrip(r *http.Request) (*http.Response, error) {
	notSimulated("%s %s", r.Method, r.URL.RequestURI())
	return nil, nil
}

// do sends one request: serve answers it.
func (c *Client) do(ctx context.Context, r Request, serve func(w writing) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := c.around(r, func() error { return serve(writing{actor: c.actor, request: r}) })
	if c.s.onRequest != nil {
		c.s.onRequest(c.actor, r, err)
	}
	return err
}

// kind are the requests for objects of one type, in one namespace.
type kind[T object] struct {
	c                 *Client
	plural, namespace string
}

func (k kind[T]) resource() *resource { return k.c.s.resources[k.plural] }

func (k kind[T]) request(verb, name, subresource string) Request {
	return Request{Verb: verb, Resource: k.plural, Subresource: subresource, Namespace: k.namespace, Name: name}
}

// one makes a request whose answer is an object. Like a real client it returns an empty object with an
// error.
func (k kind[T]) one(ctx context.Context, r Request, serve func(w writing) (object, error)) (T, error) {
	var out object
	err := k.c.do(ctx, r, func(w writing) error {
		o, err := serve(w)
		if err == nil {
			out = o.DeepCopyObject().(object)
		}
		return err
	})
	if err != nil {
		return k.resource().empty().(T), err
	}
	if out == nil {
		panic("apiserver: Around says that a request succeeded which it didn't run: " + r.String())
	}
	return out.(T), nil
}

// taken is a copy that can be stored.
func (k kind[T]) taken(obj T) object {
	o := obj.DeepCopyObject().(object)
	k.resource().clean(o)
	return o
}

func (k kind[T]) get(ctx context.Context, name string) (T, error) {
	return k.one(ctx, k.request("get", name, ""), func(writing) (object, error) {
		return k.c.s.get(k.resource(), k.namespace, name)
	})
}

func (k kind[T]) create(ctx context.Context, obj T, o metav1.CreateOptions) (T, error) {
	noDryRun(o.DryRun)
	return k.one(ctx, k.request("create", obj.GetName(), ""), func(w writing) (object, error) {
		return k.c.s.create(w, k.resource(), k.namespace, k.taken(obj))
	})
}

func (k kind[T]) update(ctx context.Context, obj T, o metav1.UpdateOptions, subresource string) (T, error) {
	noDryRun(o.DryRun)
	return k.one(ctx, k.request("update", obj.GetName(), subresource), func(w writing) (object, error) {
		sent := k.taken(obj)
		if err := addressed(sent, k.namespace, obj.GetName()); err != nil {
			return nil, err
		}
		return k.c.s.change(w, k.resource(), k.namespace, sent.GetName(), sent.GetUID(), func(object) (object, error) { return sent, nil })
	})
}

func (k kind[T]) patch(ctx context.Context, name string, pt types.PatchType, data []byte, o metav1.PatchOptions, subresources []string) (T, error) {
	noDryRun(o.DryRun)
	subresource := ""
	if len(subresources) > 0 {
		subresource = subresources[0]
	}
	if pt != types.MergePatchType || len(subresources) > 1 || subresource != "" && subresource != "status" {
		notSimulated("a patch of %s %v of type %s", k.plural, subresources, pt)
	}
	return k.one(ctx, k.request("patch", name, subresource), func(w writing) (object, error) {
		return k.c.s.change(w, k.resource(), k.namespace, name, "", func(old object) (object, error) {
			obj, err := k.resource().mergePatch(old, data)
			if err != nil {
				return nil, err
			}
			return obj, addressed(obj, k.namespace, name)
		})
	})
}

func (k kind[T]) delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	return k.c.do(ctx, k.request("delete", name, ""), func(w writing) error {
		return k.c.s.remove(w, k.resource(), k.namespace, name, o)
	})
}

// list copies the objects into a list's items.
func list[T any, P interface {
	object
	*T
	DeepCopyInto(*T)
}](ctx context.Context, k kind[P], o metav1.ListOptions) (items []T, m metav1.ListMeta, err error) {
	var found []object
	err = k.c.do(ctx, k.request("list", "", ""), func(writing) error {
		found, m.ResourceVersion, err = k.c.s.list(Selection{Resource: k.plural, Namespace: k.namespace}, o)
		return err
	})
	if err != nil {
		return nil, metav1.ListMeta{}, err
	}
	items = make([]T, len(found))
	for i := range found {
		found[i].(P).DeepCopyInto(&items[i])
	}
	return items, m, nil
}

func noDryRun(asked []string) {
	if len(asked) > 0 {
		notSimulated("a dry run")
	}
}

// Evict asks for the eviction of a pod.
func (c *Client) Evict(ctx context.Context, e *policyv1.Eviction) error {
	r := Request{Verb: "create", Resource: "pods", Subresource: "eviction", Namespace: e.Namespace, Name: e.Name}
	return c.do(ctx, r, func(w writing) error { return c.s.evict(w, e) })
}

// CoreV1 is for kubernetes.Interface.
func (c *Client) CoreV1() typedcore.CoreV1Interface { return core{c.Interface.CoreV1(), c} }

// CoordinationV1 is for kubernetes.Interface.
func (c *Client) CoordinationV1() typedcoordination.CoordinationV1Interface {
	return coordination{c.Interface.CoordinationV1(), c}
}

// PolicyV1 is for kubernetes.Interface.
func (c *Client) PolicyV1() typedpolicy.PolicyV1Interface { return policies{c.Interface.PolicyV1(), c} }

// AppsV1 is for kubernetes.Interface.
func (c *Client) AppsV1() typedapps.AppsV1Interface { return apps{c.Interface.AppsV1(), c} }

// StorageV1 is for kubernetes.Interface.
func (c *Client) StorageV1() typedstorage.StorageV1Interface {
	return storage{c.Interface.StorageV1(), c}
}

type core struct {
	typedcore.CoreV1Interface
	c *Client
}

func (c core) Nodes() typedcore.NodeInterface {
	if c.c.nodes == nil {
		c.c.nodes = &nodes{c.CoreV1Interface.Nodes(), kind[*corev1.Node]{c: c.c, plural: "nodes"}}
	}
	return c.c.nodes
}

func (c core) Pods(namespace string) typedcore.PodInterface {
	p, ok := c.c.pods[namespace]
	if !ok {
		p = &pods{c.CoreV1Interface.Pods(namespace), kind[*corev1.Pod]{c: c.c, plural: "pods", namespace: namespace}}
		c.c.pods[namespace] = p
	}
	return p
}

func (c core) ConfigMaps(namespace string) typedcore.ConfigMapInterface {
	return configMaps{c.CoreV1Interface.ConfigMaps(namespace), kind[*corev1.ConfigMap]{c: c.c, plural: "configmaps", namespace: namespace}}
}

func (c core) PersistentVolumeClaims(namespace string) typedcore.PersistentVolumeClaimInterface {
	return claims{c.CoreV1Interface.PersistentVolumeClaims(namespace), kind[*corev1.PersistentVolumeClaim]{c: c.c, plural: "persistentvolumeclaims", namespace: namespace}}
}

type nodes struct {
	typedcore.NodeInterface
	k kind[*corev1.Node]
}

func (n nodes) Get(ctx context.Context, name string, _ metav1.GetOptions) (*corev1.Node, error) {
	return n.k.get(ctx, name)
}

func (n nodes) Create(ctx context.Context, obj *corev1.Node, o metav1.CreateOptions) (*corev1.Node, error) {
	return n.k.create(ctx, obj, o)
}

func (n nodes) Update(ctx context.Context, obj *corev1.Node, o metav1.UpdateOptions) (*corev1.Node, error) {
	return n.k.update(ctx, obj, o, "")
}

func (n nodes) UpdateStatus(ctx context.Context, obj *corev1.Node, o metav1.UpdateOptions) (*corev1.Node, error) {
	return n.k.update(ctx, obj, o, "status")
}

func (n nodes) Patch(ctx context.Context, name string, pt types.PatchType, data []byte, o metav1.PatchOptions, subresources ...string) (*corev1.Node, error) {
	return n.k.patch(ctx, name, pt, data, o, subresources)
}

func (n nodes) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	return n.k.delete(ctx, name, o)
}

func (n nodes) List(ctx context.Context, o metav1.ListOptions) (*corev1.NodeList, error) {
	l := &corev1.NodeList{}
	var err error
	l.Items, l.ListMeta, err = list(ctx, n.k, o)
	return l, err
}

type pods struct {
	typedcore.PodInterface
	k kind[*corev1.Pod]
}

func (p pods) Get(ctx context.Context, name string, _ metav1.GetOptions) (*corev1.Pod, error) {
	return p.k.get(ctx, name)
}

func (p pods) Create(ctx context.Context, obj *corev1.Pod, o metav1.CreateOptions) (*corev1.Pod, error) {
	return p.k.create(ctx, obj, o)
}

func (p pods) Update(ctx context.Context, obj *corev1.Pod, o metav1.UpdateOptions) (*corev1.Pod, error) {
	return p.k.update(ctx, obj, o, "")
}

func (p pods) UpdateStatus(ctx context.Context, obj *corev1.Pod, o metav1.UpdateOptions) (*corev1.Pod, error) {
	return p.k.update(ctx, obj, o, "status")
}

func (p pods) Patch(ctx context.Context, name string, pt types.PatchType, data []byte, o metav1.PatchOptions, subresources ...string) (*corev1.Pod, error) {
	return p.k.patch(ctx, name, pt, data, o, subresources)
}

func (p pods) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	return p.k.delete(ctx, name, o)
}

func (p pods) List(ctx context.Context, o metav1.ListOptions) (*corev1.PodList, error) {
	l := &corev1.PodList{}
	var err error
	l.Items, l.ListMeta, err = list(ctx, p.k, o)
	return l, err
}

func (p pods) Bind(ctx context.Context, b *corev1.Binding, o metav1.CreateOptions) error {
	noDryRun(o.DryRun)
	return p.k.c.do(ctx, p.k.request("create", b.Name, "binding"), func(w writing) error {
		return p.k.c.s.bind(w, p.k.namespace, b.Name, b.UID, b.Target.Name)
	})
}

func (p pods) EvictV1(ctx context.Context, e *policyv1.Eviction) error { return p.k.c.Evict(ctx, e) }

type configMaps struct {
	typedcore.ConfigMapInterface
	k kind[*corev1.ConfigMap]
}

func (m configMaps) Get(ctx context.Context, name string, _ metav1.GetOptions) (*corev1.ConfigMap, error) {
	return m.k.get(ctx, name)
}

func (m configMaps) Create(ctx context.Context, obj *corev1.ConfigMap, o metav1.CreateOptions) (*corev1.ConfigMap, error) {
	return m.k.create(ctx, obj, o)
}

func (m configMaps) Update(ctx context.Context, obj *corev1.ConfigMap, o metav1.UpdateOptions) (*corev1.ConfigMap, error) {
	return m.k.update(ctx, obj, o, "")
}

func (m configMaps) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	return m.k.delete(ctx, name, o)
}

type claims struct {
	typedcore.PersistentVolumeClaimInterface
	k kind[*corev1.PersistentVolumeClaim]
}

func (c claims) Get(ctx context.Context, name string, _ metav1.GetOptions) (*corev1.PersistentVolumeClaim, error) {
	return c.k.get(ctx, name)
}

func (c claims) Create(ctx context.Context, obj *corev1.PersistentVolumeClaim, o metav1.CreateOptions) (*corev1.PersistentVolumeClaim, error) {
	return c.k.create(ctx, obj, o)
}

func (c claims) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	return c.k.delete(ctx, name, o)
}

func (c claims) List(ctx context.Context, o metav1.ListOptions) (*corev1.PersistentVolumeClaimList, error) {
	l := &corev1.PersistentVolumeClaimList{}
	var err error
	l.Items, l.ListMeta, err = list(ctx, c.k, o)
	return l, err
}

type coordination struct {
	typedcoordination.CoordinationV1Interface
	c *Client
}

func (c coordination) Leases(namespace string) typedcoordination.LeaseInterface {
	return leases{c.CoordinationV1Interface.Leases(namespace), kind[*coordinationv1.Lease]{c: c.c, plural: "leases", namespace: namespace}}
}

type leases struct {
	typedcoordination.LeaseInterface
	k kind[*coordinationv1.Lease]
}

func (l leases) Get(ctx context.Context, name string, _ metav1.GetOptions) (*coordinationv1.Lease, error) {
	return l.k.get(ctx, name)
}

func (l leases) Create(ctx context.Context, obj *coordinationv1.Lease, o metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return l.k.create(ctx, obj, o)
}

func (l leases) Update(ctx context.Context, obj *coordinationv1.Lease, o metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	return l.k.update(ctx, obj, o, "")
}

func (l leases) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	return l.k.delete(ctx, name, o)
}

type policies struct {
	typedpolicy.PolicyV1Interface
	c *Client
}

func (p policies) PodDisruptionBudgets(namespace string) typedpolicy.PodDisruptionBudgetInterface {
	return budgets{p.PolicyV1Interface.PodDisruptionBudgets(namespace), kind[*policyv1.PodDisruptionBudget]{c: p.c, plural: "poddisruptionbudgets", namespace: namespace}}
}

func (p policies) Evictions(string) typedpolicy.EvictionInterface { return p.c }

type budgets struct {
	typedpolicy.PodDisruptionBudgetInterface
	k kind[*policyv1.PodDisruptionBudget]
}

func (b budgets) Get(ctx context.Context, name string, _ metav1.GetOptions) (*policyv1.PodDisruptionBudget, error) {
	return b.k.get(ctx, name)
}

func (b budgets) Create(ctx context.Context, obj *policyv1.PodDisruptionBudget, o metav1.CreateOptions) (*policyv1.PodDisruptionBudget, error) {
	return b.k.create(ctx, obj, o)
}

func (b budgets) Update(ctx context.Context, obj *policyv1.PodDisruptionBudget, o metav1.UpdateOptions) (*policyv1.PodDisruptionBudget, error) {
	return b.k.update(ctx, obj, o, "")
}

func (b budgets) UpdateStatus(ctx context.Context, obj *policyv1.PodDisruptionBudget, o metav1.UpdateOptions) (*policyv1.PodDisruptionBudget, error) {
	return b.k.update(ctx, obj, o, "status")
}

func (b budgets) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	return b.k.delete(ctx, name, o)
}

func (b budgets) List(ctx context.Context, o metav1.ListOptions) (*policyv1.PodDisruptionBudgetList, error) {
	l := &policyv1.PodDisruptionBudgetList{}
	var err error
	l.Items, l.ListMeta, err = list(ctx, b.k, o)
	return l, err
}

type apps struct {
	typedapps.AppsV1Interface
	c *Client
}

func (a apps) DaemonSets(namespace string) typedapps.DaemonSetInterface {
	return daemonSets{a.AppsV1Interface.DaemonSets(namespace), kind[*appsv1.DaemonSet]{c: a.c, plural: "daemonsets", namespace: namespace}}
}

func (a apps) ReplicaSets(namespace string) typedapps.ReplicaSetInterface {
	return replicaSets{a.AppsV1Interface.ReplicaSets(namespace), kind[*appsv1.ReplicaSet]{c: a.c, plural: "replicasets", namespace: namespace}}
}

type daemonSets struct {
	typedapps.DaemonSetInterface
	k kind[*appsv1.DaemonSet]
}

func (d daemonSets) Get(ctx context.Context, name string, _ metav1.GetOptions) (*appsv1.DaemonSet, error) {
	return d.k.get(ctx, name)
}

func (d daemonSets) Create(ctx context.Context, obj *appsv1.DaemonSet, o metav1.CreateOptions) (*appsv1.DaemonSet, error) {
	return d.k.create(ctx, obj, o)
}

type replicaSets struct {
	typedapps.ReplicaSetInterface
	k kind[*appsv1.ReplicaSet]
}

func (r replicaSets) Get(ctx context.Context, name string, _ metav1.GetOptions) (*appsv1.ReplicaSet, error) {
	return r.k.get(ctx, name)
}

func (r replicaSets) Create(ctx context.Context, obj *appsv1.ReplicaSet, o metav1.CreateOptions) (*appsv1.ReplicaSet, error) {
	return r.k.create(ctx, obj, o)
}

func (r replicaSets) Update(ctx context.Context, obj *appsv1.ReplicaSet, o metav1.UpdateOptions) (*appsv1.ReplicaSet, error) {
	return r.k.update(ctx, obj, o, "")
}

func (r replicaSets) UpdateStatus(ctx context.Context, obj *appsv1.ReplicaSet, o metav1.UpdateOptions) (*appsv1.ReplicaSet, error) {
	return r.k.update(ctx, obj, o, "status")
}

func (r replicaSets) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	return r.k.delete(ctx, name, o)
}

func (r replicaSets) List(ctx context.Context, o metav1.ListOptions) (*appsv1.ReplicaSetList, error) {
	l := &appsv1.ReplicaSetList{}
	var err error
	l.Items, l.ListMeta, err = list(ctx, r.k, o)
	return l, err
}

type storage struct {
	typedstorage.StorageV1Interface
	c *Client
}

func (s storage) VolumeAttachments() typedstorage.VolumeAttachmentInterface {
	return attachments{s.StorageV1Interface.VolumeAttachments(), kind[*storagev1.VolumeAttachment]{c: s.c, plural: "volumeattachments"}}
}

type attachments struct {
	typedstorage.VolumeAttachmentInterface
	k kind[*storagev1.VolumeAttachment]
}

func (a attachments) Get(ctx context.Context, name string, _ metav1.GetOptions) (*storagev1.VolumeAttachment, error) {
	return a.k.get(ctx, name)
}

func (a attachments) Create(ctx context.Context, obj *storagev1.VolumeAttachment, o metav1.CreateOptions) (*storagev1.VolumeAttachment, error) {
	return a.k.create(ctx, obj, o)
}

func (a attachments) UpdateStatus(ctx context.Context, obj *storagev1.VolumeAttachment, o metav1.UpdateOptions) (*storagev1.VolumeAttachment, error) {
	return a.k.update(ctx, obj, o, "status")
}

func (a attachments) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	return a.k.delete(ctx, name, o)
}

func (a attachments) List(ctx context.Context, o metav1.ListOptions) (*storagev1.VolumeAttachmentList, error) {
	l := &storagev1.VolumeAttachmentList{}
	var err error
	l.Items, l.ListMeta, err = list(ctx, a.k, o)
	return l, err
}
