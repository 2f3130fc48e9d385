package nodesim

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
	"gotest.tools/v3/assert"
	"gotest.tools/v3/poll"
	appsv1 "k8s.io/api/apps/v1"
	authnv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	namespace = "bottlerocket"
	audience  = "door"
	// grace is how long the controller manager believes in a silent node.
	grace = 4 * time.Second
)

// script stands in for an agent: it leaves its process id and its view of the
// pod's volumes, and runs until it is told to end.
const script = `trap 'exit 0' TERM; cp "$1" "$2/token"; cat "$3" > "$2/ca"; echo $$ > "$2/pid"; while :; do sleep 0.05; done`

var cluster = controlplane.Shared{Config: controlplane.Config{
	ControllerManager: true, Scheduler: true, NodeMonitorGracePeriod: grace,
}}

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// rigs counts the rigs: a controller manager takes a new object for the one of
// the same name that it has just seen go, so no name is used twice.
var rigs atomic.Int32

type rig struct {
	*testing.T
	serial string
	ctx    context.Context
	cp     *controlplane.ControlPlane
	client kubernetes.Interface
	fleet  *Fleet
}

func newRig(t *testing.T) *rig {
	r := &rig{T: t, serial: strconv.Itoa(int(rigs.Add(1))), ctx: context.Background(), cp: cluster.Get(t)}
	var err error
	r.client, err = kubernetes.NewForConfig(r.cp.AdminConfig())
	assert.NilError(t, err)
	r.fleet, err = New(r.ctx, r.cp, Config{
		Namespace:     namespace,
		LeaseDuration: 4 * time.Second,
		Command: func(p Pod) (Command, error) {
			token, err := p.Path("/var/run/secrets/door/token")
			if err != nil {
				return Command{}, err
			}
			ca, err := p.Path("/etc/ca/ca.crt")
			if err != nil {
				return Command{}, err
			}
			return Command{Path: "/bin/sh", Args: []string{"-c", script, "agent", token, p.Dir, ca}}, nil
		},
	})
	assert.NilError(t, err)
	t.Cleanup(func() {
		for _, m := range r.fleet.Machines() {
			assert.Check(t, r.fleet.Delete(r.ctx, m.Name()))
		}
		r.fleet.Close()
	})
	return r
}

// named makes a name this rig's own.
func (r *rig) named(name string) string { return name + "-" + r.serial }

func (r *rig) add(name string, labels map[string]string) *Machine {
	r.Helper()
	repo := &hostsim.Repo{}
	m, err := r.fleet.Add(r.ctx, MachineConfig{Name: r.named(name), Labels: labels, Host: hostsim.Config{Version: "1.26.1", Repo: repo}})
	assert.NilError(r, err)
	return m
}

func (r *rig) node(name string) *corev1.Node {
	r.Helper()
	n, err := r.client.CoreV1().Nodes().Get(r.ctx, r.named(name), metav1.GetOptions{})
	assert.NilError(r, err)
	return n
}

// await polls until what it waits for is there.
func (r *rig) await(what string, there func() bool) {
	r.Helper()
	poll.WaitOn(r, func(poll.LogT) poll.Result {
		if there() {
			return poll.Success()
		}
		return poll.Continue("waiting for %s", what)
	}, poll.WithTimeout(40*time.Second), poll.WithDelay(20*time.Millisecond))
}

func readyCondition(n *corev1.Node) corev1.NodeCondition {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c
		}
	}
	return corev1.NodeCondition{}
}

// daemonSet is an agent's, with a token of its own audience and the authority.
func (r *rig) daemonSet() {
	r.Helper()
	_, err := r.client.CoreV1().Namespaces().Create(r.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	assert.Assert(r, err == nil || apierrors.IsAlreadyExists(err), "%v", err)
	assert.NilError(r, r.cp.AwaitNamespace(r.ctx, r.client, namespace))
	name := r.named("agent")
	labels := map[string]string{"app": name}
	_, err = r.client.AppsV1().DaemonSets(namespace).Create(r.ctx, &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					NodeSelector: map[string]string{"managed": r.serial},
					Containers: []corev1.Container{{Name: "agent", Image: "agent", VolumeMounts: []corev1.VolumeMount{
						{Name: "token", MountPath: "/var/run/secrets/door"}, {Name: "ca", MountPath: "/etc/ca"},
					}}},
					Volumes: []corev1.Volume{
						{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
							{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: audience, Path: "token", ExpirationSeconds: new(int64(600))}},
						}}}},
						{Name: "ca", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}}}},
					},
				},
			},
		},
	}, metav1.CreateOptions{})
	assert.NilError(r, err)
	r.Cleanup(func() {
		assert.Check(r, r.client.AppsV1().DaemonSets(namespace).Delete(r.ctx, name, metav1.DeleteOptions{}))
	})
}

// agent is the ready pod of the agent on a node.
func (r *rig) agent(node string) *corev1.Pod {
	r.Helper()
	var found *corev1.Pod
	r.await("a ready agent on "+node, func() bool {
		l, err := r.client.CoreV1().Pods(namespace).List(r.ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + r.named(node)})
		if err != nil {
			return false
		}
		for i := range l.Items {
			if Serving(&l.Items[i]) {
				found = &l.Items[i]
			}
		}
		return found != nil
	})
	return found
}

func (r *rig) fileOf(m *Machine, pod *corev1.Pod, name string) string {
	r.Helper()
	var b []byte
	r.await("file "+name, func() bool {
		var err error
		b, err = os.ReadFile(filepath.Join(m.dir, string(pod.UID), name))
		return err == nil && len(b) > 0
	})
	return strings.TrimSpace(string(b))
}

func (r *rig) pid(m *Machine, pod *corev1.Pod) int {
	r.Helper()
	pid, err := strconv.Atoi(r.fileOf(m, pod, "pid"))
	assert.NilError(r, err)
	return pid
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func TestAMachinesLife(t *testing.T) {
	r := newRig(t)
	r.daemonSet()
	managed := map[string]string{"managed": r.serial}
	one, two := r.add("one", managed), r.add("two", managed)

	node := r.node("one")
	assert.Assert(t, Ready(node))
	assert.Equal(t, node.Status.NodeInfo.BootID, one.Host().BootID())
	assert.Equal(t, node.Status.NodeInfo.OSImage, "Bottlerocket OS 1.26.1 (aws-k8s-1.31)")
	assert.Equal(t, node.Status.NodeInfo.KubeletVersion, r.cp.Binaries().Version)

	pod := r.agent("one")
	r.agent("two")
	assert.Assert(t, strings.Contains(r.fileOf(one, pod, "ca"), "BEGIN CERTIFICATE"))
	review, err := r.client.AuthenticationV1().TokenReviews().Create(r.ctx, &authnv1.TokenReview{
		Spec: authnv1.TokenReviewSpec{Token: r.fileOf(one, pod, "token"), Audiences: []string{audience}},
	}, metav1.CreateOptions{})
	assert.NilError(t, err)
	assert.Assert(t, review.Status.Authenticated, review.Status.Error)
	assert.DeepEqual(t, review.Status.User.Extra["authentication.kubernetes.io/node-name"], authnv1.ExtraValue{one.Name()})
	assert.DeepEqual(t, review.Status.User.Extra["authentication.kubernetes.io/node-uid"], authnv1.ExtraValue{string(node.UID)})

	t.Run("a quick reboot leaves Ready as it was", func(t *testing.T) {
		before, pid := r.node("one"), r.pid(one, pod)
		assert.NilError(t, one.Reboot(r.ctx, 0))
		after := r.node("one")
		assert.Assert(t, before.Status.NodeInfo.BootID != after.Status.NodeInfo.BootID)
		assert.Equal(t, after.Status.NodeInfo.BootID, one.Host().BootID())
		file, err := os.ReadFile(one.BootIDFile())
		assert.NilError(t, err)
		assert.Equal(t, strings.TrimSpace(string(file)), one.Host().BootID())
		assert.DeepEqual(t, readyCondition(before).LastTransitionTime, readyCondition(after).LastTransitionTime)
		assert.Assert(t, !alive(pid), "a process outlived the reboot")
		r.await("the agent's restart", func() bool {
			p := r.agent("one")
			return p.UID == pod.UID && p.Status.ContainerStatuses[0].RestartCount == 1
		})
	})

	t.Run("a shutdown says NotReady before", func(t *testing.T) {
		one.SetReboot(Reboot{Mode: RebootShutdown})
		observed := make(chan string, 16)
		ctx, cancel := context.WithCancel(r.ctx)
		defer cancel()
		w, err := r.client.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + one.Name(), ResourceVersion: r.node("one").ResourceVersion})
		assert.NilError(t, err)
		go func() {
			for e := range w.ResultChan() {
				if n, ok := e.Object.(*corev1.Node); ok {
					c := readyCondition(n)
					observed <- string(c.Status) + " " + c.Reason + " " + n.Status.NodeInfo.BootID
				}
			}
		}()
		before := one.Host().BootID()
		assert.NilError(t, one.Reboot(r.ctx, 0))
		want := []string{"False KubeletNotReady " + before, "True KubeletReady " + one.Host().BootID()}
		for len(want) > 0 {
			select {
			case got := <-observed:
				if got == want[0] {
					want = want[1:]
				}
			case <-time.After(20 * time.Second):
				t.Fatalf("never seen: %q", want[0])
			}
		}
	})

	t.Run("a machine without power is missed after a while", func(t *testing.T) {
		pid := r.pid(two, r.agent("two"))
		version := r.node("two").ResourceVersion
		two.PowerOff()
		assert.Equal(t, r.node("two").ResourceVersion, version, "a power cut wrote to the Node")
		assert.Assert(t, !alive(pid))
		_, err := os.Stat(two.Socket())
		assert.Assert(t, os.IsNotExist(err))
		r.await("the node to be missed", func() bool { return readyCondition(r.node("two")).Status == corev1.ConditionUnknown })
		assert.NilError(t, two.PowerOn(r.ctx))
		assert.Assert(t, Ready(r.node("two")))
		r.agent("two")
	})

	t.Run("a process that ends is started again", func(t *testing.T) {
		p := r.agent("one")
		assert.NilError(t, syscall.Kill(r.pid(one, p), syscall.SIGKILL))
		r.await("its restart", func() bool {
			return r.agent("one").Status.ContainerStatuses[0].RestartCount > p.Status.ContainerStatuses[0].RestartCount
		})
	})

	t.Run("a deleted pod's process ends before the pod", func(t *testing.T) {
		p := r.agent("one")
		pid := r.pid(one, p)
		assert.NilError(t, r.client.CoreV1().Pods(namespace).Delete(r.ctx, p.Name, metav1.DeleteOptions{}))
		r.await("the pod to go", func() bool {
			_, err := r.client.CoreV1().Pods(namespace).Get(r.ctx, p.Name, metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
		assert.Assert(t, !alive(pid))
		r.agent("one")
	})

	t.Run("a machine goes with its Node", func(t *testing.T) {
		pid := r.pid(two, r.agent("two"))
		assert.NilError(t, r.client.CoreV1().Nodes().Delete(r.ctx, two.Name(), metav1.DeleteOptions{}))
		r.await("the machine to end", func() bool { return r.fleet.Machine(two.Name()) == nil && !two.Up() && !alive(pid) })
	})
}

func TestAHostThatAcceptsARebootTakesItsMachineDown(t *testing.T) {
	r := newRig(t)
	m := r.add("three", nil)
	before := m.Host().BootID()
	host := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", m.Socket())
	}}}
	answer, err := host.Post("http://localhost/actions/reboot", "", nil)
	assert.NilError(t, err)
	answer.Body.Close()
	assert.Equal(t, answer.StatusCode, http.StatusNoContent)
	r.await("the new boot in the API", func() bool {
		now := r.node("three").Status.NodeInfo.BootID
		return now != before && now == m.Host().BootID()
	})
	assert.Equal(t, m.Host().Snapshot().Counters.Boots, 1)
}

// F18 of the host simulator: the host boots, and its kubelet doesn't report it until the fault is gone. A fault of
// another version than the one that booted keeps nothing away.
func TestAKubeletThatStaysAway(t *testing.T) {
	r := newRig(t)
	m := r.add("four", nil)
	assert.NilError(t, m.Host().SetFaults(hostsim.Fault{ID: hostsim.F18, Version: "1.27.0"}))
	assert.NilError(t, m.Reboot(r.ctx, 0))
	before := m.Host().BootID()
	assert.Equal(t, r.node("four").Status.NodeInfo.BootID, before)

	assert.NilError(t, m.Host().SetFaults(hostsim.Fault{ID: hostsim.F18, Version: "1.26.1"}))
	assert.NilError(t, m.Reboot(r.ctx, 0))
	assert.Assert(t, m.Host().BootID() != before)
	r.await("the node to be missed", func() bool { return !Ready(r.node("four")) })
	assert.Equal(t, r.node("four").Status.NodeInfo.BootID, before)

	assert.NilError(t, m.Host().SetFaults())
	r.await("the kubelet to come", func() bool {
		return Ready(r.node("four")) && r.node("four").Status.NodeInfo.BootID == m.Host().BootID()
	})
}

func TestWorkloadSeesItsBudgetBroken(t *testing.T) {
	r := newRig(t)
	r.add("four", nil)
	r.add("five", nil)
	watched := Observe(r.ctx, r.client)
	defer watched.Close()
	ctx, cancel := context.WithTimeout(r.ctx, 40*time.Second)
	defer cancel()
	w, err := StartWorkload(ctx, r.client, WorkloadConfig{Name: r.named("web"), Replicas: 4, MaxUnavailable: 1})
	assert.NilError(t, err)
	defer w.Close()
	assert.Equal(t, w.MinReady(), 4)
	assert.Assert(t, w.Held())
	pods, err := r.client.CoreV1().Pods("default").List(r.ctx, metav1.ListOptions{LabelSelector: "app=" + r.named("web")})
	assert.NilError(t, err)
	for _, p := range pods.Items[:2] {
		assert.NilError(t, r.client.CoreV1().Pods("default").Delete(r.ctx, p.Name, metav1.DeleteOptions{}))
	}
	r.await("new pods", func() bool { return w.MinReady() < 4 && w.Ready() == 4 })
	for _, name := range []string{"four", "five"} {
		_, err := r.client.CoreV1().Nodes().Patch(r.ctx, r.named(name), "application/merge-patch+json", []byte(`{"spec":{"unschedulable":true}}`), metav1.PatchOptions{})
		assert.NilError(t, err)
	}
	r.await("two cordons", func() bool { return watched.MaxUnschedulable() == 2 })
	assert.NilError(t, r.client.AppsV1().Deployments("default").Delete(r.ctx, r.named("web"), metav1.DeleteOptions{}))
	assert.NilError(t, r.client.PolicyV1().PodDisruptionBudgets("default").Delete(r.ctx, r.named("web"), metav1.DeleteOptions{}))
}
