package manifest

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// S4 on nodes of plans: with a stolen token of the runner one can have the pods that the policy, a template and a node's
// intent ask for, and nothing else; whatever RBAC lets it do.
func TestPlanWall(t *testing.T) {
	w := newPlanWall(t)
	nodes := []string{freeNode, preparingNode}
	for plan := range planTemplates {
		nodes = append(nodes, busyNode+plan)
	}
	for _, node := range nodes {
		w.honestly(t, w.runner, node)
		w.honestly(t, w.thief, node)
	}
	t.Run("attacks", w.attacked)
	t.Run("found", w.found)
	t.Run("holes", w.holed)
	t.Run("rights", w.withRights)
	t.Run("reports", w.reports)
	t.Run("pods", w.pods)
	t.Run("policies", w.policies)
	t.Run("large", w.large)
	t.Run("checked types", w.typesChecked)
	t.Run("nothing there", w.nothingThere)
	t.Run("taken off and back", w.takenOff)
}

func (w *planWall) attacked(t *testing.T) {
	all, wet := planAttacks(t, w, lair)
	for _, a := range wet {
		await(t, a.name+" is possible as a dry run", func() bool { return a.do(t.Context(), w.thief, []string{metav1.DryRunAll}) == nil })
	}
	for _, a := range append(all, wet...) {
		await(t, "the policy of "+a.name+" is in force", func() bool { return a.do(t.Context(), w.thief, nil) != nil })
	}
	before := w.stands(t)
	for i, a := range append(all, wet...) {
		t.Run(a.name, func(t *testing.T) {
			for _, dry := range [][]string{nil, {metav1.DryRunAll}} {
				if i >= len(all) && dry != nil {
					continue
				}
				err := a.do(t.Context(), w.thief, dry)
				assert.Assert(t, apierrors.IsForbidden(err), "%v", err)
				assert.ErrorContains(t, err, "'"+a.policy+"'")
				assert.ErrorContains(t, err, a.says)
			}
		})
	}
	assert.DeepEqual(t, w.stands(t), before)
}

// stands is what attacks would change, but for what the cluster's own controllers write.
func (w *planWall) stands(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	nodes, err := w.admin.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	assert.NilError(t, err)
	for _, n := range nodes.Items {
		out[n.Name] = fmt.Sprint(n.Annotations, n.Labels, n.Finalizers, n.OwnerReferences, n.Spec.Unschedulable, n.Spec.ProviderID)
	}
	pods, err := w.admin.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	assert.NilError(t, err)
	for _, p := range pods.Items {
		if p.Namespace != Namespace {
			out[p.Namespace+"/"+p.Name] = fmt.Sprint(p.UID, p.Annotations, p.Labels, p.Finalizers, p.OwnerReferences, p.Spec.NodeName, p.Spec.Containers[0].Image)
		}
	}
	configs, err := w.admin.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{})
	assert.NilError(t, err)
	for _, c := range configs.Items {
		out["ConfigMap "+c.Namespace+"/"+c.Name] = fmt.Sprint(c.Data)
	}
	return out
}

// What RBAC doesn't let the account do needs no policy.
func (w *planWall) withRights(t *testing.T) {
	c := w.runner.CoreV1()
	object := metav1.ObjectMeta{Name: "forged"}
	get, created := metav1.GetOptions{}, metav1.CreateOptions{}
	for name, do := range map[string]func() error{
		"a Secret of another namespace": func() error { _, err := c.Secrets(metav1.NamespaceDefault).Get(t.Context(), "s", get); return err },
		"another Secret of its own": func() error {
			_, err := c.Secrets(Namespace).Get(t.Context(), "update-operator-proxy-tls", get)
			return err
		},
		"all Secrets of its own": func() error { _, err := c.Secrets(Namespace).List(t.Context(), metav1.ListOptions{}); return err },
		"the slots":              func() error { _, err := c.ConfigMaps(Namespace).Get(t.Context(), kube.StateConfigMap, get); return err },
		"a template": func() error {
			_, err := c.PodTemplates(plansNamespace).Create(t.Context(), &corev1.PodTemplate{ObjectMeta: object}, created)
			return err
		},
		"a Secret": func() error {
			_, err := c.Secrets(plansNamespace).Create(t.Context(), &corev1.Secret{ObjectMeta: object}, created)
			return err
		},
		"a ConfigMap": func() error {
			_, err := c.ConfigMaps(plansNamespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: object}, created)
			return err
		},
		"a token": func() error {
			return c.RESTClient().Post().Namespace(plansNamespace).Resource("serviceaccounts").Name("upgrader").SubResource("token").Body([]byte("{}")).Do(t.Context()).Error()
		},
		"a node gone": func() error { return c.Nodes().Delete(t.Context(), freeNode, metav1.DeleteOptions{}) },
		"a pod elsewhere": func() error {
			return c.Pods(metav1.NamespaceDefault).Delete(t.Context(), wallPod, metav1.DeleteOptions{})
		},
		"the pods of all": func() error { _, err := c.Pods("").List(t.Context(), metav1.ListOptions{}); return err },
		"an eviction": func() error {
			return c.RESTClient().Post().Namespace(plansNamespace).Resource("pods").Name(victimPod).SubResource("eviction").Body([]byte("{}")).Do(t.Context()).Error()
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := do()
			assert.Assert(t, apierrors.IsForbidden(err) && !byPolicy(err), "%v", err)
		})
	}
	// And what it lets the account do.
	for name, do := range map[string]func() error{
		"the policy": func() error {
			_, err := c.ConfigMaps(Namespace).Get(t.Context(), kube.PolicyConfigMap, get)
			return err
		},
		"templates": func() error {
			_, err := c.PodTemplates(plansNamespace).List(t.Context(), metav1.ListOptions{})
			return err
		},
		"their contents": func() error { _, err := c.Secrets(plansNamespace).List(t.Context(), metav1.ListOptions{}); return err },
		"its key": func() error {
			s, err := c.Secrets(Namespace).Get(t.Context(), "update-operator-runner", get)
			if err != nil {
				return err
			}
			s.Data = map[string][]byte{"key": []byte("k")}
			_, err = c.Secrets(Namespace).Update(t.Context(), s, metav1.UpdateOptions{})
			return err
		},
		"what it found out": func() error {
			o, err := c.ConfigMaps(Namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: planTargets}}, created)
			if err != nil {
				return err
			}
			o.Data = map[string]string{"k3s": "{}"}
			_, err = c.ConfigMaps(Namespace).Update(t.Context(), o, metav1.UpdateOptions{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) { assert.NilError(t, do()) })
	}
	// Applied again, the file keeps the key.
	w.apply(t, string(further(t, plansFile)))
	s, err := c.Secrets(Namespace).Get(t.Context(), "update-operator-runner", get)
	assert.NilError(t, err)
	assert.Equal(t, string(s.Data["key"]), "k")
}

// reports is what the runner writes on a node from one intent to the next.
func (w *planWall) reports(t *testing.T) {
	patch := func(client kubernetes.Interface, annotations map[string]string, gone ...string) {
		t.Helper()
		values := map[string]any{}
		for k, v := range annotations {
			values[k] = v
		}
		for _, k := range gone {
			values[k] = nil
		}
		for _, node := range []string{busyNode + "kernel", crowdedNode} {
			_, err := client.CoreV1().Nodes().Patch(t.Context(), node, types.MergePatchType, []byte(asPatch(t, values)), metav1.PatchOptions{})
			assert.NilError(t, err)
		}
	}
	for i, action := range marker.Actions() {
		m := planMarks("kernel")
		m.Intent.ID, m.Intent.Action = fmt.Sprint("next-", i), action
		m.Report.ActiveID = m.Intent.ID
		asked := map[string]string{}
		for k, v := range marker.Encode(m) {
			asked[string(k)] = v
		}
		patch(w.admin, asked)
		// Facts alone, while the earlier answer stands.
		patch(w.runner, map[string]string{string(marker.KeyBootID): m.Intent.ID})
		for _, state := range []marker.State{marker.StateBusy, marker.StateError, marker.StateReady} {
			m.Report.State, m.Report.Message = state, string(state)
			patch(w.runner, runnersPart(m.Report))
		}
		m.Report.Message = ""
		patch(w.runner, runnersPart(m.Report), string(marker.KeyMessage))
	}
	// Other accounts meet no wall.
	patch(w.admin, map[string]string{"example.com/theirs": "changed"}, string(marker.KeyActiveID))
}

// pods are made, kept and let go.
func (w *planWall) pods(t *testing.T) {
	for _, node := range append([]string{freeNode, preparingNode}, busyNode+"k3s", busyNode+"files", busyNode+"runtime") {
		t.Run(node, func(t *testing.T) {
			p := w.honestly(t, w.runner, node)
			pods := w.runner.CoreV1().Pods(plansNamespace)
			assert.NilError(t, create(t.Context(), w.runner, p, nil))
			assert.Assert(t, apierrors.IsAlreadyExists(create(t.Context(), w.runner, p, nil)))
			got, err := pods.Get(t.Context(), p.Name, metav1.GetOptions{})
			assert.NilError(t, err)
			assert.Equal(t, got.Spec.NodeName, node)
			// The template's token, and no other.
			volumes := slices.ContainsFunc(got.Spec.Volumes, func(v corev1.Volume) bool { return strings.HasPrefix(v.Name, "kube-api-access-") })
			assert.Equal(t, volumes, node == busyNode+"k3s")
			assert.NilError(t, pods.Delete(t.Context(), p.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}))
			_, err = pods.Patch(t.Context(), p.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			assert.NilError(t, err)
			_, err = pods.Get(t.Context(), p.Name, metav1.GetOptions{})
			assert.Assert(t, apierrors.IsNotFound(err), "%v", err)
		})
	}
	// Our finalizer goes, and that of others stays.
	_, err := w.runner.CoreV1().Pods(plansNamespace).Patch(t.Context(), victimPod, types.StrategicMergePatchType,
		[]byte(`{"metadata":{"$deleteFromPrimitiveList/finalizers":["`+planFinalizer+`"]}}`), metav1.PatchOptions{})
	assert.NilError(t, err)
}

// policies are texts that name the template of the plan "kernel", or don't.
func (w *planWall) policies(t *testing.T) {
	p := w.planPod(t, freeNode)
	for text, names := range map[string]bool{
		"plans:\n- name: a\n  apply: kernel":                                true,
		"plans:\n- apply: kernel":                                           true,
		"plans:\n- prepare: kernel\n  apply: other":                         true,
		"plans:\n- apply: \"kernel\"  # the patch\r\n":                      true,
		"plans:\n- prepare: 'kernel'":                                       true,
		"plans: [{name: a, apply: kernel, proof: content}]":                 true,
		"plans: [{name: a, apply: kernel}]":                                 true,
		`{"plans":[{"name":"a","apply":"kernel"}]}`:                         true,
		"plans:\n- apply: kernel2":                                          false,
		"plans:\n- apply: kernel-2\n  prepare: a.kernel":                    false,
		"plans:\n- apply: kernel.d":                                         false,
		"plans:\n# - apply: kernel":                                         false,
		"plans:\n- name: kernel\n  nodeSelector: {reapply: kernel}":         false,
		"plans:\n- name: a # apply: kernel":                                 false,
		"plans: []":                                                         false,
		"plans:\n- apply: kernel\n" + strings.Repeat("# kernels\n", 52_000): true,
		"plans:\n- apply: kernel2\n" + strings.Repeat("# k\n", 128<<10-100): false,
	} {
		w.plans(t, text)
		await(t, fmt.Sprintf("%v for %.60q", names, text), func() bool {
			err := create(t.Context(), w.runner, p, []string{metav1.DryRunAll})
			return names == (err == nil) && (err == nil || strings.Contains(err.Error(), "no plan of the policy"))
		})
	}
	// What docs/security.md says is left: a template that is named and isn't there holds nothing, and a node without the
	// label of plans has its kubelet alone to refuse the pod.
	w.plans(t, w.text+"  - apply: absent\n")
	left := w.planPod(t, absentNode)
	left.Spec.Containers = []corev1.Container{{Name: "any", Image: "any"}}
	elsewhere := w.planPod(t, freeNode)
	elsewhere.Spec.NodeName = updateAPINode
	for _, p := range []*corev1.Pod{left, elsewhere} {
		await(t, "it is let through", func() bool { return create(t.Context(), w.thief, p, []string{metav1.DryRunAll}) == nil })
	}
	w.plans(t, w.text)
	w.honestly(t, w.runner, freeNode)
}

// large: a template with more than any is expected to have costs no more than the API server lets a policy cost. That
// bound is for each node and template apart. For each of them the API server converts the pod anew: 20 ms for this one.
func (w *planWall) large(t *testing.T) {
	c := w.admin.CoreV1()
	template, err := c.PodTemplates(plansNamespace).Get(t.Context(), "kernel", metav1.GetOptions{})
	assert.NilError(t, err)
	large := &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Name: "kernel"}, Template: *template.Template.DeepCopy()}
	spec := &large.Template.Spec
	spec.Containers = nil
	large.Template.Labels, large.Template.Annotations = map[string]string{}, map[string]string{}
	for i := range 40 {
		name := fmt.Sprint("n", i)
		large.Template.Labels["example.com/"+name], large.Template.Annotations["example.com/"+name] = "v", strings.Repeat("v", 1000)
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}})
	}
	for i := range 12 {
		one := corev1.Container{Name: fmt.Sprint("c", i), Image: "example.com/c:TARGET_VERSION", Command: []string{"sh", "-c", strings.Repeat("true\n", 1000)}}
		for _, v := range spec.Volumes {
			one.VolumeMounts = append(one.VolumeMounts, corev1.VolumeMount{Name: v.Name, MountPath: "/" + v.Name})
			one.Env = append(one.Env, corev1.EnvVar{Name: v.Name, Value: "v"})
			one.Ports = append(one.Ports, corev1.ContainerPort{ContainerPort: int32(1000 + len(one.Ports) + 100*i)})
		}
		spec.Containers = append(spec.Containers, one)
	}
	for i := range 10 {
		o := &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("other-", i)}, Template: template.Template}
		_, err := c.PodTemplates(plansNamespace).Create(t.Context(), o, metav1.CreateOptions{})
		assert.NilError(t, err)
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: o.Name, Labels: map[string]string{string(marker.KeyInterfaceVersion): "plan"}}}
		_, err = c.Nodes().Create(t.Context(), n, metav1.CreateOptions{})
		assert.NilError(t, err)
	}
	_, err = c.PodTemplates(plansNamespace).Update(t.Context(), large, metav1.UpdateOptions{})
	assert.NilError(t, err)
	p := w.honestly(t, w.runner, freeNode)
	p.Spec.Containers[11].Env[39].Value = "forged"
	assert.ErrorContains(t, create(t.Context(), w.runner, p, []string{metav1.DryRunAll}), "another pod: container c11")
	large.Template = template.Template
	_, err = c.PodTemplates(plansNamespace).Update(t.Context(), large, metav1.UpdateOptions{})
	assert.NilError(t, err)
}

// typesChecked: the controller manager finds no mistake in what the policies say.
func (w *planWall) typesChecked(t *testing.T) {
	for _, p := range plans(t).Policies {
		await(t, "the policy "+p.Name+" is checked", func() bool {
			p, err := w.admin.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(t.Context(), p.Name, metav1.GetOptions{})
			assert.NilError(t, err)
			checked := p.Status.TypeChecking
			assert.Check(t, checked == nil || len(checked.ExpressionWarnings) == 0, "%+v", checked)
			return p.Status.ObservedGeneration == p.Generation
		})
	}
}

// nothingThere: without templates, nodes of plans or a policy, the runner makes no pod, and others aren't hindered: the API
// server refuses every account, where a policy has nothing to be judged by.
func (w *planWall) nothingThere(t *testing.T) {
	c := w.admin.CoreV1()
	honest := w.honestly(t, w.runner, freeNode)
	theirs := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "theirs-"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}}}
	dry := []string{metav1.DryRunAll}
	refused := func(policy string) {
		t.Helper()
		await(t, policy+" has nothing to judge by", func() bool {
			err := create(t.Context(), w.runner, honest, dry)
			return err != nil && strings.Contains(err.Error(), "'"+policy+"'") && strings.Contains(err.Error(), "no params found")
		})
		for _, namespace := range []string{metav1.NamespaceDefault, Namespace, plansNamespace} {
			_, err := c.Pods(namespace).Create(t.Context(), theirs, metav1.CreateOptions{DryRun: dry})
			assert.NilError(t, err, namespace)
		}
	}
	assert.NilError(t, c.ConfigMaps(Namespace).Delete(t.Context(), kube.PolicyConfigMap, metav1.DeleteOptions{}))
	refused(planPolicy)
	w.plans(t, w.text)
	w.honestly(t, w.runner, freeNode)

	list, err := c.PodTemplates(plansNamespace).List(t.Context(), metav1.ListOptions{})
	assert.NilError(t, err)
	assert.NilError(t, c.PodTemplates(plansNamespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	refused(templatePolicy)
	for _, o := range list.Items {
		o.ResourceVersion = ""
		_, err := c.PodTemplates(plansNamespace).Create(t.Context(), &o, metav1.CreateOptions{})
		assert.NilError(t, err)
	}
	w.honestly(t, w.runner, freeNode)

	nodes, err := c.Nodes().List(t.Context(), metav1.ListOptions{})
	assert.NilError(t, err)
	for _, n := range nodes.Items {
		_, err := c.Nodes().Patch(t.Context(), n.Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"`+string(marker.KeyInterfaceVersion)+`":null}}}`), metav1.PatchOptions{})
		assert.NilError(t, err)
	}
	refused(intentPolicy)
}

// takenOff: what docs/uninstall.md deletes can be applied again, and then templates are seen as they are. (With the bindings
// of all policies about them gone in between, an API server would see none.)
func (w *planWall) takenOff(t *testing.T) {
	_, commands, found := strings.Cut(page(t, uninstallPage), "kubectl -n bottlerocket-plans get pods")
	assert.Assert(t, found)
	commands, _, _ = strings.Cut("kubectl -n bottlerocket-plans get pods"+commands, "```")
	// No kubelet is there to say that the pods are over.
	assert.NilError(t, w.admin.CoreV1().Pods(plansNamespace).DeleteCollection(t.Context(), metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}, metav1.ListOptions{}))
	dir := t.TempDir()
	stub := fmt.Sprintf("#!/bin/sh\nexec %s --kubeconfig %s \"$@\"\n", w.cp.Binaries().Kubectl, w.cp.Kubeconfig())
	assert.NilError(t, os.WriteFile(filepath.Join(dir, "kubectl"), []byte(stub), 0o755))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	run := exec.CommandContext(ctx, "sh", "-ec", commands)
	run.WaitDelay = time.Second
	run.Dir, run.Env = inRepository(""), append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	out, err := run.CombinedOutput()
	assert.NilError(t, err, "%s", out)
	list, err := w.admin.AdmissionregistrationV1().ValidatingAdmissionPolicies().List(t.Context(), metav1.ListOptions{LabelSelector: LabelComponent + "=" + Runner})
	assert.NilError(t, err)
	var names []string
	for _, p := range list.Items {
		names = append(names, p.Name)
	}
	assert.DeepEqual(t, names, []string{intentPolicy, planPolicy, templatePolicy})
	_, err = w.admin.CoreV1().Namespaces().Get(t.Context(), plansNamespace, metav1.GetOptions{})
	assert.Assert(t, apierrors.IsNotFound(err), "%v", err)

	w.apply(t, string(further(t, plansFile)))
	template := &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Name: "kernel"}}
	template.Template.Spec.Containers = []corev1.Container{{Name: "new", Image: "example.com/new"}}
	_, err = w.admin.CoreV1().PodTemplates(plansNamespace).Create(t.Context(), template, metav1.CreateOptions{})
	assert.NilError(t, err)
	w.plans(t, w.text)
	_, err = w.admin.CoreV1().Nodes().Patch(t.Context(), freeNode, types.MergePatchType, []byte(`{"metadata":{"labels":{"`+string(marker.KeyInterfaceVersion)+`":"plan"}}}`), metav1.PatchOptions{})
	assert.NilError(t, err)
	p := w.honestly(t, w.runner, freeNode)
	p.Spec.Containers[0].Image = "forged"
	await(t, "the template is seen", func() bool {
		err := create(t.Context(), w.runner, p, []string{metav1.DryRunAll})
		return err != nil && strings.Contains(err.Error(), "image of container new")
	})
}

func asPatch(t *testing.T, annotations map[string]any) string {
	t.Helper()
	var all []string
	for _, k := range slices.Sorted(maps.Keys(annotations)) {
		body := setAnnotation(k, annotations[k])
		body = strings.TrimSuffix(strings.TrimPrefix(body, `{"metadata":{"annotations":{`), "}}}")
		all = append(all, body)
	}
	return `{"metadata":{"annotations":{` + strings.Join(all, ",") + "}}}"
}
