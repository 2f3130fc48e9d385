package chart

import (
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pkg/errors"
	"gotest.tools/v3/assert"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	release "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
)

// objects are those of some YAML, by kind, namespace and name.
func objects(t *testing.T, text string) map[string]*unstructured.Unstructured {
	t.Helper()
	out := map[string]*unstructured.Unstructured{}
	for d := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096); ; {
		var o unstructured.Unstructured
		err := d.Decode(&o)
		if errors.Is(err, io.EOF) {
			return out
		}
		assert.NilError(t, err)
		if o.Object == nil {
			continue
		}
		id := o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
		assert.Assert(t, out[id] == nil, "%s is there twice", id)
		out[id] = &o
	}
}

// same compares object by object.
func same(t *testing.T, got, want map[string]*unstructured.Unstructured) {
	t.Helper()
	assert.DeepEqual(t, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	for id, o := range want {
		assert.DeepEqual(t, got[id].Object, o.Object)
	}
}

// templated is what `helm template` prints.
func templated(t *testing.T, namespace string, values map[string]any) map[string]*unstructured.Unstructured {
	t.Helper()
	c, err := Load()
	assert.NilError(t, err)
	install := action.NewInstall(action.NewConfiguration())
	install.DryRunStrategy, install.ReleaseName, install.Namespace = action.DryRunClient, "update-operator", namespace
	install.KubeVersion, err = common.ParseKubeVersion("v1.31.0")
	assert.NilError(t, err)
	made, err := install.Run(c, values)
	assert.NilError(t, err)
	r := made.(*release.Release)
	assert.Equal(t, len(r.Hooks), 0, "a hook is needed")
	return objects(t, r.Manifest)
}

// kustomized is what `kustomize build` prints of a kustomization in a checkout, beside its own.
func kustomized(t *testing.T, text string) map[string]*unstructured.Unstructured {
	t.Helper()
	root, err := controlplane.Root()
	assert.NilError(t, err)
	fs := filesys.MakeFsInMemory()
	for _, dir := range []string{".", "components/*"} {
		for _, pattern := range []string{"kustomization.yaml", "*.yaml"} {
			files, err := filepath.Glob(filepath.Join(root, dir, pattern))
			assert.NilError(t, err)
			for _, f := range files {
				content, err := filesys.MakeFsOnDisk().ReadFile(f)
				assert.NilError(t, err)
				name, err := filepath.Rel(root, f)
				assert.NilError(t, err)
				assert.NilError(t, fs.WriteFile(filepath.Join("/operator", name), content))
			}
		}
	}
	const head = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [../operator]\n"
	assert.NilError(t, fs.WriteFile("/own/kustomization.yaml", []byte(head+text)))
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(fs, "/own")
	assert.NilError(t, err)
	for _, o := range made.Resources() {
		// The schema that kustomize holds is from before these kinds, so it gives them a namespace. An API server takes it off
		// again, which TestKustomization shows.
		if strings.HasPrefix(o.GetKind(), "ValidatingAdmissionPolicy") {
			o.SetNamespace("")
		}
	}
	y, err := made.AsYaml()
	assert.NilError(t, err)
	return objects(t, string(y))
}

// applied is what the files say that kubectl takes.
func applied(t *testing.T, files ...string) map[string]*unstructured.Unstructured {
	t.Helper()
	root, err := controlplane.Root()
	assert.NilError(t, err)
	all := map[string]*unstructured.Unstructured{}
	for _, f := range files {
		content, err := filesys.MakeFsOnDisk().ReadFile(filepath.Join(root, f))
		assert.NilError(t, err)
		maps.Copy(all, objects(t, string(content)))
	}
	return all
}

// componentNames are all components, and switches the chart's values for them.
var (
	componentNames = []string{"force-drain", "grace-period", "network-policy", "plans", "pod-monitor"}
	switches       = map[string]any{"forceDrain": true, "gracePeriod": true, "networkPolicy": on(), "plans": on(), "podMonitor": on()}
)

func on() map[string]any { return map[string]any{"enabled": true} }

// Helm, kustomize and kubectl install the same objects, with defaults and with all further parts. The namespace is made by
// Helm itself.
func TestFormsAreTheSame(t *testing.T) {
	want := applied(t, "update-operator.yaml")
	same(t, kustomized(t, ""), want)
	delete(want, "Namespace /"+Namespace)
	same(t, templated(t, Namespace, nil), want)

	files, with := []string{"update-operator.yaml"}, "components:\n"
	for _, c := range componentNames {
		files = append(files, "components/"+c+"/"+c+".yaml")
		with += "- ../operator/components/" + c + "\n"
	}
	want = applied(t, files...)
	same(t, kustomized(t, with), want)
	values := maps.Clone(switches)
	values["namespace"] = map[string]any{"create": true}
	same(t, templated(t, Namespace, values), want)
}

// inNamespace is what a manifest would be if the operator's namespace were another one.
func inNamespace(of map[string]*unstructured.Unstructured, namespace string) map[string]*unstructured.Unstructured {
	out := map[string]*unstructured.Unstructured{}
	for _, o := range of {
		if o.GetNamespace() == Namespace {
			o.SetNamespace(namespace)
		}
		if o.GetKind() == "Namespace" && o.GetName() == Namespace {
			o.SetName(namespace)
		}
		if subjects, ok := o.Object["subjects"].([]any); ok {
			for _, s := range subjects {
				s.(map[string]any)["namespace"] = namespace
			}
		}
		if at, _, _ := unstructured.NestedString(o.Object, "spec", "paramRef", "namespace"); at == Namespace {
			_ = unstructured.SetNestedField(o.Object, namespace, "spec", "paramRef", "namespace")
		}
		out[o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName()] = o
	}
	return out
}

// installPage returns the block of docs/install.md that begins so.
func installPage(t *testing.T, begin string) string {
	t.Helper()
	root, err := controlplane.Root()
	assert.NilError(t, err)
	page, err := filesys.MakeFsOnDisk().ReadFile(filepath.Join(root, "docs", "install.md"))
	assert.NilError(t, err)
	_, block, ok := strings.Cut(string(page), "```yaml\n"+begin)
	assert.Assert(t, ok, "docs/install.md has no block that begins with %q", begin)
	block, _, _ = strings.Cut(block, "```")
	return begin + block
}

// Another namespace is one setting, and nothing else changes. Under kustomize plans need patches, as they have a namespace
// of their own.
func TestAnotherNamespace(t *testing.T) {
	const further = "components: [../operator/components/force-drain, ../operator/components/grace-period," +
		" ../operator/components/network-policy, ../operator/components/pod-monitor]\n"
	files := []string{"update-operator.yaml"}
	for _, c := range componentNames {
		if c != "plans" {
			files = append(files, "components/"+c+"/"+c+".yaml")
		}
	}
	same(t, kustomized(t, "namespace: ops\n"+further), inNamespace(applied(t, files...), "ops"))

	files = append(files, "components/plans/plans.yaml")
	same(t, kustomized(t, "components: [../operator/components/plans, ../operator/components/force-drain, ../operator/components/grace-period,"+
		" ../operator/components/network-policy, ../operator/components/pod-monitor]\n"+installPage(t, "patches:\n")), inNamespace(applied(t, files...), "ops"))

	values := maps.Clone(switches)
	values["namespace"] = map[string]any{"create": true}
	same(t, templated(t, "ops", values), inNamespace(applied(t, files...), "ops"))
}

// The image can come from another registry, by tag or by digest, and its credentials with it, without a change of a file.
func TestOwnRegistry(t *testing.T) {
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	images := func(of map[string]*unstructured.Unstructured) []string {
		var all []string
		for _, o := range of {
			containers, _, err := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
			assert.NilError(t, err)
			for _, c := range containers {
				all = append(all, c.(map[string]any)["image"].(string))
			}
		}
		slices.Sort(all)
		return slices.Compact(all)
	}
	assert.DeepEqual(t, images(templated(t, Namespace, map[string]any{"plans": on(), "image": map[string]any{
		"registry": "registry.example.com", "repository": "mirror/operator", "tag": "v3"}})), []string{"registry.example.com/mirror/operator:v3"})
	assert.DeepEqual(t, images(templated(t, Namespace, map[string]any{"plans": on(), "image": map[string]any{
		"registry": "registry.example.com", "tag": "v3", "digest": digest}})), []string{"registry.example.com/bottlerocket/bottlerocket-update-operator@" + digest})
	assert.DeepEqual(t, images(kustomized(t, "components: [../operator/components/plans]\nimages:\n- name: public.ecr.aws/bottlerocket/bottlerocket-update-operator\n"+
		"  newName: registry.example.com/mirror/operator\n  digest: "+digest+"\n")), []string{"registry.example.com/mirror/operator@" + digest})
}

// A value that no part of the chart knows, or that can't be right, is refused before anything is installed, and so is a
// policy with a mistake.
func TestValuesAreChecked(t *testing.T) {
	c, err := Load()
	assert.NilError(t, err)
	for name, tc := range map[string]struct {
		values map[string]any
		says   string
	}{
		"misspelt":         {map[string]any{"imagePullSecret": []any{}}, "imagePullSecret"},
		"no digest":        {map[string]any{"image": map[string]any{"digest": "v2"}}, "digest"},
		"a limit in bytes": {map[string]any{"agent": map[string]any{"resources": map[string]any{"limits": map[string]any{"memory": "64M"}}}}, "memory"},
		"no proxy":         {map[string]any{"proxy": map[string]any{"replicas": 0}}, "replicas"},
		"policy: misspelt": {map[string]any{"policy": map[string]any{"version": 1, "maxUnavailabel": 2}}, "maxUnavailabel"},
		"policy: no word":  {map[string]any{"policy": map[string]any{"version": 1, "autoscalers": "protekt"}}, "autoscalers"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Render(c, Namespace, tc.values)
			assert.ErrorContains(t, err, tc.says)
		})
	}
	rendered, err := Render(c, Namespace, map[string]any{"policy": map[string]any{"version": 1, "maxUnavailable": "10%", "groups": []any{
		map[string]any{"name": "canary", "nodeSelector": map[string]any{"matchLabels": map[string]any{"stage": "canary"}}}}}})
	assert.NilError(t, err)
	assert.Assert(t, strings.Contains(rendered["policy.yaml"], "maxUnavailable: 10%"), rendered["policy.yaml"])
}

// What the memory limit is decides how much the program takes before it frees memory, whatever the limit is.
func TestMemoryLimit(t *testing.T) {
	c, err := Load()
	assert.NilError(t, err)
	for limit, want := range map[string]string{"100Mi": "90MiB", "1Gi": "921MiB"} {
		rendered, err := Render(c, Namespace, map[string]any{"controller": map[string]any{"resources": map[string]any{"limits": map[string]any{"memory": limit}}}})
		assert.NilError(t, err)
		assert.Assert(t, strings.Contains(rendered["controller.yaml"], "value: "+want+"\n"), limit)
	}
	rendered, err := Render(c, Namespace, map[string]any{"controller": map[string]any{"resources": map[string]any{"limits": nil}}})
	assert.NilError(t, err)
	assert.Assert(t, !strings.Contains(rendered["controller.yaml"], "GOMEMLIMIT"), "there is no limit")
}
