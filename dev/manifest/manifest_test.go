package manifest

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	is "gotest.tools/v3/assert/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/authorizer"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/controller"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/platform/updateapi"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/file"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/post"
)

func load(t *testing.T) Objects {
	t.Helper()
	o, err := Load()
	assert.NilError(t, err)
	return o
}

func workload(t *testing.T, o Objects, component string) Workload {
	t.Helper()
	w, err := o.Workload(component)
	assert.NilError(t, err)
	return w
}

func TestDecodeIsStrict(t *testing.T) {
	for name, doc := range map[string]string{
		"unknown field":   "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a}\nautomount: false\n",
		"duplicate field": "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a, name: b}\n",
		"unknown kind":    "apiVersion: v1\nkind: Nonsense\nmetadata: {name: a}\n",
		"unplaced kind":   "apiVersion: v1\nkind: Node\nmetadata: {name: a}\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Decode([]byte(doc))
			assert.Assert(t, err != nil)
		})
	}
}

func TestObjects(t *testing.T) {
	o := load(t)
	seen := map[string]bool{}
	for _, obj := range o.All {
		m, err := meta.Accessor(obj)
		assert.NilError(t, err)
		id := obj.GetObjectKind().GroupVersionKind().Kind + " " + m.GetNamespace() + "/" + m.GetName()
		assert.Assert(t, !seen[id], "%s stands there twice", id)
		seen[id] = true
		assert.Check(t, is.Equal(m.GetLabels()[LabelName], Name), id)
	}
	assert.Equal(t, len(o.Namespaces), 1)
	assert.Equal(t, o.Namespaces[0].Name, Namespace)
	assert.Equal(t, o.Namespaces[0].Labels["pod-security.kubernetes.io/enforce"], "privileged")
	assert.Equal(t, o.All[0], any(o.Namespaces[0]), "the namespace comes first")
	assert.Equal(t, o.All[len(o.All)-1], any(o.DaemonSets[0]),
		"agents come last: their containers are told the addresses of Services that exist")
}

// What the operator fills must not be emptied by the next kubectl apply.
func TestApplyAgainResetsNothing(t *testing.T) {
	o := load(t)
	assert.Equal(t, len(o.Secrets), 1)
	assert.Equal(t, o.Secrets[0].Name, "update-operator-proxy-tls")
	assert.Equal(t, o.Secrets[0].Type, corev1.SecretTypeOpaque, "other types may not be empty")
	assert.Assert(t, o.Secrets[0].Data == nil && o.Secrets[0].StringData == nil)
	assert.Equal(t, len(o.ConfigMaps), 1)
	assert.Equal(t, o.ConfigMaps[0].Name, "update-operator-proxy-ca")
	assert.Assert(t, o.ConfigMaps[0].Data == nil && o.ConfigMaps[0].BinaryData == nil)
	for _, c := range o.ConfigMaps {
		assert.Assert(t, c.Name != kube.StateConfigMap, "that one is the controller's")
	}
}

func TestServiceAccounts(t *testing.T) {
	o := load(t)
	accounts := map[string]bool{}
	for _, a := range o.ServiceAccounts {
		accounts[a.Namespace+"/"+a.Name] = true
		assert.Assert(t, a.AutomountServiceAccountToken != nil && !*a.AutomountServiceAccountToken, a.Name)
	}
	for _, w := range o.Workloads() {
		assert.Assert(t, accounts[w.Namespace+"/"+w.Template.Spec.ServiceAccountName], w.Name)
		delete(accounts, w.Namespace+"/"+w.Template.Spec.ServiceAccountName)
		mounted := w.Template.Spec.AutomountServiceAccountToken
		assert.Assert(t, mounted != nil, w.Name)
		assert.Equal(t, *mounted, w.Component() != Agent, w.Name)
	}
	assert.Equal(t, len(accounts), 0, "accounts that no workload uses: %v", accounts)
	for _, b := range o.ClusterRoleBindings {
		for _, s := range b.Subjects {
			assert.Equal(t, s.Kind, "ServiceAccount", b.Name)
		}
	}
	for _, b := range o.RoleBindings {
		for _, s := range b.Subjects {
			assert.Equal(t, s.Kind, "ServiceAccount", b.Name)
		}
	}
	assert.Assert(t, is.Len(o.Unbound(), 0))
}

func TestRights(t *testing.T) {
	o := load(t)
	assert.Assert(t, is.Len(o.Grants(Namespace, "update-operator-agent"), 0))

	const nodeVerbs = "get list patch watch"
	for account, want := range map[string][]string{
		"update-operator-controller": {
			"/events create patch", "/nodes " + nodeVerbs, "/persistentvolumeclaims get", "/pods list", "storage.k8s.io/volumeattachments list", "/pods/eviction create", "apps/daemonsets get",
			"apps/deployments get", "apps/replicasets get", "apps/statefulsets get", "policy/poddisruptionbudgets list",
			"bottlerocket:/configmaps create", "bottlerocket:/configmaps[update-state] get update", "bottlerocket:/pods watch",
			"bottlerocket:/configmaps[plan-targets,update-acknowledged,update-pause,update-policy] list watch",
			"bottlerocket:coordination.k8s.io/leases create",
			"bottlerocket:coordination.k8s.io/leases[" + kube.LeaseName + "] get update",
		},
		"update-operator-proxy": {
			"/nodes " + nodeVerbs, "authentication.k8s.io/tokenreviews create",
			"bottlerocket:/configmaps[update-operator-proxy-ca] get update",
			"bottlerocket:/secrets[update-operator-proxy-tls] get update",
		},
	} {
		t.Run(account, func(t *testing.T) {
			var got []string
			for _, g := range o.Grants(Namespace, account) {
				id := g.APIGroup + "/" + g.Resource
				if g.ResourceNames != "" {
					id += "[" + g.ResourceNames + "]"
				}
				if g.Namespace != "" {
					id = g.Namespace + ":" + id
				}
				if n := len(got); n > 0 && strings.HasPrefix(got[n-1], id+" ") {
					got[n-1] += " " + g.Verb
				} else {
					got = append(got, id+" "+g.Verb)
				}
				for _, part := range []string{g.APIGroup, g.Resource, g.Verb} {
					assert.Check(t, !strings.Contains(part, "*"), id)
				}
			}
			slices.Sort(got)
			slices.Sort(want)
			assert.DeepEqual(t, merged(got), want)
		})
	}
}

// merged joins the verbs of lines about the same thing that don't follow each other.
func merged(lines []string) []string {
	verbs := map[string][]string{}
	var ids []string
	for _, l := range lines {
		id, v, _ := strings.Cut(l, " ")
		if verbs[id] == nil {
			ids = append(ids, id)
		}
		verbs[id] = append(verbs[id], strings.Fields(v)...)
	}
	slices.Sort(ids)
	var out []string
	for _, id := range ids {
		slices.Sort(verbs[id])
		out = append(out, id+" "+strings.Join(verbs[id], " "))
	}
	slices.Sort(out)
	return out
}

func TestGrants(t *testing.T) {
	o, err := Decode([]byte(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: r}
rules: [{apiGroups: [""], resources: [nodes], verbs: [get], resourceNames: [b, a]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: b, namespace: ns}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: r}
subjects: [{kind: Group, name: "system:serviceaccounts:s"}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: b}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: a, namespace: s}]
`))
	assert.NilError(t, err)
	want := Grant{Resource: "nodes", Verb: "get", ResourceNames: "a,b", Namespace: "ns"}
	assert.DeepEqual(t, o.Grants("s", "a"), []Grant{want})
	assert.Assert(t, is.Len(o.Grants("other", "a"), 0))
	assert.DeepEqual(t, o.Unbound(), []string{"ClusterRole cluster-admin"})
	assert.Assert(t, want.Allows("", "nodes", "get", "ns", "b"))
	assert.Assert(t, !want.Allows("", "nodes", "get", "ns", "c"))
	assert.Assert(t, !want.Allows("", "nodes", "get", "other", "b"))
}

func TestPods(t *testing.T) {
	o := load(t)
	assert.Equal(t, len(o.Workloads()), 3)
	o.Deployments = append(o.Deployments, plans(t).Deployments...)
	images := map[string]bool{}
	for _, w := range o.Workloads() {
		t.Run(w.Component(), func(t *testing.T) {
			spec := w.Template.Spec
			assert.Equal(t, w.Name, "update-operator-"+w.Component())
			assert.Equal(t, w.Namespace, Namespace)
			assert.Equal(t, w.Template.Labels[LabelName], Name)
			selector, err := metav1.LabelSelectorAsSelector(w.Selector)
			assert.NilError(t, err)
			assert.Assert(t, selector.Matches(labels.Set(w.Template.Labels)))
			for _, other := range o.Workloads() {
				if other.Name != w.Name {
					assert.Assert(t, !selector.Matches(labels.Set(other.Template.Labels)), "also selects %s", other.Name)
				}
			}

			assert.Assert(t, !spec.HostNetwork && !spec.HostPID && !spec.HostIPC)
			assert.Assert(t, spec.PriorityClassName != "")
			assert.Assert(t, spec.TerminationGracePeriodSeconds != nil)
			assert.Assert(t, spec.SecurityContext.RunAsNonRoot != nil && *spec.SecurityContext.RunAsNonRoot)
			assert.Assert(t, *spec.SecurityContext.RunAsUser > 0 && *spec.SecurityContext.RunAsGroup > 0)
			assert.Equal(t, spec.SecurityContext.SeccompProfile.Type, corev1.SeccompProfileTypeRuntimeDefault)
			assert.Equal(t, len(spec.InitContainers), 0)
			assert.Equal(t, len(spec.Containers), 1)

			c := spec.Containers[0]
			images[c.Image] = true
			assert.Equal(t, c.Name, w.Component())
			assert.Equal(t, c.ImagePullPolicy, corev1.PullIfNotPresent)
			assert.Equal(t, len(c.Command), 1)
			s := c.SecurityContext
			assert.Assert(t, s.Privileged == nil || !*s.Privileged)
			assert.Assert(t, s.AllowPrivilegeEscalation != nil && !*s.AllowPrivilegeEscalation)
			assert.Assert(t, s.ReadOnlyRootFilesystem != nil && *s.ReadOnlyRootFilesystem)
			assert.DeepEqual(t, s.Capabilities.Drop, []corev1.Capability{"ALL"})
			assert.Equal(t, len(s.Capabilities.Add), 0)
			assert.Assert(t, s.RunAsUser == nil && s.RunAsGroup == nil && s.RunAsNonRoot == nil && s.SELinuxOptions == nil &&
				s.SeccompProfile == nil, "the pod says it")

			r := c.Resources
			assert.Assert(t, !r.Requests.Cpu().IsZero() && !r.Requests.Memory().IsZero() && !r.Limits.Memory().IsZero())
			assert.Assert(t, r.Limits.Cpu().IsZero(), "no CPU limit")
			assert.Assert(t, r.Requests.Memory().Cmp(*r.Limits.Memory()) < 0)
			i := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "GOMEMLIMIT" })
			assert.Assert(t, i >= 0, "the runtime knows its limit")
			knows := resource.MustParse(strings.TrimSuffix(c.Env[i].Value, "B"))
			part := float64(knows.Value()) / float64(r.Limits.Memory().Value())
			assert.Assert(t, part > 0.85 && part <= 0.9, "GOMEMLIMIT is %.2f of the limit, and what isn't the runtime's needs a tenth", part)

			for path, p := range map[string]*corev1.Probe{"/healthz": c.LivenessProbe, "/readyz": c.ReadinessProbe} {
				assert.Assert(t, p != nil && p.HTTPGet != nil, path)
				assert.Equal(t, p.HTTPGet.Path, path)
				assert.Equal(t, p.HTTPGet.Port, intstr.FromString("http"))
			}
			assert.Equal(t, fmt.Sprintf(":%d", port(t, c, "http")), controller.DefaultOptions().ListenAddress, "all have the same")
			for _, m := range c.VolumeMounts {
				assert.Assert(t, m.ReadOnly, m.Name)
				assert.Assert(t, slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name }), m.Name)
			}
			assert.Equal(t, len(spec.Volumes), len(c.VolumeMounts))

			for _, term := range affinity(spec) {
				for _, want := range []string{"kubernetes.io/os In linux", "kubernetes.io/arch In amd64,arm64"} {
					assert.Assert(t, is.Contains(term, want))
				}
			}
		})
	}
	assert.Equal(t, len(images), 1, "one image: %v", images)
}

// affinity is what nodes must have for a pod: all of one of these.
func affinity(spec corev1.PodSpec) [][]string {
	var terms [][]string
	for _, term := range spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		var all []string
		for _, e := range term.MatchExpressions {
			all = append(all, strings.TrimSpace(e.Key+" "+string(e.Operator)+" "+strings.Join(e.Values, ",")))
		}
		terms = append(terms, all)
	}
	return terms
}

func port(t *testing.T, c corev1.Container, name string) int32 {
	t.Helper()
	for _, p := range c.Ports {
		if p.Name == name {
			return p.ContainerPort
		}
	}
	t.Fatalf("container %s has no port %q", c.Name, name)
	return 0
}

func TestController(t *testing.T) {
	o := load(t)
	w := workload(t, o, Controller)
	tolerates(t, w, "node.kubernetes.io/unschedulable", marker.TaintFresh)
	c := w.Container()
	assert.DeepEqual(t, c.Command, []string{"/bottlerocket-update-operator"})
	assert.Equal(t, c.Args[0], "-controller")

	options := controller.DefaultOptions()
	parse(t, options.AddFlags, c.Args[1:])
	// It may not read Secrets, so the one that holds the URLs of messages is mounted, where there is one.
	assert.DeepEqual(t, w.Template.Spec.Volumes, []corev1.Volume{{Name: "notify",
		VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: post.Secret, Optional: new(true)}}}})
	assert.DeepEqual(t, c.VolumeMounts, []corev1.VolumeMount{{Name: "notify", MountPath: options.NotifyDir, ReadOnly: true}})
	options.NodeName, options.PodName = env(t, c, "NODE_NAME", "spec.nodeName"), env(t, c, "POD_NAME", "metadata.name")
	assert.NilError(t, options.Validate())
	assert.Equal(t, options.Namespace, Namespace)

	selector, err := labels.Parse(options.AgentSelector)
	assert.NilError(t, err)
	for _, other := range o.Workloads() {
		assert.Equal(t, selector.Matches(labels.Set(other.Template.Labels)), other.Component() == Agent, other.Name)
	}
}

func TestProxy(t *testing.T) {
	o := load(t)
	w := workload(t, o, Proxy)
	assert.Equal(t, len(w.Template.Spec.Volumes), 0)
	tolerates(t, w, "node.kubernetes.io/unschedulable", marker.TaintFresh)
	c := w.Container()
	assert.DeepEqual(t, c.Command, []string{"/bottlerocket-update-operator"})
	assert.Equal(t, c.Args[0], "-proxy")
	options := authorizer.DefaultOptions()
	parse(t, options.AddFlags, c.Args[1:])
	assert.NilError(t, options.Validate())
	assert.Equal(t, options.ServeAddress, fmt.Sprintf(":%d", port(t, *c, "https")))
	assert.Equal(t, options.Namespace, Namespace)
	assert.Equal(t, options.AgentAccount, workload(t, o, Agent).Template.Spec.ServiceAccountName)
	assert.Equal(t, options.SecretName, o.Secrets[0].Name)
	assert.Equal(t, options.CAName, o.ConfigMaps[0].Name)
	i := slices.IndexFunc(o.Deployments, func(d *appsv1.Deployment) bool { return d.Name == w.Name })
	assert.Equal(t, *o.Deployments[i].Spec.Replicas, int32(2))

	apart := w.Template.Spec.Affinity.PodAntiAffinity
	assert.Equal(t, len(apart.RequiredDuringSchedulingIgnoredDuringExecution), 0, "preferred: one node may be all there is")
	var keys []string
	for _, term := range apart.PreferredDuringSchedulingIgnoredDuringExecution {
		keys = append(keys, term.PodAffinityTerm.TopologyKey)
		selects(t, term.PodAffinityTerm.LabelSelector, w)
	}
	assert.DeepEqual(t, keys, []string{corev1.LabelHostname, corev1.LabelTopologyZone})

	assert.Equal(t, len(o.Services), 1)
	s := o.Services[0]
	assert.Equal(t, s.Name, "update-operator-proxy")
	assert.Assert(t, labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(w.Template.Labels)))
	assert.Equal(t, len(s.Spec.Selector), 2)
	assert.Equal(t, *s.Spec.IPFamilyPolicy, corev1.IPFamilyPolicyPreferDualStack)
	assert.Equal(t, len(s.Spec.Ports), 1)
	assert.Equal(t, s.Spec.Ports[0].Port, int32(443))
	assert.Equal(t, s.Spec.Ports[0].TargetPort, intstr.FromString("https"))

	assert.Equal(t, len(o.Budgets), 1)
	b := o.Budgets[0]
	selects(t, b.Spec.Selector, w)
	assert.Equal(t, *b.Spec.MaxUnavailable, intstr.FromInt32(1))
	assert.Equal(t, *b.Spec.UnhealthyPodEvictionPolicy, policyv1.AlwaysAllow)
}

func selects(t *testing.T, selector *metav1.LabelSelector, w Workload) {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(selector)
	assert.NilError(t, err)
	assert.Assert(t, !s.Empty() && s.Matches(labels.Set(w.Template.Labels)))
}

func tolerates(t *testing.T, w Workload, keys ...string) {
	t.Helper()
	var want []corev1.Toleration
	for _, key := range keys {
		want = append(want, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule})
	}
	assert.DeepEqual(t, w.Template.Spec.Tolerations, want)
}

func TestAgent(t *testing.T) {
	o := load(t)
	w := workload(t, o, Agent)
	spec, c := w.Template.Spec, w.Container()
	hosts := []string{"kubernetes.io/os In linux", "kubernetes.io/arch In amd64,arm64"}
	assert.DeepEqual(t, affinity(spec), [][]string{
		append([]string{string(marker.KeyInterfaceVersion) + " In " + string(fleet.InterfaceUpdateAPI) + ",1.0.0"}, hosts...),
		append([]string{string(marker.KeyPlatformVersion) + " In 1.0.0", string(marker.KeyInterfaceVersion) + " DoesNotExist"}, hosts...),
		append([]string{string(marker.KeyLocked) + " In true"}, hosts...),
	})
	assert.DeepEqual(t, spec.Tolerations, []corev1.Toleration{{Operator: corev1.TolerationOpExists}})
	assert.DeepEqual(t, spec.SecurityContext.SupplementalGroups, []int64{274})
	assert.DeepEqual(t, *spec.SecurityContext.SELinuxOptions,
		corev1.SELinuxOptions{User: "system_u", Role: "system_r", Type: "control_t", Level: "s0"})

	assert.DeepEqual(t, c.Command, []string{"/bottlerocket-update-agent"})
	options := agent.DefaultOptions()
	// What the kubelet puts in for the Service.
	assert.Assert(t, spec.EnableServiceLinks != nil && *spec.EnableServiceLinks)
	service := strings.ToUpper(strings.ReplaceAll(o.Services[0].Name, "-", "_")) + "_SERVICE_"
	fill := strings.NewReplacer("$("+service+"HOST)", "10.96.0.20", "$("+service+"PORT)", "443")
	var args []string
	for _, a := range c.Args {
		args = append(args, fill.Replace(a))
	}
	parse(t, options.AddFlags, args)
	assert.Equal(t, options.ProxyServer, "https://10.96.0.20:443")
	options.NodeName = env(t, c, "NODE_NAME", "spec.nodeName")
	assert.NilError(t, options.Validate())
	assert.Equal(t, options.ProxyServerName, o.Services[0].Name+"."+Namespace+".svc")
	assert.Equal(t, options.ProxyServerName, authorizer.DefaultOptions().ServerName)

	volumes := map[string]corev1.VolumeSource{}
	for _, m := range c.VolumeMounts {
		i := slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
		volumes[m.MountPath] = spec.Volumes[i].VolumeSource
	}
	assert.Equal(t, len(volumes), 3)
	socket := volumes[options.HostSocket].HostPath
	assert.Assert(t, socket != nil)
	assert.Equal(t, socket.Path, updateapi.DefaultSocket)
	assert.Equal(t, *socket.Type, corev1.HostPathSocket)

	token := volumes[filepath.Dir(options.TokenFile)].Projected
	assert.Assert(t, token != nil)
	assert.Equal(t, len(token.Sources), 1)
	assert.Equal(t, token.Sources[0].ServiceAccountToken.Audience, authorizer.DefaultOptions().Audience)
	assert.Equal(t, *token.Sources[0].ServiceAccountToken.ExpirationSeconds, int64(3600))
	assert.Equal(t, token.Sources[0].ServiceAccountToken.Path, filepath.Base(options.TokenFile))

	ca := volumes[filepath.Dir(options.CAFile)].ConfigMap
	assert.Assert(t, ca != nil)
	assert.Equal(t, ca.Name, o.ConfigMaps[0].Name)
	assert.Equal(t, len(ca.Items), 1, "the pod waits until the key is there")
	assert.Equal(t, ca.Items[0].Path, filepath.Base(options.CAFile))
}

func parse(t *testing.T, add func(*flag.FlagSet), args []string) {
	t.Helper()
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	add(fs)
	assert.NilError(t, fs.Parse(args))
	assert.Equal(t, fs.NArg(), 0)
}

// env checks where a variable comes from and returns a value as it could be.
func env(t *testing.T, c *corev1.Container, name, field string) string {
	t.Helper()
	i := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == name })
	assert.Assert(t, i >= 0, name)
	assert.Equal(t, c.Env[i].ValueFrom.FieldRef.FieldPath, field)
	return "some-" + strings.ToLower(name)
}

// What make deploy-dev creates is a policy without a mistake.
func TestDevPolicy(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(filepath.Dir(must(Path())), "dev", "policy.yaml"))
	assert.NilError(t, err)
	var config corev1.ConfigMap
	assert.NilError(t, yaml.UnmarshalStrict(content, &config))
	assert.Equal(t, config.Namespace+"/"+config.Name, Namespace+"/"+kube.PolicyConfigMap)
	_, err = file.Decode([]byte(config.Data[kube.PolicyKey]), policy.DefaultSettings(), time.LoadLocation)
	assert.NilError(t, err)
}

func TestPatched(t *testing.T) {
	o := load(t)
	root := filepath.Dir(must(Path()))
	patches, err := os.ReadFile(filepath.Join(root, "dev", "deployment.yaml"))
	assert.NilError(t, err)
	p, err := o.Patched(bytes.ReplaceAll(patches, []byte("@containerRef@"), []byte("image:dev")))
	assert.NilError(t, err)
	y, err := p.YAML()
	assert.NilError(t, err)
	back, err := Decode(y)
	assert.NilError(t, err)
	assert.Equal(t, len(back.All), len(o.All))
	for _, w := range back.Workloads() {
		assert.Equal(t, w.Container().Image, "image:dev")
		before := workload(t, o, w.Component()).Container()
		assert.DeepEqual(t, w.Container().Command, before.Command)
		assert.Equal(t, w.Container().Args[0], before.Args[0])
		assert.Assert(t, is.Contains(w.Container().Args, "-log-level=debug"))
	}
	options := controller.DefaultOptions()
	parse(t, options.AddFlags, workload(t, back, Controller).Container().Args[1:])
	proxyOptions := authorizer.DefaultOptions()
	parse(t, proxyOptions.AddFlags, workload(t, back, Proxy).Container().Args[1:])
	agentOptions := agent.DefaultOptions()
	parse(t, agentOptions.AddFlags, workload(t, back, Agent).Container().Args)

	for name, patch := range map[string]string{
		"no such object": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: nobody, namespace: bottlerocket}\n",
		"no such field":  "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: update-operator-proxy, namespace: bottlerocket}\nspec: {replica: 1}\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := o.Patched([]byte(patch))
			assert.Assert(t, err != nil)
		})
	}
}

func must(path string, err error) string {
	if err != nil {
		panic(err)
	}
	return path
}
