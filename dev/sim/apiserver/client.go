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

// Get, and what follows, are for the typed interfaces.
func (k kind[T]) Get(ctx context.Context, name string, _ metav1.GetOptions) (T, error) {
	return k.one(ctx, k.request("get", name, ""), func(writing) (object, error) {
		return k.c.s.get(k.resource(), k.namespace, name)
	})
}

func (k kind[T]) Create(ctx context.Context, obj T, o metav1.CreateOptions) (T, error) {
	r := k.request("create", obj.GetName(), "")
	r.DryRun = len(o.DryRun) > 0
	return k.one(ctx, r, func(w writing) (object, error) { return k.c.s.create(w, k.resource(), k.namespace, k.taken(obj)) })
}

func (k kind[T]) Update(ctx context.Context, obj T, o metav1.UpdateOptions) (T, error) {
	return k.update(ctx, obj, o, "")
}

func (k kind[T]) UpdateStatus(ctx context.Context, obj T, o metav1.UpdateOptions) (T, error) {
	return k.update(ctx, obj, o, "status")
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

func (k kind[T]) Patch(ctx context.Context, name string, pt types.PatchType, data []byte, o metav1.PatchOptions, subresources ...string) (T, error) {
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

func (k kind[T]) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
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
		c.c.nodes = &nodes{otherNodes{c.CoreV1Interface.Nodes()}, kind[*corev1.Node]{c: c.c, plural: "nodes"}}
	}
	return c.c.nodes
}

func (c core) Pods(namespace string) typedcore.PodInterface {
	p, ok := c.c.pods[namespace]
	if !ok {
		p = &pods{otherPods{c.CoreV1Interface.Pods(namespace)}, kind[*corev1.Pod]{c: c.c, plural: "pods", namespace: namespace}}
		c.c.pods[namespace] = p
	}
	return p
}

func (c core) ConfigMaps(namespace string) typedcore.ConfigMapInterface {
	return configMaps{otherConfigMaps{c.CoreV1Interface.ConfigMaps(namespace)}, kind[*corev1.ConfigMap]{c: c.c, plural: "configmaps", namespace: namespace}}
}

func (c core) PodTemplates(namespace string) typedcore.PodTemplateInterface {
	return podTemplates{otherPodTemplates{c.CoreV1Interface.PodTemplates(namespace)}, kind[*corev1.PodTemplate]{c: c.c, plural: "podtemplates", namespace: namespace}}
}

func (c core) Secrets(namespace string) typedcore.SecretInterface {
	return secrets{otherSecrets{c.CoreV1Interface.Secrets(namespace)}, kind[*corev1.Secret]{c: c.c, plural: "secrets", namespace: namespace}}
}

func (c core) PersistentVolumeClaims(namespace string) typedcore.PersistentVolumeClaimInterface {
	return claims{otherPersistentVolumeClaims{c.CoreV1Interface.PersistentVolumeClaims(namespace)}, kind[*corev1.PersistentVolumeClaim]{c: c.c, plural: "persistentvolumeclaims", namespace: namespace}}
}

type nodes struct {
	otherNodes
	kind[*corev1.Node]
}

type otherNodes struct{ typedcore.NodeInterface }

func (n nodes) List(ctx context.Context, o metav1.ListOptions) (*corev1.NodeList, error) {
	items, m, err := list(ctx, n.kind, o)
	return &corev1.NodeList{ListMeta: m, Items: items}, err
}

type pods struct {
	otherPods
	kind[*corev1.Pod]
}

type otherPods struct{ typedcore.PodInterface }

func (p pods) List(ctx context.Context, o metav1.ListOptions) (*corev1.PodList, error) {
	items, m, err := list(ctx, p.kind, o)
	return &corev1.PodList{ListMeta: m, Items: items}, err
}

func (p pods) Bind(ctx context.Context, b *corev1.Binding, o metav1.CreateOptions) error {
	noDryRun(o.DryRun)
	return p.kind.c.do(ctx, p.request("create", b.Name, "binding"), func(w writing) error {
		return p.kind.c.s.bind(w, p.namespace, b.Name, b.UID, b.Target.Name)
	})
}

// GetLogs is for typedcore.PodInterface: a request whose answer is what OnLogs says.
func (p pods) GetLogs(name string, _ *corev1.PodLogOptions) *rest.Request {
	return p.kind.c.logs(p.request("get", name, "log"))
}

func (p pods) EvictV1(ctx context.Context, e *policyv1.Eviction) error { return p.kind.c.Evict(ctx, e) }

type configMaps struct {
	otherConfigMaps
	kind[*corev1.ConfigMap]
}

type otherConfigMaps struct{ typedcore.ConfigMapInterface }

type podTemplates struct {
	otherPodTemplates
	kind[*corev1.PodTemplate]
}

type otherPodTemplates struct{ typedcore.PodTemplateInterface }

type secrets struct {
	otherSecrets
	kind[*corev1.Secret]
}

type otherSecrets struct{ typedcore.SecretInterface }

type claims struct {
	otherPersistentVolumeClaims
	kind[*corev1.PersistentVolumeClaim]
}

type otherPersistentVolumeClaims struct {
	typedcore.PersistentVolumeClaimInterface
}

func (c claims) List(ctx context.Context, o metav1.ListOptions) (*corev1.PersistentVolumeClaimList, error) {
	items, m, err := list(ctx, c.kind, o)
	return &corev1.PersistentVolumeClaimList{ListMeta: m, Items: items}, err
}

type coordination struct {
	typedcoordination.CoordinationV1Interface
	c *Client
}

func (c coordination) Leases(namespace string) typedcoordination.LeaseInterface {
	return leases{otherLeases{c.CoordinationV1Interface.Leases(namespace)}, kind[*coordinationv1.Lease]{c: c.c, plural: "leases", namespace: namespace}}
}

type leases struct {
	otherLeases
	kind[*coordinationv1.Lease]
}

type otherLeases struct {
	typedcoordination.LeaseInterface
}

type policies struct {
	typedpolicy.PolicyV1Interface
	c *Client
}

func (p policies) PodDisruptionBudgets(namespace string) typedpolicy.PodDisruptionBudgetInterface {
	return budgets{otherPodDisruptionBudgets{p.PolicyV1Interface.PodDisruptionBudgets(namespace)}, kind[*policyv1.PodDisruptionBudget]{c: p.c, plural: "poddisruptionbudgets", namespace: namespace}}
}

func (p policies) Evictions(string) typedpolicy.EvictionInterface { return p.c }

type budgets struct {
	otherPodDisruptionBudgets
	kind[*policyv1.PodDisruptionBudget]
}

type otherPodDisruptionBudgets struct {
	typedpolicy.PodDisruptionBudgetInterface
}

func (b budgets) List(ctx context.Context, o metav1.ListOptions) (*policyv1.PodDisruptionBudgetList, error) {
	items, m, err := list(ctx, b.kind, o)
	return &policyv1.PodDisruptionBudgetList{ListMeta: m, Items: items}, err
}

type apps struct {
	typedapps.AppsV1Interface
	c *Client
}

func (a apps) DaemonSets(namespace string) typedapps.DaemonSetInterface {
	return daemonSets{otherDaemonSets{a.AppsV1Interface.DaemonSets(namespace)}, kind[*appsv1.DaemonSet]{c: a.c, plural: "daemonsets", namespace: namespace}}
}

func (a apps) ReplicaSets(namespace string) typedapps.ReplicaSetInterface {
	return replicaSets{otherReplicaSets{a.AppsV1Interface.ReplicaSets(namespace)}, kind[*appsv1.ReplicaSet]{c: a.c, plural: "replicasets", namespace: namespace}}
}

type daemonSets struct {
	otherDaemonSets
	kind[*appsv1.DaemonSet]
}

type otherDaemonSets struct{ typedapps.DaemonSetInterface }

type replicaSets struct {
	otherReplicaSets
	kind[*appsv1.ReplicaSet]
}

type otherReplicaSets struct{ typedapps.ReplicaSetInterface }

func (r replicaSets) List(ctx context.Context, o metav1.ListOptions) (*appsv1.ReplicaSetList, error) {
	items, m, err := list(ctx, r.kind, o)
	return &appsv1.ReplicaSetList{ListMeta: m, Items: items}, err
}

type storage struct {
	typedstorage.StorageV1Interface
	c *Client
}

func (s storage) VolumeAttachments() typedstorage.VolumeAttachmentInterface {
	return attachments{otherVolumeAttachments{s.StorageV1Interface.VolumeAttachments()}, kind[*storagev1.VolumeAttachment]{c: s.c, plural: "volumeattachments"}}
}

type attachments struct {
	otherVolumeAttachments
	kind[*storagev1.VolumeAttachment]
}

type otherVolumeAttachments struct {
	typedstorage.VolumeAttachmentInterface
}

func (a attachments) List(ctx context.Context, o metav1.ListOptions) (*storagev1.VolumeAttachmentList, error) {
	items, m, err := list(ctx, a.kind, o)
	return &storagev1.VolumeAttachmentList{ListMeta: m, Items: items}, err
}
