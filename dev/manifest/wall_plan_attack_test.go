package manifest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// The admission policies of components/plans/plans.yaml, in their order.
const (
	runnerPolicy    = "update-operator-runner"
	podPolicy       = "update-operator-runner-pods"
	templatePolicy  = "update-operator-runner-templates"
	intentPolicy    = "update-operator-runner-intents"
	planPolicy      = "update-operator-runner-plans"
	configMapPolicy = "update-operator-runner-creations"
)

// planAttacks are all that a thief of the token of a runner in the namespace home could ask for. Those of wet are no
// attacks as a dry run.
func planAttacks(t *testing.T, w *planWall, home string) (all, wet []attack) {
	t.Helper()
	all = slices.Concat(attacks(w.wall, Runner), answerAttacks(), w.contractAttacks(t), victimAttacks(), w.templateAttacks(t), w.tokenAttacks(t), w.intentAttacks(t), configMapAttacks(home))
	for i, o := range []struct{ name, node string }{{"not busy", idleNode}, {"busy with an earlier intent", staleNode}, {"not busy any more", answeredNode}} {
		wet = append(wet, podAttack("a pod for a node that is "+o.name, intentPolicy, "not busy", w.asked(t, o.node), func(p *corev1.Pod) { p.Name = fmt.Sprintf("kernel-%016x", i) }))
	}
	return all, wet
}

// podAttack asks for a pod of the contract that was changed.
func podAttack(name, policy, says string, honest *corev1.Pod, change func(p *corev1.Pod)) attack {
	p := honest.DeepCopy()
	change(p)
	return attack{name, policy, func(ctx context.Context, client kubernetes.Interface, dry []string) error {
		return create(ctx, client, p, dry)
	}, says}
}

// answerAttacks are answers that the runner may not give, and nodes that aren't its own.
func answerAttacks() []attack {
	merge := func(name, node, body, says string) attack {
		return onNode(Runner, name, node, types.MergePatchType, body, says)
	}
	return []attack{
		merge("a fact on a node without plans", updateAPINode, setAnnotation(string(marker.KeyBootID), "forged"), "label"),
		merge("a version that the Update API offers", freeNode, setAnnotation(string(marker.KeyAvailableVersion), "v"), string(marker.KeyAvailableVersion)),
		merge("an update that is offered", freeNode, setAnnotation(string(marker.KeyUpdateAvailable), "true"), string(marker.KeyUpdateAvailable)),
		merge("an answer to another intent", freeNode, setAnnotation(string(marker.KeyActiveID), "forged"), "answers the intent"),
		merge("an answer to no intent", freeNode, setAnnotation(string(marker.KeyActiveID), nil), "answers the intent"),
		merge("an earlier answer changed", staleNode, setAnnotation(string(marker.KeyActionState), "ready"), "answers the intent"),
		merge("a message to an earlier answer", staleNode, setAnnotation(string(marker.KeyMessage), "forged"), "answers the intent"),
		merge("busy after an answer", answeredNode, setAnnotation(string(marker.KeyActionState), "busy"), "has answered"),
		merge("an answer taken back", answeredNode, fmt.Sprintf(`{"metadata":{"annotations":{%q:null,%q:null,%q:null}}}`, marker.KeyActiveID, marker.KeyActionState, marker.KeyMessage), "has answered"),
		merge("an answer's state taken back", answeredNode, setAnnotation(string(marker.KeyActionState), nil), "has answered"),
		merge("a request forged among many", crowdedNode, fmt.Sprintf(`{"metadata":{"annotations":{%q:"forged","example.com/0":null}}}`, marker.KeyCycle), "annotation "),
		merge("an intent forged among many", crowdedNode, fmt.Sprintf(`{"metadata":{"annotations":{%q:"forged","example.com/0":null}}}`, marker.KeyIntentID), "annotation "),
	}
}

// contractAttacks are pods that no template and no node would have to be known for to refuse them.
func (w *planWall) contractAttacks(t *testing.T) []attack {
	t.Helper()
	honest := w.asked(t, freeNode)
	// Of a node that registers just now, nothing is known.
	honest.Spec.NodeName = "registers-just-now"
	mark := func(p *corev1.Pod, key, value string) { p.Annotations[marker.Prefix+key] = value }
	var all []attack
	for _, o := range []struct {
		name, says string
		do         func(p *corev1.Pod)
	}{
		{"in another namespace", "namespace", func(p *corev1.Pod) { p.Namespace = lair }},
		{"in the operator's namespace", "namespace", func(p *corev1.Pod) { p.Namespace = Namespace }},
		{"without a node", "nodeName", func(p *corev1.Pod) { p.Spec.NodeName = "" }},
		{"without a nodeSelector", "nodeSelector", func(p *corev1.Pod) { p.Spec.NodeSelector = nil }},
		{"for nodes without plans", "nodeSelector", func(p *corev1.Pod) { p.Spec.NodeSelector[string(marker.KeyInterfaceVersion)] = "2.0.0" }},
		{"that starts again", "restartPolicy", func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyOnFailure }},
		{"without a deadline", "activeDeadlineSeconds", func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = nil }},
		{"without a finalizer", "finalizers", func(p *corev1.Pod) { p.Finalizers = nil }},
		{"with another finalizer", "finalizers", func(p *corev1.Pod) { p.Finalizers = append(p.Finalizers, "example.com/forged") }},
		{"of any name", "metadata.name", func(p *corev1.Pod) { p.Name = "kernel-forged" }},
		{"of another plan's name", "metadata.name", func(p *corev1.Pod) { p.Name = "k3s-0123456789abcdef" }},
		{"with more to its name", "metadata.name", func(p *corev1.Pod) { p.Name += "0" }},
		{"with a name to be generated", "generateName", func(p *corev1.Pod) { p.GenerateName = "forged" }},
		{"with an owner", "ownerReferences", func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n", UID: "u"}}
		}},
		{"of a plan that no policy has", "label", func(p *corev1.Pod) {
			long := strings.Repeat("a", 41)
			p.Labels["bottlerocket.aws/plan"], p.Name = long, long+"-0123456789abcdef"
		}},
		{"without an intent", "intent-id", func(p *corev1.Pod) { mark(p, "intent-id", "") }},
		{"without a UID", "node-uid", func(p *corev1.Pod) { mark(p, "node-uid", "") }},
		{"with a target of two lines", "target", func(p *corev1.Pod) { mark(p, "target", "a\nb"); mark(p, "tag", "a\nb") }},
		{"without a target", "target", func(p *corev1.Pod) { mark(p, "target", ""); mark(p, "tag", "") }},
		{"with the tag of another target", "tag", func(p *corev1.Pod) { mark(p, "tag", "forged") }},
	} {
		all = append(all, podAttack("a pod "+o.name, podPolicy, o.says, honest, o.do))
	}
	return append(all,
		podAttack("a pod of no plan", podPolicy, "label", honest, func(p *corev1.Pod) { p.Labels = nil }),
		podAttack("a pod of a template that no plan names", planPolicy, "unnamed", w.asked(t, unnamedNode), func(*corev1.Pod) {}),
		podAttack("a pod of a template that isn't there", planPolicy, "absent", w.asked(t, absentNode), func(p *corev1.Pod) {
			p.Spec.Containers = []corev1.Container{{Name: "forged", Image: "forged"}}
		}),
		podAttack("a pod of no template", planPolicy, "PodTemplate", honest, func(p *corev1.Pod) { delete(p.Annotations, marker.Prefix+"plan-template") }),
		podAttack("a pod of a pattern of templates", planPolicy, "PodTemplate", honest, func(p *corev1.Pod) { mark(p, "plan-template", ".*") }),
	)
}

// victimAttacks change a pod that is there, or reach what is behind it.
func victimAttacks() []attack {
	patch := func(name, body, says string, sub ...string) attack {
		return attack{name, podPolicy, func(ctx context.Context, client kubernetes.Interface, dry []string) error {
			_, err := client.CoreV1().Pods(plansNamespace).Patch(ctx, victimPod, types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{DryRun: dry}, sub...)
			return err
		}, says}
	}
	all := []attack{
		patch("the image of a running pod", `{"spec":{"containers":[{"name":"app","image":"forged"}]}}`, "spec"),
		patch("the deadline of a running pod", `{"spec":{"activeDeadlineSeconds":1}}`, "spec"),
		patch("the labels of a pod", `{"metadata":{"labels":{"bottlerocket.aws/plan":"forged"}}}`, "labels"),
		patch("the annotations of a pod", `{"metadata":{"annotations":{"bottlerocket.aws/intent-id":"forged"}}}`, "annotations"),
		patch("an owner of a pod", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n","uid":"u"}]}}`, "ownerReferences"),
		patch("a finalizer on a pod", `{"metadata":{"finalizers":["example.com/forged"]}}`, "finalizers"),
		patch("a finalizer of others off a pod", `{"metadata":{"$deleteFromPrimitiveList/finalizers":["example.com/theirs"]}}`, "finalizers"),
		patch("a name to be generated for a pod", `{"metadata":{"generateName":"forged"}}`, "generateName"),
		patch("the managed fields of a pod", `{"metadata":{"managedFields":[{}]}}`, "managedFields"),
		patch("a pod's status", `{"status":{"phase":"Succeeded"}}`, "subresource", "status"),
		patch("a container beside", `{"spec":{"ephemeralContainers":[{"name":"forged","image":"forged"}]}}`, "subresource", "ephemeralcontainers"),
		patch("a pod's size", `{"spec":{"containers":[{"name":"app","resources":{}}]}}`, "subresource", "resize"),
		{"our finalizer on a pod", podPolicy, func(ctx context.Context, client kubernetes.Interface, dry []string) error {
			_, err := client.CoreV1().Pods(plansNamespace).Patch(ctx, barePod, types.MergePatchType, []byte(`{"metadata":{"finalizers":["`+planFinalizer+`"]}}`), metav1.PatchOptions{DryRun: dry})
			return err
		}, "finalizers"},
		{"a pod bound", podPolicy, func(ctx context.Context, client kubernetes.Interface, dry []string) error {
			return client.CoreV1().Pods(plansNamespace).Bind(ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: victimPod}, Target: corev1.ObjectReference{Kind: "Node", Name: busyNode + "k3s"}},
				metav1.CreateOptions{DryRun: dry})
		}, "subresource"},
		{"a pod evicted", podPolicy, func(ctx context.Context, client kubernetes.Interface, dry []string) error {
			return client.CoreV1().Pods(plansNamespace).EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: victimPod}, DeleteOptions: &metav1.DeleteOptions{DryRun: dry}})
		}, "subresource"},
		{"a pod of others deleted", podPolicy, func(ctx context.Context, client kubernetes.Interface, dry []string) error {
			return client.CoreV1().Pods(metav1.NamespaceDefault).Delete(ctx, wallPod, metav1.DeleteOptions{DryRun: dry})
		}, "namespace"},
		{"a pod of others changed", podPolicy, func(ctx context.Context, client kubernetes.Interface, dry []string) error {
			_, err := client.CoreV1().Pods(metav1.NamespaceDefault).Patch(ctx, wallPod, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{DryRun: dry})
			return err
		}, "namespace"},
	}
	for _, sub := range []string{"exec", "attach", "portforward", "proxy"} {
		all = append(all, attack{"a pod's " + sub, podPolicy, func(ctx context.Context, client kubernetes.Interface, _ []string) error {
			answer, err := client.CoreV1().RESTClient().Get().Namespace(plansNamespace).Resource("pods").Name(victimPod).SubResource(sub).Param("command", "sh").Do(ctx).Raw()
			if err != nil {
				// The refusal is in the answer alone.
				err = forbidden{err, string(answer)}
			}
			return err
		}, "connect"})
	}
	return all
}

// forbidden is an error with what the API server said, which client-go leaves out of answers that are no objects.
type forbidden struct {
	error
	answer string
}

func (f forbidden) Error() string { return f.error.Error() + ": " + f.answer }
func (f forbidden) Unwrap() error { return f.error }

// templateAttacks are pods that are not as their templates say.
func (w *planWall) templateAttacks(t *testing.T) []attack {
	t.Helper()
	k3s, files, kernel, heavy := w.asked(t, busyNode+"k3s"), w.asked(t, busyNode+"files"), w.asked(t, busyNode+"kernel"), w.asked(t, busyNode+"runtime")
	c := func(p *corev1.Pod) *corev1.Container { return &p.Spec.Containers[0] }
	var all []attack
	for _, o := range []struct {
		name, says string
		of         *corev1.Pod
		do         func(p *corev1.Pod)
	}{
		{"another image", "image", kernel, func(p *corev1.Pod) { c(p).Image = "example.com/forged:1" }},
		{"another version of its image", "image", k3s, func(p *corev1.Pod) { c(p).Image = "example.com/rancher/k3s-upgrade:v1.36.2-k3s1" }},
		{"the tag of the target at another image", "image", k3s, func(p *corev1.Pod) { c(p).Image = strings.Replace(c(p).Image, "k3s", "k4s", 1) }},
		{"another image at first", "image", k3s, func(p *corev1.Pod) { p.Spec.InitContainers[0].Image = "forged" }},
		{"an image that is never pulled", "imagePullPolicy", files, func(p *corev1.Pod) { c(p).ImagePullPolicy = corev1.PullNever }},
		{"a command", "container patch", kernel, func(p *corev1.Pod) { c(p).Command = []string{"sh"} }},
		{"arguments", "container upgrade", k3s, func(p *corev1.Pod) { c(p).Args = append(c(p).Args, "forged") }},
		{"a variable", "container patch", kernel, func(p *corev1.Pod) { c(p).Env = []corev1.EnvVar{{Name: "A", Value: "forged"}} }},
		{"another variable", "container upgrade", k3s, func(p *corev1.Pod) { c(p).Env[1] = corev1.EnvVar{Name: "NODE", Value: "forged"} }},
		{"without its variables", "container upgrade", k3s, func(p *corev1.Pod) { c(p).Env = nil }},
		{"a privileged container", "container patch", kernel, func(p *corev1.Pod) { c(p).SecurityContext = &corev1.SecurityContext{Privileged: new(true)} }},
		{"one capability more", "container upgrade", k3s, func(p *corev1.Pod) {
			c(p).SecurityContext.Capabilities.Add = append(c(p).SecurityContext.Capabilities.Add, "SYS_ADMIN")
		}},
		{"another user", "securityContext", kernel, func(p *corev1.Pod) { p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: new(int64(0))} }},
		{"the host's processes", "hostPID", kernel, func(p *corev1.Pod) { p.Spec.HostPID = true }},
		{"the host's network", "hostNetwork", kernel, func(p *corev1.Pod) { p.Spec.HostNetwork = true }},
		{"no network of the host", "hostNetwork", files, func(p *corev1.Pod) {
			p.Spec.HostNetwork = false
			c(p).Ports[0].HostPort, c(p).Ports[1].HostPort = 9090, 53
		}},
		{"a port of the host", "ports", kernel, func(p *corev1.Pod) { c(p).Ports = []corev1.ContainerPort{{ContainerPort: 1, HostPort: 1}} }},
		{"a port of the host for its own", "ports", heavy, func(p *corev1.Pod) { p.Spec.Containers[1].Ports[0].HostPort = 80 }},
		{"a port less", "ports", files, func(p *corev1.Pod) { c(p).Ports = c(p).Ports[:1] }},
		{"another port", "ports", files, func(p *corev1.Pod) { c(p).Ports[0].ContainerPort = 9091 }},
		{"another part of the host", "spec.volumes", k3s, func(p *corev1.Pod) { p.Spec.Volumes[0].HostPath.Path = "/etc" }},
		{"a part of the host", "spec.volumes", kernel, func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "forged", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
		}},
		{"another Secret", "spec.volumes", files, func(p *corev1.Pod) { p.Spec.Volumes[1].Secret.SecretName = "forged" }},
		{"a volume mounted elsewhere", "volumeMounts", files, func(p *corev1.Pod) { c(p).VolumeMounts[0].MountPath = "/forged" }},
		{"a volume mounted once more", "volumeMounts", files, func(p *corev1.Pod) {
			p.Spec.Containers[1].VolumeMounts = []corev1.VolumeMount{{Name: "keys", MountPath: "/keys"}}
		}},
		{"a container more", "spec.containers", kernel, func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "forged", Image: "example.com/patch:1"})
		}},
		{"a container less", "spec.containers", files, func(p *corev1.Pod) { p.Spec.Containers = p.Spec.Containers[:1] }},
		{"a container of another name", "spec.containers", kernel, func(p *corev1.Pod) { c(p).Name = "forged" }},
		{"the containers the other way round", "spec.containers", files, func(p *corev1.Pod) { slices.Reverse(p.Spec.Containers) }},
		{"a container at first", "spec.initContainers", kernel, func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{Name: "forged", Image: "forged"}} }},
		{"no container at first", "spec.initContainers", k3s, func(p *corev1.Pod) { p.Spec.InitContainers = nil }},
		{"a container at first that stays", "container wait", k3s, func(p *corev1.Pod) { p.Spec.InitContainers[0].RestartPolicy = new(corev1.ContainerRestartPolicyAlways) }},
		{"another account", "serviceAccountName", kernel, func(p *corev1.Pod) { p.Spec.ServiceAccountName = "upgrader" }},
		{"no account of its own", "serviceAccountName", k3s, func(p *corev1.Pod) { p.Spec.ServiceAccountName, p.Spec.DeprecatedServiceAccount = "default", "default" }},
		{"other pull secrets", "imagePullSecrets", k3s, func(p *corev1.Pod) { p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "forged"}} }},
		{"a priority", "priorityClassName", kernel, func(p *corev1.Pod) { p.Spec.PriorityClassName = "system-node-critical" }},
		{"no priority", "priorityClassName", k3s, func(p *corev1.Pod) { p.Spec.PriorityClassName, p.Spec.Priority = "", nil }},
		{"no limit", "resources", k3s, func(p *corev1.Pod) { delete(c(p).Resources.Limits, corev1.ResourceMemory) }},
		{"another limit", "resources", k3s, func(p *corev1.Pod) { c(p).Resources.Limits[corev1.ResourceMemory] = resource.MustParse("1Gi") }},
		{"another request", "resources", k3s, func(p *corev1.Pod) { c(p).Resources.Requests[corev1.ResourceCPU] = resource.MustParse("50m") }},
		{"a device", "resources", kernel, func(p *corev1.Pod) {
			c(p).Resources.Limits = corev1.ResourceList{"example.com/device": resource.MustParse("1")}
		}},
		{"another limit of all", "resources", heavy, func(p *corev1.Pod) { p.Spec.Resources.Limits[corev1.ResourceCPU] = resource.MustParse("2") }},
		{"a label", "labels", kernel, func(p *corev1.Pod) { p.Labels["example.com/forged"] = "v" }},
		{"another label", "labels", k3s, func(p *corev1.Pod) { p.Labels["app"] = "forged" }},
		{"an annotation", "annotations", kernel, func(p *corev1.Pod) { p.Annotations["example.com/forged"] = "v" }},
		{"without an annotation", "annotations", k3s, func(p *corev1.Pod) { delete(p.Annotations, "example.com/why") }},
		{"a selector", "nodeSelector", kernel, func(p *corev1.Pod) { p.Spec.NodeSelector["example.com/forged"] = "v" }},
		{"without its selector", "nodeSelector", k3s, func(p *corev1.Pod) { delete(p.Spec.NodeSelector, "kubernetes.io/os") }},
		{"a toleration", "tolerations", kernel, func(p *corev1.Pod) {
			p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(1))})
		}},
		{"no toleration of all", "tolerations", heavy, func(p *corev1.Pod) { p.Spec.Tolerations = nil }},
		{"a toleration for a while", "tolerations", kernel, func(p *corev1.Pod) {
			p.Spec.Tolerations[0].TolerationSeconds, p.Spec.Tolerations[0].Effect = new(int64(1)), corev1.TaintEffectNoExecute
		}},
		{"links to services", "enableServiceLinks", heavy, func(p *corev1.Pod) { p.Spec.EnableServiceLinks = new(true) }},
		{"another scheduler", "schedulerName", kernel, func(p *corev1.Pod) { p.Spec.SchedulerName = "forged" }},
		{"no time to end", "terminationGracePeriodSeconds", files, func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(0)) }},
		{"another name of its host", "spec.hostname", kernel, func(p *corev1.Pod) { p.Spec.Hostname = "forged" }},
		{"no runtime of its own", "runtimeClassName", heavy, func(p *corev1.Pod) { p.Spec.RuntimeClassName, p.Spec.Overhead = nil, nil }},
	} {
		all = append(all, podAttack("a pod with "+o.name, templatePolicy, o.says, o.of, o.do))
	}
	return all
}

// tokenAttacks are pods with a token of their account that their templates don't want, or with what only looks like one.
func (w *planWall) tokenAttacks(t *testing.T) []attack {
	t.Helper()
	k3s, kernel := w.asked(t, busyNode+"k3s"), w.asked(t, busyNode+"kernel")
	volume := func(source corev1.VolumeSource) corev1.Volume {
		return corev1.Volume{Name: "kube-api-access-forge", VolumeSource: source}
	}
	token := func(change func(s *corev1.ServiceAccountTokenProjection)) corev1.Volume {
		s := &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: new(int64(3607))}
		change(s)
		return volume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{DefaultMode: new(int32(420)), Sources: []corev1.VolumeProjection{{ServiceAccountToken: s},
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}, Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}}}}}}}})
	}
	as := func(*corev1.ServiceAccountTokenProjection) {}
	mount := func(p *corev1.Pod, path string) {
		p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "kube-api-access-forge", MountPath: path, ReadOnly: true})
	}
	return []attack{
		podAttack("a pod with a token that its template doesn't want", templatePolicy, "automountServiceAccountToken", kernel, func(p *corev1.Pod) { p.Spec.AutomountServiceAccountToken = new(true) }),
		podAttack("a pod that leaves that to its account", templatePolicy, "automountServiceAccountToken", kernel, func(p *corev1.Pod) { p.Spec.AutomountServiceAccountToken = nil }),
		podAttack("a pod without the token that its template wants", templatePolicy, "automountServiceAccountToken", k3s, func(p *corev1.Pod) { p.Spec.AutomountServiceAccountToken = new(false) }),
		podAttack("a pod with a token by hand", templatePolicy, "spec.volumes", kernel, func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{token(as)}
			mount(p, "/var/run/secrets/kubernetes.io/serviceaccount")
		}),
		podAttack("a pod with a token's volume", templatePolicy, "spec.volumes", kernel, func(p *corev1.Pod) { p.Spec.Volumes = []corev1.Volume{token(as)} }),
		podAttack("a pod with a token for others", templatePolicy, "spec.volumes", k3s, func(p *corev1.Pod) {
			p.Spec.Volumes = append(p.Spec.Volumes, token(func(s *corev1.ServiceAccountTokenProjection) { s.Audience = "forged" }))
		}),
		podAttack("a pod with a token for long", templatePolicy, "spec.volumes", k3s, func(p *corev1.Pod) {
			p.Spec.Volumes = append(p.Spec.Volumes, token(func(s *corev1.ServiceAccountTokenProjection) { s.ExpirationSeconds = new(int64(36000)) }))
		}),
		podAttack("a pod with the host in place of a token", templatePolicy, "spec.volumes", k3s, func(p *corev1.Pod) {
			p.Spec.Volumes = append(p.Spec.Volumes, volume(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/etc"}}))
		}),
		podAttack("a pod with its token elsewhere", templatePolicy, "volumeMounts", k3s, func(p *corev1.Pod) {
			p.Spec.Volumes = append(p.Spec.Volumes, token(as))
			mount(p, "/forged")
		}),
	}
}

// intentAttacks are pods that are as their templates say, and that no node asks for.
func (w *planWall) intentAttacks(t *testing.T) []attack {
	t.Helper()
	mark := func(p *corev1.Pod, key, value string) { p.Annotations[marker.Prefix+key] = value }
	var all []attack
	for _, o := range []struct {
		name, says, node string
		do               func(p *corev1.Pod)
	}{
		{"on another node", "UID", freeNode, func(p *corev1.Pod) { p.Spec.NodeName = busyNode + "kernel" }},
		{"for an earlier node of that name", "UID", freeNode, func(p *corev1.Pod) { mark(p, "node-uid", "earlier") }},
		{"for an earlier intent", "intent", freeNode, func(p *corev1.Pod) { mark(p, "intent-id", "earlier") }},
		{"of another template", "template", freeNode, func(p *corev1.Pod) { mark(p, "plan-template", "k3s"); w.as(p, "k3s", t) }},
		{"for an intent without one", "template", templatelessNode, func(p *corev1.Pod) { w.as(p, "kernel", t) }},
		{"for an intent that makes none", "action", stabilizingNode, func(*corev1.Pod) {}},
		{"of another plan", "plan or target", freeNode, func(p *corev1.Pod) { p.Labels["bottlerocket.aws/plan"], p.Name = "k3s", "k3s-0123456789abcdef" }},
		{"with another target", "plan or target", freeNode, func(p *corev1.Pod) { mark(p, "target", "6.12"); mark(p, "tag", "6.12") }},
		{"with other content", "plan or target", busyNode + "files", func(p *corev1.Pod) { mark(p, "target", "fedcba9876543210"); mark(p, "tag", "fedcba9876543210") }},
		{"with content that is not said", "plan or target", busyNode + "files", func(p *corev1.Pod) { mark(p, "target", "content"); mark(p, "tag", "content") }},
		{"on a node that isn't cordoned", "cordoned", uncordonedNode, func(*corev1.Pod) {}},
		{"after its time", "intent-until", lateNode, func(*corev1.Pod) {}},
		{"with more time", "deadline", freeNode, func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = new(int64(1802)) }},
		{"with less time", "deadline", freeNode, func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = new(int64(1799)) }},
	} {
		all = append(all, podAttack("a pod "+o.name, intentPolicy, o.says, w.asked(t, o.node), o.do))
	}
	return all
}

// as makes a pod one of another template, in all that the template says.
func (w *planWall) as(p *corev1.Pod, template string, t *testing.T) {
	t.Helper()
	other := w.asked(t, busyNode+template)
	other.Spec.NodeName, other.Name = p.Spec.NodeName, p.Name
	p.Spec = other.Spec
	tag := p.Annotations[marker.Prefix+"tag"]
	for i := range p.Spec.Containers {
		p.Spec.Containers[i].Image = strings.Replace(p.Spec.Containers[i].Image, other.Annotations[marker.Prefix+"tag"], tag, 1)
	}
	plan := p.Labels["bottlerocket.aws/plan"]
	p.Labels = other.Labels
	p.Labels["bottlerocket.aws/plan"] = plan
	for k, v := range other.Annotations {
		if !strings.HasPrefix(k, marker.Prefix) {
			p.Annotations[k] = v
		}
	}
	p.Annotations[marker.Prefix+"plan-template"] = template
}

// configMapAttacks are on ConfigMaps of others.
func configMapAttacks(home string) []attack {
	write := func(name, namespace, config string) attack {
		return attack{name, configMapPolicy, func(ctx context.Context, client kubernetes.Interface, dry []string) error {
			_, err := client.CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: config}}, metav1.CreateOptions{DryRun: dry})
			return err
		}, "plan-targets"}
	}
	return []attack{
		write("a policy planted", home, kube.PolicyConfigMap),
		write("a plan's content planted", plansNamespace, "files"),
		write("what is known of plans, elsewhere", metav1.NamespaceDefault, planTargets),
		{"a policy changed", configMapPolicy, func(ctx context.Context, client kubernetes.Interface, dry []string) error {
			_, err := client.CoreV1().ConfigMaps(Namespace).Patch(ctx, kube.PolicyConfigMap, types.MergePatchType, []byte(`{"data":{"policy.yaml":"forged"}}`), metav1.PatchOptions{DryRun: dry})
			return err
		}, "plan-targets"},
		{"the slots changed", configMapPolicy, func(ctx context.Context, client kubernetes.Interface, dry []string) error {
			_, err := client.CoreV1().ConfigMaps(Namespace).Patch(ctx, kube.StateConfigMap, types.MergePatchType, []byte(`{"data":{"slots":"forged"}}`), metav1.PatchOptions{DryRun: dry})
			return err
		}, "plan-targets"},
		{"a policy deleted", configMapPolicy, func(ctx context.Context, client kubernetes.Interface, dry []string) error {
			return client.CoreV1().ConfigMaps(Namespace).Delete(ctx, kube.PolicyConfigMap, metav1.DeleteOptions{DryRun: dry})
		}, "plan-targets"},
	}
}

// honestly asks, as a dry run, for the pod that a node asks for, until it is let through: an API server knows what
// policies look at a moment late.
func (w *planWall) honestly(t *testing.T, client kubernetes.Interface, node string) *corev1.Pod {
	t.Helper()
	p := w.planPod(t, node)
	var err error
	await(t, "the pod of node "+node+" is let through", func() bool {
		if err = create(t.Context(), client, p, []string{metav1.DryRunAll}); err != nil {
			t.Log(err)
		}
		return err == nil
	})
	assert.NilError(t, err)
	return p
}
