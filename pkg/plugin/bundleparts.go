package plugin

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/preflight"
)

const (
	// maxNodes, maxEvents and maxBudgets limit how many objects are in an archive.
	maxNodes, maxEvents, maxBudgets = 10_000, 5_000, 5_000
	// maxLogs is of how many pods the logs are read: controllers, proxies and runner first, then agents that aren't Ready.
	maxLogs = 30
	// tailOf is how many lines of a log are read, logOf how many bytes at most, and logsInAll of all logs together.
	tailOf, logOf, logsInAll = 5_000, 1 << 20, 32 << 20
	// metricsOf is how many bytes of a pod's metrics are read.
	metricsOf = 4 << 20
)

// listed reads a list into a file: those of the objects that are wanted, up to a limit. Each is scrubbed as its page
// comes, so that none is in memory as a whole.
func listed[L metav1.ListInterface, T any](ctx context.Context, b *bundle, path, about string, limit int, o metav1.ListOptions,
	list func(context.Context, metav1.ListOptions) (L, error), items func(L) []T, wanted func(*T) bool) {
	var body bytes.Buffer
	n, left := 0, 0
	what := strings.TrimSuffix(path[strings.LastIndex(path, "/")+1:], ".json")
	more, err := each(ctx, what, o, list, func(page L) {
		for _, item := range items(page) {
			if !wanted(&item) {
				continue
			}
			if n++; n > limit {
				left++
				continue
			}
			one, err := scrubbed(item)
			if err != nil {
				b.lacks(path, err)
				continue
			}
			if body.Len() > 0 {
				body.WriteString(",\n")
			}
			body.Write(bytes.TrimSpace(one))
		}
	})
	switch {
	case err != nil:
		b.lacks(path, err)
		return
	case left > 0 || more:
		b.unread = append(b.unread, path+": there are more than are read")
	}
	b.files[path], b.about[path] = append(append([]byte("[\n"), body.Bytes()...), "\n]\n"...), about
}

func every[T any](*T) bool { return true }

// read reads all that comes from the API server.
func (b *bundle) read(ctx context.Context) {
	ours := metav1.ListOptions{LabelSelector: operatorSelector}
	core, apps := b.client.CoreV1(), b.client.AppsV1()

	managed := map[string]bool{}
	listed(ctx, b, "nodes.json", "the nodes with a label or annotations of the operator, or with Bottlerocket",
		maxNodes, metav1.ListOptions{}, core.Nodes().List,
		func(l *corev1.NodeList) []corev1.Node { return l.Items }, func(n *corev1.Node) bool {
			v := kube.View(n)
			managed[n.Name] = v.Labelled() || v.Marked() || v.OSVersion != ""
			// Most of a Node, and of no use here.
			n.Status.Images, n.Status.VolumesInUse, n.Status.VolumesAttached = nil, nil, nil
			return managed[n.Name] || fleet.InterfaceOf(n.Labels) != fleet.InterfaceNone
		})
	var pods []corev1.Pod
	listed(ctx, b, "objects/pods.json", "the operator's pods", maxNodes, ours, core.Pods(b.namespace).List,
		func(l *corev1.PodList) []corev1.Pod { return l.Items }, func(p *corev1.Pod) bool {
			pods = append(pods, *p)
			return true
		})
	listed(ctx, b, "objects/deployments.json", "its Deployments", maxNodes, ours, apps.Deployments(b.namespace).List,
		func(l *appsv1.DeploymentList) []appsv1.Deployment { return l.Items }, every)
	listed(ctx, b, "objects/daemonsets.json", "its DaemonSet", maxNodes, ours, apps.DaemonSets(b.namespace).List,
		func(l *appsv1.DaemonSetList) []appsv1.DaemonSet { return l.Items }, every)
	listed(ctx, b, "objects/services.json", "its Service", maxNodes, ours, core.Services(b.namespace).List,
		func(l *corev1.ServiceList) []corev1.Service { return l.Items }, every)
	listed(ctx, b, "objects/endpointslices.json", "where its Service sends agents to", maxNodes, metav1.ListOptions{},
		b.client.DiscoveryV1().EndpointSlices(b.namespace).List,
		func(l *discoveryv1.EndpointSliceList) []discoveryv1.EndpointSlice { return l.Items }, every)
	listed(ctx, b, "objects/leases.json", "the Leases of its namespace", maxNodes, metav1.ListOptions{},
		b.client.CoordinationV1().Leases(b.namespace).List,
		func(l *coordinationv1.LeaseList) []coordinationv1.Lease { return l.Items }, every)
	listed(ctx, b, "objects/poddisruptionbudgets.json", "all PodDisruptionBudgets of the cluster", maxBudgets,
		metav1.ListOptions{}, b.client.PolicyV1().PodDisruptionBudgets("").List,
		func(l *policyv1.PodDisruptionBudgetList) []policyv1.PodDisruptionBudget { return l.Items }, every)
	b.readEvents(ctx, managed)
	b.readAccess(ctx)
	b.readConfigs(ctx)
	b.readSecretNames(ctx)
	b.readLogs(ctx, pods)
}

func (b *bundle) readEvents(ctx context.Context, managed map[string]bool) {
	items := func(l *corev1.EventList) []corev1.Event { return l.Items }
	listed(ctx, b, "events/namespace.json", "Events of the operator's namespace", maxEvents, metav1.ListOptions{},
		b.client.CoreV1().Events(b.namespace).List, items, every)
	listed(ctx, b, "events/nodes.json", "Events of these nodes", maxEvents,
		metav1.ListOptions{FieldSelector: "involvedObject.kind=Node"},
		b.client.CoreV1().Events(metav1.NamespaceDefault).List, items, func(e *corev1.Event) bool { return managed[e.InvolvedObject.Name] })
}

// readAccess reads the admission policies, and what gives the operator's accounts rights, whatever its name is.
func (b *bundle) readAccess(ctx context.Context) {
	rbac, walls, all := b.client.RbacV1(), b.client.AdmissionregistrationV1(), metav1.ListOptions{}
	isOurs := func(o *metav1.ObjectMeta) bool {
		return o.Labels["app.kubernetes.io/name"] == "bottlerocket-update-operator"
	}
	binds := func(subjects []rbacv1.Subject) bool {
		return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
			return strings.HasPrefix(s.Name, "update-operator-")
		})
	}
	listed(ctx, b, "access/clusterroles.json", "the operator's ClusterRoles", maxNodes,
		metav1.ListOptions{LabelSelector: operatorSelector}, rbac.ClusterRoles().List,
		func(l *rbacv1.ClusterRoleList) []rbacv1.ClusterRole { return l.Items }, every)
	listed(ctx, b, "access/clusterrolebindings.json", "what binds its accounts", maxNodes, all,
		rbac.ClusterRoleBindings().List,
		func(l *rbacv1.ClusterRoleBindingList) []rbacv1.ClusterRoleBinding { return l.Items },
		func(o *rbacv1.ClusterRoleBinding) bool { return isOurs(&o.ObjectMeta) || binds(o.Subjects) })
	listed(ctx, b, "access/roles.json", "its Roles", maxNodes, metav1.ListOptions{LabelSelector: operatorSelector},
		rbac.Roles("").List,
		func(l *rbacv1.RoleList) []rbacv1.Role { return l.Items }, every)
	listed(ctx, b, "access/rolebindings.json", "what binds its accounts in a namespace", maxNodes, all,
		rbac.RoleBindings("").List,
		func(l *rbacv1.RoleBindingList) []rbacv1.RoleBinding { return l.Items },
		func(o *rbacv1.RoleBinding) bool { return isOurs(&o.ObjectMeta) || binds(o.Subjects) })
	ours := preflight.Walls(true)
	listed(ctx, b, "access/validatingadmissionpolicies.json", "its admission policies", maxNodes, all,
		walls.ValidatingAdmissionPolicies().List,
		func(l *admissionv1.ValidatingAdmissionPolicyList) []admissionv1.ValidatingAdmissionPolicy {
			return l.Items
		},
		func(o *admissionv1.ValidatingAdmissionPolicy) bool { return slices.Contains(ours, o.Name) })
	listed(ctx, b, "access/validatingadmissionpolicybindings.json", "and their bindings", maxNodes, all,
		walls.ValidatingAdmissionPolicyBindings().List,
		func(l *admissionv1.ValidatingAdmissionPolicyBindingList) []admissionv1.ValidatingAdmissionPolicyBinding {
			return l.Items
		},
		func(o *admissionv1.ValidatingAdmissionPolicyBinding) bool {
			return slices.Contains(ours, o.Name) || slices.Contains(ours, o.Spec.PolicyName)
		})
}

// readConfigs reads the operator's ConfigMaps, each key as a file, and of those with fixed keys no other one.
func (b *bundle) readConfigs(ctx context.Context) {
	for _, c := range []struct {
		name, about string
		keys        []string
	}{
		{kube.PolicyConfigMap, "the policy", []string{kube.PolicyKey}},
		{kube.PauseConfigMap, "pauses", []string{kube.PauseKey}},
		{kube.AcknowledgedConfigMap, "versions that go on although they failed", nil},
		{kube.StateConfigMap, "the controller's memory", nil},
		{kube.PlanTargetsConfigMap, "what the runner found out of plans", nil},
		{"update-operator-proxy-ca", "the certificates that agents trust", []string{"ca.crt"}},
	} {
		path := "config/" + c.name + ".json"
		config, there, err := found(ctx, "configmaps", func(ctx context.Context) (*corev1.ConfigMap, error) {
			return b.client.CoreV1().ConfigMaps(b.namespace).Get(ctx, c.name, metav1.GetOptions{})
		})
		if !there {
			b.lacks(path, err)
			continue
		}
		config.BinaryData = nil
		for k := range config.Data {
			if c.keys != nil && !slices.Contains(c.keys, k) {
				config.Data[k] = leftOut
			}
		}
		b.object(path, c.about, config)
		if text, is := config.Data[kube.PolicyKey]; is && c.name == kube.PolicyConfigMap {
			b.text("config/policy.yaml", "the policy as it was written", []byte(text))
		}
	}
}

// readSecretNames lists the names of Secrets: the request is for metadata, so no data is ever here.
func (b *bundle) readSecretNames(ctx context.Context) {
	const path = "secret-names.json"
	names := []string{}
	_, err := each(ctx, "secrets", metav1.ListOptions{},
		b.metadata.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(b.namespace).List,
		func(page *metav1.PartialObjectMetadataList) {
			for _, s := range page.Items {
				names = append(names, s.Name)
			}
		})
	if err != nil {
		b.lacks(path, err)
		return
	}
	b.object(path, "the names of the Secrets in the operator's namespace", names)
}

// readLogs reads the end of the logs of some pods, and the metrics of controllers, proxies and runner.
func (b *bundle) readLogs(ctx context.Context, pods []corev1.Pod) {
	central := func(p *corev1.Pod) bool {
		return slices.Contains([]string{preflight.Controller, preflight.Proxy, preflight.Runner},
			p.Labels[componentLabel])
	}
	rank := func(p *corev1.Pod) int {
		switch {
		case central(p):
			return 0
		case !podReady(p):
			return 1
		}
		return 2
	}
	slices.SortStableFunc(pods, func(x, y corev1.Pod) int { return rank(&x) - rank(&y) })
	if len(pods) > maxLogs {
		b.unread = append(b.unread, "logs: those of "+strconv.Itoa(len(pods)-maxLogs)+" pods, more than are read")
		pods = pods[:maxLogs]
	}
	for i := range pods {
		p := &pods[i]
		if central(p) && podReady(p) {
			b.readMetrics(ctx, p)
		}
		for _, c := range p.Status.ContainerStatuses {
			b.readLog(ctx, p.Name, c.Name, false)
			if c.RestartCount > 0 {
				b.readLog(ctx, p.Name, c.Name, true)
			}
		}
	}
}

// fileName is the name of an object as that of a file, whatever the API server says.
func fileName(name string) string {
	return strings.NewReplacer("/", "_", "\\", "_", "..", "_").Replace(line(name))
}

func (b *bundle) readLog(ctx context.Context, pod, container string, previous bool) {
	path, about := "logs/"+fileName(pod)+"/"+fileName(container)+".log", "the end of its log"
	if previous {
		path, about = "logs/"+fileName(pod)+"/"+fileName(container)+".previous.log", "the end of the log of the container before"
	}
	if b.size >= logsInAll {
		b.unread = append(b.unread, path+": the logs are too large in all")
		return
	}
	body, err := b.client.CoreV1().Pods(b.namespace).GetLogs(pod, &corev1.PodLogOptions{Container: container,
		Previous:  previous,
		TailLines: ptr.To(int64(tailOf)), LimitBytes: ptr.To(int64(logOf))}).DoRaw(ctx)
	if err != nil {
		b.lacks(path, refusedTo("get", "pods/log", err))
		return
	}
	body = body[:min(len(body), logOf)]
	b.size += len(body)
	b.text(path, about, body)
}

func (b *bundle) readMetrics(ctx context.Context, p *corev1.Pod) {
	path := "metrics/" + fileName(p.Name) + ".txt"
	stream, err := b.client.CoreV1().RESTClient().Get().Namespace(b.namespace).Resource("pods").Name(p.Name + ":8080").
		SubResource("proxy").Suffix("metrics").Stream(ctx)
	if err != nil {
		b.lacks(path, refusedTo("get", "pods/proxy", err))
		return
	}
	defer stream.Close()
	body, err := io.ReadAll(io.LimitReader(stream, metricsOf))
	if err != nil {
		b.lacks(path, errors.Wrap(err, "reading it"))
		return
	}
	b.text(path, "its metrics", body)
}
