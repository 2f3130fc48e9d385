package chart

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pkg/errors"
	"gotest.tools/v3/assert"
	"helm.sh/helm/v4/pkg/action"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/kube"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
)

// cluster is a real API server with the kind that only clusters with the Prometheus operator have.
type cluster struct {
	*controlplane.ControlPlane
	client  kubernetes.Interface
	objects dynamic.Interface
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{ControlPlane: shared.Get(t)}
	var err error
	c.client, err = kubernetes.NewForConfig(c.AdminConfig())
	assert.NilError(t, err)
	c.objects, err = dynamic.NewForConfig(c.AdminConfig())
	assert.NilError(t, err)
	c.kubectl(t, podMonitors, "apply", "-f", "-")
	c.kubectl(t, "", "wait", "--for=condition=Established", "crd/podmonitors.monitoring.coreos.com", "--timeout=1m")
	return c
}

const podMonitors = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: podmonitors.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: {kind: PodMonitor, plural: podmonitors, singular: podmonitor}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

func (c *cluster) kubectl(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.Command(c.Binaries().Kubectl, append([]string{"--kubeconfig", c.Kubeconfig()}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	assert.NilError(t, err, "kubectl %v: %s", args, out)
	return string(out)
}

// get returns what the cluster has of an object, by its kind and names.
func (c *cluster) get(t *testing.T, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	t.Helper()
	groups, err := restmapper.GetAPIGroupResources(c.client.Discovery())
	assert.NilError(t, err)
	mapping, err := restmapper.NewDiscoveryRESTMapper(groups).RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
	assert.NilError(t, err)
	var of dynamic.ResourceInterface = c.objects.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		of = c.objects.Resource(mapping.Resource).Namespace(o.GetNamespace())
	}
	return of.Get(t.Context(), o.GetName(), metav1.GetOptions{})
}

// versions are the revisions of objects, all of which must be there. Of admission policies they are those of what is asked
// for, as the controller manager writes into their status what it found.
func (c *cluster) versions(t *testing.T, of map[string]*unstructured.Unstructured) map[string]string {
	t.Helper()
	out := map[string]string{}
	for id, o := range of {
		got, err := c.get(t, o)
		assert.NilError(t, err, id)
		out[id] = got.GetResourceVersion()
		if got.GetKind() == "ValidatingAdmissionPolicy" {
			out[id] = fmt.Sprint("generation ", got.GetGeneration())
		}
	}
	return out
}

// nothingLeft fails the test if an object of any form is left that is not kept on purpose. What is being deleted is awaited.
func (c *cluster) nothingLeft(t *testing.T) {
	t.Helper()
	const kinds = "namespaces,serviceaccounts,clusterroles,clusterrolebindings,roles,rolebindings,validatingadmissionpolicies," +
		"validatingadmissionpolicybindings,secrets,configmaps,services,deployments,daemonsets,poddisruptionbudgets,networkpolicies,podmonitors"
	of := func(kinds string) string {
		return c.kubectl(t, "", "get", kinds, "-A", "-o", "name", "-l", "app.kubernetes.io/name=bottlerocket-update-operator,!bottlerocket.aws/keep")
	}
	// A namespace goes last, with what was in it.
	for began := time.Now(); of("namespaces") != "" && time.Since(began) < time.Minute; {
		select {
		case <-t.Context().Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
	assert.Equal(t, of(kinds), "")
}

// filled are the proxies' certificates, as they write them at run time.
func (c *cluster) fill(t *testing.T, namespace, content string) {
	t.Helper()
	secret, err := c.client.CoreV1().Secrets(namespace).Get(t.Context(), "update-operator-proxy-tls", metav1.GetOptions{})
	assert.NilError(t, err)
	secret.Data = map[string][]byte{"tls.key": []byte(content)}
	_, err = c.client.CoreV1().Secrets(namespace).Update(t.Context(), secret, metav1.UpdateOptions{FieldManager: "bottlerocket-update-operator"})
	assert.NilError(t, err)
	ca, err := c.client.CoreV1().ConfigMaps(namespace).Get(t.Context(), "update-operator-proxy-ca", metav1.GetOptions{})
	assert.NilError(t, err)
	ca.Data = map[string]string{"ca.crt": content}
	_, err = c.client.CoreV1().ConfigMaps(namespace).Update(t.Context(), ca, metav1.UpdateOptions{FieldManager: "bottlerocket-update-operator"})
	assert.NilError(t, err)
}

func (c *cluster) isFilled(t *testing.T, namespace, content string) {
	t.Helper()
	secret, err := c.client.CoreV1().Secrets(namespace).Get(t.Context(), "update-operator-proxy-tls", metav1.GetOptions{})
	assert.NilError(t, err)
	assert.Equal(t, string(secret.Data["tls.key"]), content)
	ca, err := c.client.CoreV1().ConfigMaps(namespace).Get(t.Context(), "update-operator-proxy-ca", metav1.GetOptions{})
	assert.NilError(t, err)
	assert.Equal(t, ca.Data["ca.crt"], content)
}

// helm is Helm's configuration for a namespace.
func (c *cluster) helm(t *testing.T, namespace string) *action.Configuration {
	t.Helper()
	flags := genericclioptions.NewConfigFlags(false)
	config := c.Kubeconfig()
	flags.KubeConfig, flags.Namespace = &config, &namespace
	cfg := action.NewConfiguration()
	assert.NilError(t, cfg.Init(flags, namespace, "secret"))
	return cfg
}

const releaseName = "update-operator"

func install(cfg *action.Configuration, namespace string) *action.Install {
	i := action.NewInstall(cfg)
	i.ReleaseName, i.Namespace, i.CreateNamespace, i.WaitStrategy = releaseName, namespace, true, kube.HookOnlyStrategy
	return i
}

func upgrade(t *testing.T, cfg *action.Configuration, namespace string, to *chartv2.Chart, values map[string]any) {
	t.Helper()
	u := action.NewUpgrade(cfg)
	u.Namespace, u.WaitStrategy, u.ServerSideApply = namespace, kube.HookOnlyStrategy, "auto"
	_, err := u.Run(releaseName, to, values)
	assert.NilError(t, err)
}

func uninstall(t *testing.T, cfg *action.Configuration) {
	t.Helper()
	u := action.NewUninstall(cfg)
	u.WaitStrategy = kube.HookOnlyStrategy
	_, err := u.Run(releaseName)
	assert.NilError(t, err)
}

// last is the chart as users have it: of the last release, or before there is one, of the last commit but one that changed
// it. A clone without history has the chart of its one commit.
func last(t *testing.T) *chartv2.Chart {
	t.Helper()
	root, err := controlplane.Root()
	assert.NilError(t, err)
	git := func(args ...string) ([]byte, error) {
		cmd := exec.Command("git", args...)
		cmd.Dir = root
		return cmd.Output()
	}
	dir := "charts/" + Name
	revision, err := git("describe", "--tags", "--abbrev=0")
	if _, there := git("cat-file", "-e", strings.TrimSpace(string(revision))+":"+dir); err != nil || there != nil {
		revision, err = git("log", "-2", "--format=%H", "--", dir)
		assert.NilError(t, err)
	}
	fields := strings.Fields(string(revision))
	of := "HEAD"
	if len(fields) > 0 {
		of = fields[len(fields)-1]
	}
	t.Logf("the last chart is that of %s", of)
	archive, err := git("archive", of, dir)
	assert.NilError(t, err)
	to := t.TempDir()
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		assert.NilError(t, err)
		if h.Typeflag != tar.TypeReg {
			continue
		}
		content, err := io.ReadAll(r)
		assert.NilError(t, err)
		file := filepath.Join(to, filepath.FromSlash(h.Name))
		assert.NilError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		assert.NilError(t, os.WriteFile(file, content, 0o644))
	}
	c, err := loader.LoadDir(filepath.Join(to, dir))
	assert.NilError(t, err)
	return c
}

// A release is upgraded from the chart's last state to this one with everything switched on, upgraded again without a
// write, rolled back and removed. The proxies' certificates outlive all but the last.
func TestHelm(t *testing.T) {
	c := newCluster(t)
	now, err := Load()
	assert.NilError(t, err)
	cfg := c.helm(t, Namespace)
	_, err = install(cfg, Namespace).Run(last(t), nil)
	assert.NilError(t, err)
	c.fill(t, Namespace, "first")

	values := maps.Clone(switches)
	values["policy"] = map[string]any{"version": 1, "maxUnavailable": 2}
	values["imagePullSecrets"] = []any{map[string]any{"name": "registry"}}
	values["commonLabels"] = map[string]any{"example.com/team": "nodes"}
	for _, part := range []string{"controller", "proxy", "agent", "plans"} {
		settings := map[string]any{
			"nodeSelector": map[string]any{"example.com/pool": "a"}, "podAnnotations": map[string]any{"example.com/a": "b", "prometheus.io/scrape": "false"},
			"podLabels": map[string]any{"example.com/c": "d"}, "extraArgs": []any{"-log-level=debug"}, "priorityClassName": "system-node-critical",
			"tolerations": []any{map[string]any{"key": "example.com/pool", "operator": "Exists"}},
		}
		if part == "plans" {
			settings["enabled"] = true
		}
		values[part] = settings
	}
	values["networkPolicy"] = map[string]any{"enabled": true,
		"controllerIngress": []any{map[string]any{"from": []any{map[string]any{"ipBlock": map[string]any{"cidr": "10.0.0.1/32"}}}}},
		"controllerEgress":  []any{map[string]any{"ports": []any{map[string]any{"protocol": "TCP", "port": 9090}}}}}
	upgrade(t, cfg, Namespace, now, values)
	all := templated(t, Namespace, values)
	before := c.versions(t, all)
	c.isFilled(t, Namespace, "first")
	c.kubectl(t, "", "-n", "bottlerocket-plans", "create", "configmap", "mine")
	agents, err := c.client.AppsV1().DaemonSets(Namespace).Get(t.Context(), "update-operator-agent", metav1.GetOptions{})
	assert.NilError(t, err)
	pod := agents.Spec.Template
	assert.DeepEqual(t, pod.Spec.ImagePullSecrets, []corev1.LocalObjectReference{{Name: "registry"}})
	assert.Equal(t, pod.Labels["example.com/team"]+pod.Labels["example.com/c"], "nodesd")
	assert.Equal(t, pod.Annotations["prometheus.io/scrape"]+pod.Annotations["prometheus.io/port"], "false8080")
	assert.Equal(t, pod.Spec.NodeSelector["example.com/pool"], "a")
	assert.Assert(t, slices.Contains(pod.Spec.Containers[0].Args, "-log-level=debug"))
	policy, err := c.client.CoreV1().ConfigMaps(Namespace).Get(t.Context(), "update-policy", metav1.GetOptions{})
	assert.NilError(t, err)
	assert.Equal(t, policy.Data["policy.yaml"], "maxUnavailable: 2\nversion: 1\n")

	// The certificates were renewed meanwhile.
	c.fill(t, Namespace, "second")
	for _, id := range []string{"Secret " + Namespace + "/update-operator-proxy-tls", "ConfigMap " + Namespace + "/update-operator-proxy-ca"} {
		before[id] = c.versions(t, map[string]*unstructured.Unstructured{id: all[id]})[id]
	}
	upgrade(t, cfg, Namespace, now, values)
	assert.DeepEqual(t, c.versions(t, all), before)

	back := action.NewRollback(cfg)
	back.Version, back.WaitStrategy, back.ServerSideApply = 1, kube.HookOnlyStrategy, "auto"
	assert.NilError(t, back.Run(releaseName))
	c.isFilled(t, Namespace, "second")
	_, err = c.client.AppsV1().Deployments(Namespace).Get(t.Context(), "update-operator-runner", metav1.GetOptions{})
	assert.Assert(t, apierrors.IsNotFound(err), "%v", err)
	kept := c.kubectl(t, "", "get", "validatingadmissionpolicies", "-l", "bottlerocket.aws/keep", "-o", "name")
	assert.Equal(t, strings.Count(kept, "\n"), 3, kept)

	// What users put into the namespace of plans is there still, and what was kept is taken up again.
	c.kubectl(t, "", "-n", "bottlerocket-plans", "get", "configmap", "mine")
	upgrade(t, cfg, Namespace, now, map[string]any{"plans": on()})
	uninstall(t, cfg)
	c.kubectl(t, "", "delete", "namespace", "bottlerocket-plans")
	c.nothingLeft(t)
	c.kubectl(t, "", "delete", "validatingadmissionpolicybindings,validatingadmissionpolicies", "-l", "bottlerocket.aws/keep")
}

// An operator that kubectl applied becomes a release, and nothing of it is written but Helm's own marks.
func TestHelmTakesOver(t *testing.T) {
	c := newCluster(t)
	root, err := controlplane.Root()
	assert.NilError(t, err)
	c.kubectl(t, "", "apply", "-f", filepath.Join(root, "update-operator.yaml"))
	c.fill(t, Namespace, "first")
	before := map[string]any{}
	for id, o := range templated(t, Namespace, nil) {
		got, err := c.get(t, o)
		assert.NilError(t, err)
		before[id] = got.Object["spec"]
	}
	now, err := Load()
	assert.NilError(t, err)
	cfg := c.helm(t, Namespace)
	i := install(cfg, Namespace)
	i.TakeOwnership = true
	_, err = i.Run(now, nil)
	assert.NilError(t, err)
	for id, o := range templated(t, Namespace, nil) {
		got, err := c.get(t, o)
		assert.NilError(t, err)
		assert.DeepEqual(t, got.Object["spec"], before[id])
	}
	c.isFilled(t, Namespace, "first")
	uninstall(t, cfg)
	c.kubectl(t, "", "delete", "namespace", Namespace)
	c.nothingLeft(t)
}

// kubectl builds and applies a kustomization of a git repository in another namespace, where the operator's accounts have their
// rights, changes nothing the second time, and removes it.
func TestKustomization(t *testing.T) {
	c := newCluster(t)
	root, err := controlplane.Root()
	assert.NilError(t, err)
	dir := t.TempDir()
	remote := "file://" + root + "//"
	text := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nnamespace: ops\nresources: ['" + remote + "?ref=HEAD']\ncomponents: ['" +
		remote + "components/force-drain?ref=HEAD', '" + remote + "components/pod-monitor?ref=HEAD']\n"
	assert.NilError(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600))
	built := c.kubectl(t, "", "kustomize", dir)
	first := c.kubectl(t, built, "apply", "-f", "-")
	assert.Assert(t, !strings.Contains(first, "Warning"), first)
	c.fill(t, "ops", "first")
	for line := range strings.Lines(c.kubectl(t, built, "apply", "-f", "-")) {
		// kubectl sends a budget's selector every time, since its patches replace it as a whole.
		assert.Check(t, strings.HasSuffix(strings.TrimSpace(line), "unchanged") || strings.HasPrefix(line, "poddisruptionbudget"), line)
	}
	c.isFilled(t, "ops", "first")
	for _, may := range [][]string{{"patch", "nodes"}, {"create", "events", "-n", "default"}, {"create", "events", "-n", "ops"}, {"delete", "pods", "-n", "default"}} {
		got := c.kubectl(t, "", append([]string{"auth", "can-i", "--as", "system:serviceaccount:ops:update-operator-controller"}, may...)...)
		assert.Assert(t, strings.HasSuffix(strings.TrimSpace(got), "yes"), "%v: %s", may, got)
	}
	c.kubectl(t, built, "delete", "-f", "-")
	c.nothingLeft(t)
}
