package plugin

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/preflight"
)

// installation is a real API server with update-operator.yaml applied, and with all that controllers and kubelets would
// write written by hand: two Bottlerocket nodes with their agents, and a node of another system.
type installation struct {
	t *testing.T
	// whole is the test that the installation is for, t the one that runs.
	whole      *testing.T
	client     kubernetes.Interface
	kubeconfig string
	kubectlBin string
	// through answers instead of the API server where it is not nil.
	through func(http.RoundTripper) http.RoundTripper
}

const manifestPath = "../../update-operator.yaml"

// kubectl runs the real one.
func (in *installation) kubectl(stdin string, args ...string) {
	in.t.Helper()
	cmd := exec.Command(in.kubectlBin, append([]string{"--kubeconfig", in.kubeconfig}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	assert.NilError(in.t, err, "%s", out)
}

// did takes what a request returned, and must not fail.
func did[T any](in *installation) func(value T, err error) T {
	return func(value T, err error) T {
		in.t.Helper()
		assert.NilError(in.t, err)
		return value
	}
}

func newInstallation(t *testing.T) *installation {
	t.Helper()
	plane := shared.Get(t)
	client, err := kubernetes.NewForConfig(plane.AdminConfig())
	assert.NilError(t, err)
	return &installation{t: t, whole: t, client: client, kubeconfig: plane.Kubeconfig(), kubectlBin: plane.Binaries().Kubectl}
}

// install applies the manifest, and makes everything well.
func (in *installation) install() {
	in.t.Helper()
	in.kubectl("", "apply", "-f", manifestPath)
	for _, name := range []string{"br-1", "br-2"} {
		in.node(name, "Bottlerocket OS 1.50.0 (aws-k8s-1.36)", map[string]string{"bottlerocket.aws/updater-interface-version": "2.0.0"})
		in.agent(name)
	}
	in.node("other-1", "Ubuntu 24.04", nil)
	ctx := in.t.Context()
	for _, name := range []string{"update-operator-controller", "update-operator-proxy"} {
		d := did[*appsv1.Deployment](in)(in.client.AppsV1().Deployments(kube.Namespace).Get(ctx, name, metav1.GetOptions{}))
		n := *d.Spec.Replicas
		d.Status = appsv1.DeploymentStatus{Replicas: n, ReadyReplicas: n, AvailableReplicas: n, UpdatedReplicas: n}
		did[*appsv1.Deployment](in)(in.client.AppsV1().Deployments(kube.Namespace).UpdateStatus(ctx, d, metav1.UpdateOptions{}))
	}
	did[*discoveryv1.EndpointSlice](in)(in.client.DiscoveryV1().EndpointSlices(kube.Namespace).Create(ctx, &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "update-operator-proxy-1", Labels: map[string]string{discoveryv1.LabelServiceName: "update-operator-proxy"}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}}}, metav1.CreateOptions{}))
	in.fillCA(authority(in.t, 90*24*time.Hour))
	in.lease(kube.Namespace, kube.LeaseName, "controller-1_8c0c", time.Now())
	in.t.Cleanup(func() {
		background := context.Background()
		assert.NilError(in.t, in.client.DiscoveryV1().EndpointSlices(kube.Namespace).Delete(background, "update-operator-proxy-1", metav1.DeleteOptions{}))
		assert.NilError(in.t, in.client.CoordinationV1().Leases(kube.Namespace).Delete(background, kube.LeaseName, metav1.DeleteOptions{}))
		for _, name := range []string{"update-operator-controller", "update-operator-proxy"} {
			assert.NilError(in.t, in.client.AppsV1().Deployments(kube.Namespace).Delete(background, name, metav1.DeleteOptions{}))
		}
		assert.NilError(in.t, in.client.AppsV1().DaemonSets(kube.Namespace).Delete(background, "update-operator-agent", metav1.DeleteOptions{}))
	})
}

func (in *installation) node(name, system string, labels map[string]string) {
	in.t.Helper()
	ctx := in.t.Context()
	n := did[*corev1.Node](in)(in.client.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{}))
	in.t.Cleanup(func() { _ = in.client.CoreV1().Nodes().Delete(context.Background(), name, metav1.DeleteOptions{}) })
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	n.Status.NodeInfo.OSImage, n.Status.NodeInfo.KubeletVersion, n.Status.NodeInfo.BootID = system, "v1.36.0", "3b2a1c00-boot"
	did[*corev1.Node](in)(in.client.CoreV1().Nodes().UpdateStatus(ctx, n, metav1.UpdateOptions{}))
	in.lease(corev1.NamespaceNodeLease, name, name, time.Now())
}

func (in *installation) lease(namespace, name, holder string, renewed time.Time) {
	in.t.Helper()
	ctx, leases := in.t.Context(), in.client.CoordinationV1().Leases(namespace)
	_, _ = in.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	_ = leases.Delete(ctx, name, metav1.DeleteOptions{})
	did[*coordinationv1.Lease](in)(leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: new(int32(45)), RenewTime: &metav1.MicroTime{Time: renewed}}}, metav1.CreateOptions{}))
}

// authority is a certificate that ends after a time.
func authority(t *testing.T, life time.Duration) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	assert.NilError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(life), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	assert.NilError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func (in *installation) fillCA(text string) {
	in.t.Helper()
	body, err := json.Marshal(map[string]any{"data": map[string]string{"ca.crt": text}})
	assert.NilError(in.t, err)
	did[*corev1.ConfigMap](in)(in.client.CoreV1().ConfigMaps(kube.Namespace).Patch(in.t.Context(), "update-operator-proxy-ca", types.MergePatchType, body, metav1.PatchOptions{}))
}

// agent makes an agent's pod on a node, Ready.
func (in *installation) agent(node string) {
	in.t.Helper()
	in.pod(kube.Namespace, "agent-"+node, node, map[string]string{"app.kubernetes.io/name": "bottlerocket-update-operator", "app.kubernetes.io/component": "agent"})
	in.agentSays(node, corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}})
}

func (in *installation) pod(namespace, name, node string, labels map[string]string, owners ...metav1.OwnerReference) {
	in.t.Helper()
	pods := in.client.CoreV1().Pods(namespace)
	did[*corev1.Pod](in)(pods.Create(in.t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, OwnerReferences: owners},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "image"}}}}, metav1.CreateOptions{}))
	in.whole.Cleanup(func() { in.deletePod(namespace, name) })
}

func (in *installation) deletePod(namespace, name string) {
	_ = in.client.CoreV1().Pods(namespace).Delete(context.Background(), name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
}

// agentSays gives the pod of a node's agent another status.
func (in *installation) agentSays(node string, status corev1.PodStatus) {
	in.t.Helper()
	p := did[*corev1.Pod](in)(in.client.CoreV1().Pods(kube.Namespace).Get(in.t.Context(), "agent-"+node, metav1.GetOptions{}))
	p.Status = status
	did[*corev1.Pod](in)(in.client.CoreV1().Pods(kube.Namespace).UpdateStatus(in.t.Context(), p, metav1.UpdateOptions{}))
}

func waiting(reason, message string) corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{Name: "main",
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}}
}

// event is one that a kubelet or a controller writes.
func (in *installation) event(kind, name, reason, message string) (undo func()) {
	in.t.Helper()
	events := in.client.CoreV1().Events(kube.Namespace)
	e := did[*corev1.Event](in)(events.Create(in.t.Context(), &corev1.Event{ObjectMeta: metav1.ObjectMeta{GenerateName: "e-"}, Type: "Warning", Reason: reason, Message: message,
		InvolvedObject: corev1.ObjectReference{Kind: kind, Name: name, Namespace: kube.Namespace}, LastTimestamp: metav1.Now()}, metav1.CreateOptions{}))
	return func() { assert.NilError(in.t, events.Delete(context.Background(), e.Name, metav1.DeleteOptions{})) }
}

// run runs the plugin by the real clock.
func (in *installation) run(args ...string) said {
	in.t.Helper()
	var out, errs bytes.Buffer
	p := newPlugin(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errs})
	if in.through != nil {
		p.flags.WrapConfigFn = func(c *rest.Config) *rest.Config {
			c.Wrap(in.through)
			return c
		}
	}
	status := p.run(in.t.Context(), append([]string{"--kubeconfig", in.kubeconfig}, args...))
	return said{out: out.String(), errs: errs.String(), status: status}
}

// check runs a check, and returns its findings by their check.
func (in *installation) check(args ...string) (map[preflight.Check][]preflight.Finding, said) {
	in.t.Helper()
	got := in.run(append([]string{"check", "-o", "json"}, args...)...)
	assert.Equal(in.t, got.errs, "")
	var result Check
	assert.NilError(in.t, json.Unmarshal([]byte(got.out), &result), got.out)
	found := map[preflight.Check][]preflight.Finding{}
	for _, f := range result.Findings {
		assert.Equal(in.t, f.Remedy == "", f.Verdict == preflight.VerdictOK, "%+v", f)
		found[f.Check] = append(found[f.Check], f)
	}
	for _, c := range preflight.Checks() {
		assert.Assert(in.t, len(found[c]) > 0, "%s says nothing", c)
	}
	assert.Equal(in.t, got.status, map[bool]int{false: 0, true: 1}[result.Summary[preflight.VerdictFail] > 0])
	return found, got
}

// A cluster without the operator is ready for it, and one where all is well has no fail and no warning. Each way to
// break it is named, with its remedy, and nothing else of it is wrong.
func TestCheckNamesWhatIsBroken(t *testing.T) {
	in := newInstallation(t)
	began := time.Now()
	found, got := in.check("-n", "not-there-yet")
	assert.Equal(t, got.status, 0, got.out)
	for _, c := range []preflight.Check{preflight.CheckNamespace, preflight.CheckController, preflight.CheckAgents, preflight.CheckCertificate, preflight.CheckAdmission} {
		assert.Equal(t, found[c][0].Verdict, preflight.VerdictAbsent, "%+v", found[c])
	}
	in.install()
	for check, all := range func() map[preflight.Check][]preflight.Finding { found, _ := in.check(); return found }() {
		assert.Equal(t, all[0].Verdict, preflight.VerdictOK, "%s: %+v", check, all)
	}
	table := in.run("check")
	assert.Assert(t, table.status == 0 && strings.HasSuffix(table.out, "\nAll is well: 30 ok\n"), table.out)
	for i, broken := range ways {
		t.Run(broken.name, func(t *testing.T) {
			in := *in
			in.t = t
			restore := sync.OnceFunc(broken.breaks(&in))
			defer restore()
			// An API server knows of rights and groups a moment later.
			var found map[preflight.Check][]preflight.Finding
			var got said
			in.until("the check "+string(broken.check)+" sees it", func() bool {
				found, got = in.check()
				return found[broken.check][0].Verdict == broken.verdict
			})
			first := found[broken.check][0]
			assert.Equal(t, first.Verdict, broken.verdict, "%+v", first)
			assert.Equal(t, got.status, map[preflight.Verdict]int{preflight.VerdictFail: 1, preflight.VerdictWarn: 0}[broken.verdict])
			assert.Assert(t, strings.Contains(first.Message, broken.message), "%q", first.Message)
			assert.Assert(t, strings.Contains(first.Remedy, broken.remedy), "%q", first.Remedy)
			for check, all := range found {
				if check != broken.check && !slices.Contains(broken.too, check) {
					assert.Equal(t, all[0].Verdict, preflight.VerdictOK, "%+v", all[0])
				}
			}
			restore()
			// That it is mended the next way sees, of which nothing else is wrong.
			if broken.late || i == len(ways)-1 {
				in.until("it is mended", func() bool {
					found, got = in.check()
					return found[broken.check][0].Verdict == preflight.VerdictOK && got.status == 0
				})
			}
		})
	}
	t.Logf("%d ways in %s", len(ways), time.Since(began))

	// The rights on the page are enough to know everything but what is a warning about themselves.
	c := &cluster{t: t, client: in.client, namespace: kube.Namespace}
	blocks := rights(t)
	c.grant(blocks[0], "checker")
	c.grant(blocks[4], "checker")
	in.until("the rights hold", func() bool { return in.run("check", "--as", "checker", "-o", "json").status == 0 })
	found, _ = in.check("--as", "checker")
	for check, all := range found {
		want := preflight.VerdictOK
		if check == preflight.CheckInstallRights || check == preflight.CheckCommandRights {
			want = preflight.VerdictWarn
		}
		assert.Equal(t, all[0].Verdict, want, "%s: %+v", check, all)
	}
	// With no rights at all nothing is taken for wrong, and each finding says which right is missing.
	found, got = in.check("--as", "visitor")
	assert.Equal(t, got.status, 0, got.out)
	for check, all := range found {
		switch check {
		case preflight.CheckAPIServer, preflight.CheckClock:
			assert.Equal(t, all[0].Verdict, preflight.VerdictOK, "%+v", all)
		case preflight.CheckInstallRights, preflight.CheckCommandRights:
			assert.Equal(t, all[0].Verdict, preflight.VerdictWarn, "%+v", all)
		default:
			assert.Equal(t, all[0].Verdict, preflight.VerdictUnknown, "%s: %+v", check, all)
			assert.Assert(t, strings.HasPrefix(all[0].Message, "you may not "), "%+v", all)
		}
	}
	assert.Equal(t, found[preflight.CheckKubelets][0].Message, "you may not list nodes")
}

// way is one in which a cluster is broken: breaks makes it so, and returns what mends it.
type way struct {
	name            string
	breaks          func(in *installation) func()
	check           preflight.Check
	verdict         preflight.Verdict
	message, remedy string
	// late: an API server knows a moment later that it is mended.
	late bool
	// too are checks that find something of the same.
	too []preflight.Check
}

// reapply is the remedy of much: it is typed as the check says.
func (in *installation) reapply() { in.kubectl("", "apply", "-f", manifestPath) }

func agentStatus(status corev1.PodStatus) func(in *installation) func() {
	return func(in *installation) func() {
		in.agentSays("br-2", status)
		return func() {
			in.agentSays("br-2", corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}})
		}
	}
}

var ways = []way{
	{name: "the binding of an admission policy is deleted", check: preflight.CheckAdmission, verdict: preflight.VerdictFail,
		message: "update-operator-proxy is not bound", remedy: "kubectl apply -f update-operator.yaml",
		breaks: func(in *installation) func() {
			assert.NilError(in.t, in.client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(in.t.Context(), "update-operator-proxy", metav1.DeleteOptions{}))
			return in.reapply
		}},
	{name: "a binding only warns", check: preflight.CheckAdmission, verdict: preflight.VerdictFail, message: "does Warn, and not Deny", remedy: "kubectl apply",
		breaks: func(in *installation) func() {
			act := func(actions string) {
				in.kubectl("", "patch", "validatingadmissionpolicybinding", "update-operator-controller", "--type=merge", "-p", `{"spec":{"validationActions":`+actions+`}}`)
			}
			act(`["Warn"]`)
			return func() { act(`["Deny","Audit"]`) }
		}},
	{name: "the namespace enforces baseline", check: preflight.CheckNamespace, verdict: preflight.VerdictFail,
		message: `enforces the pod security level "baseline"`, remedy: "kubectl label namespace bottlerocket pod-security.kubernetes.io/enforce=privileged --overwrite",
		breaks: func(in *installation) func() {
			in.kubectl("", "label", "namespace", "bottlerocket", "pod-security.kubernetes.io/enforce=baseline", "--overwrite")
			return func() {
				in.kubectl("", "label", "namespace", "bottlerocket", "pod-security.kubernetes.io/enforce=privileged", "--overwrite")
			}
		}},
	{name: "no proxy has filled the CA", check: preflight.CheckCertificate, verdict: preflight.VerdictFail, message: "has no ca.crt", remedy: "component=proxy",
		breaks: func(in *installation) func() {
			in.fillCA("")
			return func() { in.fillCA(authority(in.t, 90*24*time.Hour)) }
		}},
	{name: "the CA has ended", check: preflight.CheckCertificate, verdict: preflight.VerdictFail, message: "ended at", remedy: "component=proxy",
		breaks: func(in *installation) func() {
			in.fillCA(authority(in.t, -time.Minute))
			return func() { in.fillCA(authority(in.t, 90*24*time.Hour)) }
		}},
	{name: "the policy has a mistake", check: preflight.CheckPolicy, verdict: preflight.VerdictFail, message: "1 mistake: line 2: there is no field maxUnavailabel", remedy: "edit configmap update-policy",
		breaks: func(in *installation) func() {
			in.kubectl("", "-n", "bottlerocket", "create", "configmap", "update-policy", "--from-literal=policy.yaml=version: 1\nmaxUnavailabel: 1\n")
			return func() { in.kubectl("", "-n", "bottlerocket", "delete", "configmap", "update-policy") }
		}},
	{name: "a pause can't be read", check: preflight.CheckPauses, verdict: preflight.VerdictFail, message: "pauses everything", remedy: "delete configmap update-pause",
		breaks: func(in *installation) func() {
			in.kubectl("", "-n", "bottlerocket", "create", "configmap", "update-pause", "--from-literal=pauses.json=[]")
			return func() { in.kubectl("", "-n", "bottlerocket", "delete", "configmap", "update-pause") }
		}},
	{name: "another system has the label", check: preflight.CheckOtherSystems, verdict: preflight.VerdictFail, message: "1 node: other-1", remedy: "bottlerocket.aws/updater-interface-version-",
		too: []preflight.Check{preflight.CheckAgents}, breaks: func(in *installation) func() {
			in.kubectl("", "label", "node", "other-1", "bottlerocket.aws/updater-interface-version=2.0.0")
			return func() { in.kubectl("", "label", "node", "other-1", "bottlerocket.aws/updater-interface-version-") }
		}},
	{name: "the value of a label is unknown", check: preflight.CheckLabels, verdict: preflight.VerdictFail, message: "br-1 (2.0)", remedy: "bottlerocket.aws/updater-interface-version=2.0.0",
		breaks: func(in *installation) func() {
			in.kubectl("", "label", "node", "br-1", "--overwrite", "bottlerocket.aws/updater-interface-version=2.0")
			return func() {
				in.kubectl("", "label", "node", "br-1", "--overwrite", "bottlerocket.aws/updater-interface-version=2.0.0")
			}
		}},
	{name: "a Bottlerocket node has no label", check: preflight.CheckUnlabelled, verdict: preflight.VerdictWarn, message: "1 Bottlerocket node: br-3", remedy: "kubectl bottlerocket enroll",
		breaks: func(in *installation) func() {
			in.node("br-3", "Bottlerocket OS 1.50.0 (aws-k8s-1.36)", nil)
			return func() {
				assert.NilError(in.t, in.client.CoreV1().Nodes().Delete(context.Background(), "br-3", metav1.DeleteOptions{}))
			}
		}},
	{name: "the host has no socket", check: preflight.CheckAgents, verdict: preflight.VerdictFail, message: "1 node: br-2. The host has no API socket", remedy: "bottlerocket.aws/updater-interface-version-",
		breaks: func(in *installation) func() {
			mend := agentStatus(waiting("ContainerCreating", ""))(in)
			forget := in.event("Pod", "agent-br-2", "FailedMount", `MountVolume.SetUp failed for volume "host-api" : hostPath type check failed: /run/api.sock is not a socket file`)
			return func() { mend(); forget() }
		}},
	{name: "SELinux keeps an agent from the socket", check: preflight.CheckAgents, verdict: preflight.VerdictFail, message: "SELinux policy keeps it from the socket", remedy: "super_t",
		breaks: agentStatus(corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "main",
			State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 5m0s restarting failed container"}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 1, Message: "dial unix /run/api.sock: connect: permission denied"}}}}})},
	{name: "the image can't be pulled", check: preflight.CheckAgents, verdict: preflight.VerdictFail, message: "Its image can't be pulled: Back-off pulling image", remedy: "get daemonset update-operator-agent",
		breaks: agentStatus(waiting("ImagePullBackOff", `Back-off pulling image "public.ecr.aws/x:v2.0.0"`))},
	{name: "an agent crashes", check: preflight.CheckAgents, verdict: preflight.VerdictFail, message: "It crashes again and again: flag -node-name is empty", remedy: "logs --previous",
		breaks: agentStatus(corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "main",
			State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off"}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 2, Message: "flag -node-name is empty"}}}}})},
	{name: "pods of agents are refused", check: preflight.CheckAgents, verdict: preflight.VerdictFail, message: "The namespace's pod security level refuses the pod", remedy: "enforce=privileged",
		breaks: func(in *installation) func() {
			in.deletePod(kube.Namespace, "agent-br-1")
			forget := in.event("DaemonSet", "update-operator-agent", "FailedCreate", `Error creating: pods "update-operator-agent-x" is forbidden: violates PodSecurity "baseline:latest": hostPath volumes (volume "host-api")`)
			return func() { in.agent("br-1"); forget() }
		}},
	{name: "the controller's rights are gone", check: preflight.CheckAccountRights, late: true, verdict: preflight.VerdictFail, message: "update-operator-controller lacks", remedy: "kubectl apply -f update-operator.yaml",
		breaks: func(in *installation) func() {
			bindings := in.client.RbacV1().ClusterRoleBindings()
			b := did[*rbacv1.ClusterRoleBinding](in)(bindings.Get(in.t.Context(), "update-operator-controller", metav1.GetOptions{}))
			assert.NilError(in.t, bindings.Delete(in.t.Context(), b.Name, metav1.DeleteOptions{}))
			return func() {
				b.ResourceVersion = ""
				did[*rbacv1.ClusterRoleBinding](in)(bindings.Create(in.t.Context(), b, metav1.CreateOptions{}))
			}
		}},
	{name: "the agents' account may write nodes", check: preflight.CheckAgentRights, late: true, verdict: preflight.VerdictFail, message: "has 10 rights: get nodes", remedy: "kubectl get clusterrolebindings",
		breaks: func(in *installation) func() {
			did[*rbacv1.ClusterRoleBinding](in)(in.client.RbacV1().ClusterRoleBindings().Create(in.t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "update-operator-agent"},
				RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:node"},
				Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: kube.Namespace, Name: "update-operator-agent"}}}, metav1.CreateOptions{}))
			return func() {
				assert.NilError(in.t, in.client.RbacV1().ClusterRoleBindings().Delete(context.Background(), "update-operator-agent", metav1.DeleteOptions{}))
			}
		}},
	{name: "a budget never lets a pod go", check: preflight.CheckBudgets, verdict: preflight.VerdictFail, message: "1 PodDisruptionBudget: default/never", remedy: "edit poddisruptionbudget",
		breaks: func(in *installation) func() {
			in.pod("default", "web-1", "br-1", map[string]string{"app": "web"}, metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "1", Controller: new(true)})
			budgets := in.client.PolicyV1().PodDisruptionBudgets("default")
			b := did[*policyv1.PodDisruptionBudget](in)(budgets.Create(in.t.Context(), &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "never"},
				Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}, metav1.CreateOptions{}))
			b.Status = policyv1.PodDisruptionBudgetStatus{ExpectedPods: 1, CurrentHealthy: 1, DesiredHealthy: 1}
			did[*policyv1.PodDisruptionBudget](in)(budgets.UpdateStatus(in.t.Context(), b, metav1.UpdateOptions{}))
			return func() {
				assert.NilError(in.t, budgets.Delete(context.Background(), "never", metav1.DeleteOptions{}))
				in.deletePod("default", "web-1")
			}
		}},
	{name: "a pod has no controller", check: preflight.CheckBarePods, verdict: preflight.VerdictWarn, message: "1 pod: default/bare", remedy: "drain.unmanagedPods",
		breaks: func(in *installation) func() {
			in.pod("default", "bare", "br-1", nil)
			return func() { in.deletePod("default", "bare") }
		}},
	{name: "a Deployment has one replica", check: preflight.CheckSingleReplicas, verdict: preflight.VerdictWarn, message: "1 workload: Deployment default/single", remedy: "--replicas=2",
		breaks: func(in *installation) func() {
			in.pod("default", "single-5d9f-1", "br-1", map[string]string{"pod-template-hash": "5d9f"}, metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "single-5d9f", UID: "1", Controller: new(true)})
			in.kubectl("", "create", "deployment", "single", "--image=x")
			return func() {
				in.kubectl("", "delete", "deployment", "single")
				in.deletePod("default", "single-5d9f-1")
			}
		}},
	{name: "Brupop is there", late: true, check: preflight.CheckOtherUpdaters, verdict: preflight.VerdictFail, message: "Brupop is installed: the API has the group", remedy: "kubectl get brs -A",
		breaks: func(in *installation) func() {
			in.kubectl(brupopCRD, "create", "-f", "-")
			in.kubectl("", "wait", "--for=condition=Established", "crd/bottlerocketshadows.brupop.bottlerocket.aws")
			return func() {
				in.kubectl("", "delete", "crd", "bottlerocketshadows.brupop.bottlerocket.aws")
				in.until("the group is gone", func() bool {
					body, err := in.client.Discovery().RESTClient().Get().AbsPath("/apis").SetHeader("Accept", "application/json").Do(in.t.Context()).Raw()
					return err == nil && !strings.Contains(string(body), "brupop")
				})
			}
		}},
	{name: "the first operator is there", check: preflight.CheckOtherUpdaters, verdict: preflight.VerdictFail, message: "the 0.1.x operator is installed: DaemonSet default/update-operator-agent-updog", remedy: "docs/migration.md",
		breaks: daemonSet("update-operator-agent-updog")},
	{name: "kured is there", check: preflight.CheckOtherUpdaters, verdict: preflight.VerdictWarn, message: "kured is installed: DaemonSet default/kured", remedy: "nodeAffinity", breaks: daemonSet("kured")},
	{name: "no controller leads", check: preflight.CheckLeader, verdict: preflight.VerdictFail, message: "controller-1 renewed the Lease update-operator-controller last", remedy: "docs/runbooks/no-leader.md",
		breaks: func(in *installation) func() {
			in.lease(kube.Namespace, kube.LeaseName, "controller-1_8c0c", time.Now().Add(-5*time.Minute))
			return func() { in.lease(kube.Namespace, kube.LeaseName, "controller-1_8c0c", time.Now()) }
		}},
	{name: "a node's clock is off", check: preflight.CheckNodeClocks, verdict: preflight.VerdictWarn, message: "br-2 (10m", remedy: "chronyc",
		breaks: func(in *installation) func() {
			in.lease(corev1.NamespaceNodeLease, "br-2", "br-2", time.Now().Add(10*time.Minute))
			return func() { in.lease(corev1.NamespaceNodeLease, "br-2", "br-2", time.Now()) }
		}},
	{name: "an annotation can't be read", check: preflight.CheckAnnotations, verdict: preflight.VerdictFail, message: "bottlerocket.aws/disruption", remedy: "kubectl annotate node NODE",
		breaks: func(in *installation) func() {
			in.kubectl("", "annotate", "node", "br-1", "bottlerocket.aws/disruption={")
			return func() {
				in.kubectl("", "annotate", "node", "br-1", "bottlerocket.aws/disruption-")
			}
		}},
}

func daemonSet(name string) func(in *installation) func() {
	return func(in *installation) func() {
		sets, labels := in.client.AppsV1().DaemonSets("default"), map[string]string{"app": "x"}
		did[*appsv1.DaemonSet](in)(sets.Create(in.t.Context(), &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "x"}}}}}}, metav1.CreateOptions{}))
		return func() { assert.NilError(in.t, sets.Delete(context.Background(), name, metav1.DeleteOptions{})) }
	}
}

// until awaits what the API server does a moment later.
func (in *installation) until(what string, so func() bool) {
	in.t.Helper()
	err := wait.PollUntilContextTimeout(in.t.Context(), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) { return so(), nil })
	assert.NilError(in.t, err, what)
}

const brupopCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: bottlerocketshadows.brupop.bottlerocket.aws}
spec:
  group: brupop.bottlerocket.aws
  scope: Namespaced
  names: {plural: bottlerocketshadows, singular: bottlerocketshadow, kind: BottlerocketShadow}
  versions:
  - {name: v2, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`
