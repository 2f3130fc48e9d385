package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pkg/errors"
	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/manifest"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/realcluster"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// planned is the label that puts a node into the care of the plans.
const planned = string(marker.KeyInterfaceVersion) + "=plan"

// busybox stands in for the image of that name, as far as docs/plans/files.yaml needs it.
var busybox = realcluster.System{Name: "busybox:1.37", Programs: []string{"sh", "cp"}}

// useExample applies docs/plans/NAME.yaml as it stands, and puts the plan of its comment in force. When the test is
// over, both are taken back.
func (w *world) useExample(t *testing.T, name string) {
	t.Helper()
	root, err := controlplane.Root()
	assert.NilError(t, err)
	path := filepath.Join(root, "docs", "plans", name+".yaml")
	content, err := os.ReadFile(path)
	assert.NilError(t, err)
	var plan strings.Builder
	for line := range strings.Lines(string(content)) {
		if inside, ok := strings.CutPrefix(line, "#   "); ok {
			plan.WriteString(inside)
		}
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		assert.Check(t, w.setPolicy(ctx, quick))
		_, err := w.Kubectl(ctx, "delete", "-f", path)
		assert.Check(t, err)
	})
	_, err = w.Kubectl(t.Context(), "apply", "-f", path)
	assert.NilError(t, err)
	assert.NilError(t, w.setPolicy(t.Context(), quick+plan.String()))
}

// addDebian makes a node of Debian with a label and an image. It goes when the test is over.
func (w *world) addDebian(t *testing.T, d realcluster.Debian, label string, image realcluster.System) *realcluster.Node {
	t.Helper()
	n, err := w.AddDebian(t.Context(), d)
	assert.NilError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("kubelet of %s: %s", n.Name(), n.Log("kubelet", 3000))
		}
		assert.Check(t, w.Remove(context.WithoutCancel(t.Context()), n))
	})
	confined(t, n)
	assert.NilError(t, n.LoadSystem(t.Context(), image))
	if label != "" {
		_, err = w.Kubectl(t.Context(), "label", "node", n.Name(), label)
		assert.NilError(t, err)
	}
	return n
}

// confined ends a test on whose node a privileged pod would have processes, disks or files of this machine within reach.
func confined(t *testing.T, n *realcluster.Node) {
	t.Helper()
	out, err := n.Exec(t.Context(), nil, "sh", "-c", `tr '\0' ' ' </proc/1/cmdline; echo; find /dev -type b; ls /oldroot; if [ -w /usr ]; then echo /usr can be written; fi`)
	assert.NilError(t, err)
	assert.Equal(t, out, "/bin/bash /etc/node-init \n")
}

// care puts a node into the care of the plans.
func (w *world) care(t *testing.T, n *realcluster.Node) {
	t.Helper()
	_, err := w.Kubectl(t.Context(), "label", "node", n.Name(), planned)
	assert.NilError(t, err)
}

// guest is a workload that prefers one node of Debian, where nothing else goes.
func (w *world) guest(t *testing.T, n *realcluster.Node) {
	t.Helper()
	assert.NilError(t, w.Apply(t.Context(), fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: guest, namespace: shop}
spec:
  replicas: 1
  selector: {matchLabels: {app: guest}}
  template:
    metadata: {labels: {app: guest}}
    spec:
      terminationGracePeriodSeconds: 1
      tolerations: [{key: %s, operator: Exists}]
      affinity:
        nodeAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
          - {weight: 100, preference: {matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [%s]}]}}
      containers: [{name: web, image: %q, args: [serve]}]
`, realcluster.TaintDebian, n.Name(), realcluster.WebImage)))
	t.Cleanup(func() {
		_, err := w.Kubectl(context.WithoutCancel(t.Context()), "-n", "shop", "delete", "deployment", "guest")
		assert.Check(t, err)
	})
	await(t, "a guest runs on "+n.Name(), func() (bool, error) {
		pods, err := w.Client.CoreV1().Pods("shop").List(t.Context(), metav1.ListOptions{LabelSelector: "app=guest"})
		return err == nil && len(pods.Items) == 1 && podReady(&pods.Items[0]) && pods.Items[0].Spec.NodeName == n.Name(), err
	})
}

// marks are the operator's on a node.
func (w *world) marks(ctx context.Context, name string) (*corev1.Node, marker.Marks, error) {
	n, err := w.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, marker.Marks{}, err
	}
	m, problems := marker.Decode(n.Annotations)
	if len(problems) > 0 {
		err = errors.Errorf("the marks of %s can't be read: %v", name, problems)
	}
	return n, m, err
}

// awaitUpdated waits until a plan has updated a node so many times and nothing is under way, and returns what it runs then.
func (w *world) awaitUpdated(t *testing.T, n *realcluster.Node, plan string, times int) (*corev1.Node, marker.Marks) {
	t.Helper()
	var node *corev1.Node
	var m marker.Marks
	await(t, fmt.Sprintf("%s was updated %d times", n.Name(), times), func() (_ bool, err error) {
		if node, m, err = w.marks(t.Context(), n.Name()); err != nil {
			return false, err
		}
		updated := 0
		for _, a := range m.History {
			assert.Equal(t, a.Outcome, marker.OutcomeUpdated, "%+v", a)
			assert.Equal(t, marker.PlanOf(a.Version), plan)
			updated++
		}
		if m.Disruption != nil || updated < times {
			return false, errors.Errorf("%s: intent %+v, report %+v, waits for %+v, history %+v", n.Name(), m.Intent, m.Report, m.Waiting, m.History)
		}
		return true, nil
	})
	assert.Equal(t, len(m.History), times)
	a := m.History[times-1]
	t.Logf("%s got %s in %s, %s ago", n.Name(), a.Version, a.Ended.Sub(a.Started), time.Since(a.Ended).Round(time.Second))
	return node, m
}

// planPods are the pods of plans on a node.
func (w *world) planPods(t *testing.T, n *realcluster.Node) []corev1.Pod {
	t.Helper()
	pods, err := w.Client.CoreV1().Pods(kube.PlansNamespace).List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + n.Name()})
	assert.NilError(t, err)
	return pods.Items
}

// onNode is a file of a node.
func onNode(t *testing.T, n *realcluster.Node, path string) string {
	t.Helper()
	out, err := n.Exec(t.Context(), nil, "cat", path)
	assert.NilError(t, err)
	return out
}

// told checks that an Event of a node names the plan.
func (w *world) told(t *testing.T, n *realcluster.Node, plan string) {
	t.Helper()
	await(t, "an Event of "+n.Name()+" names the plan "+plan, func() (bool, error) {
		out, err := w.Kubectl(t.Context(), "get", "events", "-A", "--field-selector", "involvedObject.name="+n.Name(), "-o", `jsonpath={range .items[*]}{.reason}: {.message}{"\n"}{end}`)
		if err == nil && !strings.Contains(out, plan+"/") {
			err = errors.Errorf("they say: %s", out)
		}
		return err == nil, err
	})
}

// The example for files: a node in service gets the files of a Secret, once, and again when the Secret says something
// else, and never is cordoned (S1, S3, S7). The account of the runner can do nothing else there (S4).
func TestPlanOfFiles(t *testing.T) {
	w := inWorld(t)
	n := w.addDebian(t, realcluster.Debian{}, "", busybox)
	w.guest(t, n)
	around := w.watchAround(t, n)
	w.useExample(t, "files")
	w.care(t, n)
	_, m := w.awaitUpdated(t, n, "files", 1)
	assert.Equal(t, onNode(t, n, "/etc/example/example.conf"), "answer = 42\n")
	first := m.PlanDone["files"]
	assert.Assert(t, first != "")
	pods := w.planPods(t, n)
	assert.Equal(t, len(pods), 1)
	end := pods[0].Status.ContainerStatuses[0].State.Terminated
	assert.Assert(t, end != nil && end.Message == first, "the pod ended with %+v", end)
	w.told(t, n, "files")
	w.stealRunner(t, pods[0])

	// What is written anew and says the same is the same, for another runner too.
	_, err := w.Kubectl(t.Context(), "-n", kube.PlansNamespace, "annotate", "secret", "example-files", "example.com/touched=yes")
	assert.NilError(t, err)
	_, err = w.Kubectl(t.Context(), "-n", manifest.Namespace, "delete", "pod", "-l", manifest.LabelComponent+"="+manifest.Runner)
	assert.NilError(t, err)
	await(t, "another runner is Ready", func() (bool, error) { return w.allReady(t.Context()) })
	assert.Equal(t, len(w.planPods(t, n)), 1)
	_, err = w.Kubectl(t.Context(), "-n", kube.PlansNamespace, "patch", "secret", "example-files", "-p", `{"stringData":{"example.conf":"answer = 43\n"}}`)
	assert.NilError(t, err)
	await(t, "the changed file is there", func() (bool, error) {
		return onNode(t, n, "/etc/example/example.conf") == "answer = 43\n", nil
	})
	assert.Equal(t, len(w.planPods(t, n)), 2)
	around.check(t, "pod of files made", "pod of files made")
}

// The example for k3s: a node is cordoned and drained, gets another kubelet from a privileged pod, which the host's service
// manager starts, shows its version, and is back in service; nothing happens to the nodes and pods around it (S1, S2, S5,
// S7).
func TestPlanOfK3s(t *testing.T) {
	// The target is the example's.
	const before, after = "v1.35.4+k3s1", "v1.36.3+k3s1"
	w := inWorld(t)
	built, err := controlplane.Build(t.Context(), controlplane.Options{Groups: []controlplane.Group{controlplane.GroupNode},
		Kubelets: []string{before, after}, Progress: os.Stderr})
	assert.NilError(t, err)
	kubelet := func(version string) string { return filepath.Join(built.Dir, "kubelet-"+version) }
	n := w.addDebian(t, realcluster.Debian{Programs: map[string]string{"kubelet": kubelet(before)}}, "example.com/system=k3s", realcluster.System{
		Name: "rancher/k3s-upgrade:v1.36.3-k3s1", Programs: []string{"sh", "cp", "mv", "readlink"},
		Files: map[string]string{"bin/upgrade.sh": "plans/upgrade.sh", "opt/kubelet": kubelet(after)}, Entrypoint: []string{"/bin/upgrade.sh"},
	})
	w.guest(t, n)
	around := w.watchAround(t, n)
	had, _, err := w.marks(t.Context(), n.Name())
	assert.NilError(t, err)
	assert.Equal(t, had.Status.NodeInfo.KubeletVersion, before)
	w.plugin(t)
	w.useExample(t, "k3s")
	w.care(t, n)
	await(t, "the plugin says by which plan it goes where", func() (bool, error) {
		out, err := w.Kubectl(t.Context(), "bottlerocket", "plan")
		for line := range strings.Lines(out) {
			if strings.Contains(line, n.Name()) && strings.Contains(line, "k3s/"+after) {
				return true, nil
			}
		}
		return false, errors.Errorf("%v: %s", err, out)
	})
	has, _ := w.awaitUpdated(t, n, "k3s", 1)
	assert.Equal(t, has.Status.NodeInfo.KubeletVersion, after)
	assert.Equal(t, has.Status.NodeInfo.BootID, had.Status.NodeInfo.BootID)
	assert.Equal(t, len(w.planPods(t, n)), 1)
	w.told(t, n, "k3s")
	around.check(t, "cordoned", "guest gone", "pod of k3s made", "kubelet "+after, "uncordoned")
}

// The example for packages: a node whose host wants a boot after its packages is booted, and is back in service once it
// is; one whose host wants none isn't, and keeps the cordon that a user gave it (S2, S3, S5, S7).
func TestPlanOfPackages(t *testing.T) {
	w := inWorld(t)
	debian := realcluster.Debian{Programs: map[string]string{"apt-get": "plans/apt-get", "shutdown": "plans/shutdown"}}
	image := realcluster.System{Name: "debian:12-slim", Programs: []string{"sh", "chroot"}}
	host := func(kernel string) *realcluster.Node {
		n := w.addDebian(t, debian, "example.com/system=debian", image)
		_, err := n.Exec(t.Context(), nil, "sh", "-c", "echo "+kernel+" >/etc/kernel")
		assert.NilError(t, err)
		return n
	}
	const upgraded = "noninteractive apt-get -q update\nnoninteractive apt-get -q -y dist-upgrade\n"
	boots := host("old")
	w.guest(t, boots)
	around := w.watchAround(t, boots)
	w.useExample(t, "packages")
	w.care(t, boots)
	await(t, "its host is to boot", func() (bool, error) {
		out, err := boots.Exec(t.Context(), nil, "sh", "-c", "cat /var/log/calls || :")
		return strings.HasSuffix(out, "shutdown -r +1\n"), err
	})
	asked := time.Now()
	await(t, "the kubelet has reported the pod's end", func() (bool, error) {
		pods := w.planPods(t, boots)
		return len(pods) == 1 && pods[0].Status.Phase == corev1.PodSucceeded, nil
	})
	assert.Assert(t, time.Since(asked) < time.Minute, "the host would have booted before that")
	assert.NilError(t, boots.PowerOff(t.Context()))
	assert.NilError(t, boots.PowerOn(t.Context()))
	has, m := w.awaitUpdated(t, boots, "packages", 1)
	end := w.planPods(t, boots)[0].Status.ContainerStatuses[0].State.Terminated
	assert.Assert(t, end != nil && end.Message == m.PlanDone["packages"]+" reboot", "the pod ended with %+v", end)
	assert.Equal(t, has.Status.NodeInfo.BootID, boots.Host.BootID())
	assert.Equal(t, onNode(t, boots, "/var/log/calls"), upgraded+"shutdown -r +1\n")
	w.told(t, boots, "packages")
	around.check(t, "cordoned", "guest gone", "pod of packages made", "new boot", "uncordoned")

	stays := host("new")
	_, err := w.Kubectl(t.Context(), "cordon", stays.Name())
	assert.NilError(t, err)
	around = w.watchAround(t, stays)
	boot := stays.Host.BootID()
	w.care(t, stays)
	has, m = w.awaitUpdated(t, stays, "packages", 1)
	end = w.planPods(t, stays)[0].Status.ContainerStatuses[0].State.Terminated
	assert.Assert(t, end != nil && end.Message == m.PlanDone["packages"], "the pod ended with %+v", end)
	assert.Equal(t, has.Status.NodeInfo.BootID, boot)
	assert.Assert(t, has.Spec.Unschedulable, "a user had cordoned it")
	assert.Equal(t, onNode(t, stays, "/var/log/calls"), upgraded)
	around.check(t, "pod of packages made")
}

// plugin lets kubectl find the plugin of this checkout.
func (w *world) plugin(t *testing.T) {
	t.Helper()
	root, err := controlplane.Root()
	assert.NilError(t, err)
	dir := t.TempDir()
	assert.NilError(t, controlplane.Go(t.Context(), root, "build", "-buildvcs=false", "-trimpath", "-o", dir, "./cmd/kubectl-bottlerocket"))
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// stealRunner does what a thief of the runner's token would: each is refused by an admission policy, not by RBAC.
func (w *world) stealRunner(t *testing.T, made corev1.Pod) {
	t.Helper()
	config := rest.CopyConfig(w.Plane.AdminConfig())
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + manifest.Namespace + ":update-operator-runner",
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + manifest.Namespace, "system:authenticated"}}
	thief, err := kubernetes.NewForConfig(config)
	assert.NilError(t, err)
	refused := func(err error, policy string) {
		t.Helper()
		assert.ErrorContains(t, err, "ValidatingAdmissionPolicy '"+policy)
	}
	_, err = thief.CoreV1().Nodes().Patch(t.Context(), w.Nodes[0].Name(), types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"forged"}}}`, marker.KeyMessage), metav1.PatchOptions{})
	refused(err, "update-operator-runner'")
	_, err = thief.CoreV1().Nodes().Patch(t.Context(), made.Spec.NodeName, types.MergePatchType, []byte(`{"spec":{"unschedulable":true}}`), metav1.PatchOptions{})
	refused(err, "update-operator-runner'")
	own := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: made.Labels[kube.PlanLabel] + "-0123456789abcdef", Namespace: made.Namespace,
		Labels: made.Labels, Annotations: made.Annotations, Finalizers: made.Finalizers}, Spec: *made.Spec.DeepCopy()}
	own.Spec.Containers[0].Command = []string{"/bin/sh", "-c", "rm -r /host"}
	_, err = thief.CoreV1().Pods(own.Namespace).Create(t.Context(), own, metav1.CreateOptions{})
	refused(err, "update-operator-runner-")
}
