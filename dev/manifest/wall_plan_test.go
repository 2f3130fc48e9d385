package manifest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

const (
	// plansFile is applied beside the manifest, and plansNamespace is where it has pods and templates.
	plansFile      = "plans"
	plansNamespace = "bottlerocket-plans"
	// planTargets is the ConfigMap that the runner writes.
	planTargets   = "plan-targets"
	planDigest    = "0123456789abcdef"
	planFinalizer = "bottlerocket.aws/plan"
	// victimPod is in the namespace of plans already.
	victimPod = "victim"
	// barePod is too, and has no finalizer.
	barePod = "bare"
)

// planTemplates are PodTemplates of each kind that plans are expected to have, by the plan. The target of each is its
// second value.
var planTemplates = map[string]struct{ target, template string }{
	// As https://github.com/rancher/k3s-upgrade needs it.
	"k3s": {"v1.36.3+k3s1", `
metadata:
  labels: {app: k3s, topology.kubernetes.io/region: overwritten}
  annotations: {example.com/why: upgrade}
spec:
  serviceAccountName: upgrader
  automountServiceAccountToken: true
  hostPID: true
  hostIPC: true
  nodeSelector: {kubernetes.io/os: linux}
  imagePullSecrets: [{name: registry}]
  priorityClassName: system-node-critical
  tolerations: [{key: a, operator: Exists, effect: NoSchedule}, {operator: Exists}]
  initContainers:
    - {name: wait, image: "example.com/wait:1", command: [sh, -c, "true"]}
  containers:
    - name: upgrade
      image: example.com/rancher/k3s-upgrade:TARGET_VERSION
      args: [upgrade]
      env:
        - {name: TARGET, valueFrom: {fieldRef: {fieldPath: "metadata.annotations['bottlerocket.aws/target']"}}}
        - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
      securityContext: {privileged: true, capabilities: {add: [CAP_SYS_BOOT]}, appArmorProfile: {type: Unconfined}}
      resources: {limits: {cpu: 500m, memory: 256Mi}, requests: {cpu: 100m}}
      volumeMounts: [{name: host, mountPath: /host, mountPropagation: Bidirectional}]
  volumes: [{name: host, hostPath: {path: /, type: Directory}}]
`},
	"files": {"", `
spec:
  hostNetwork: true
  dnsPolicy: ClusterFirstWithHostNet
  terminationGracePeriodSeconds: 5
  securityContext: {runAsUser: 0, seLinuxOptions: {type: super_t}}
  containers:
    - name: copy
      image: example.com/copy@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
      imagePullPolicy: Always
      terminationMessagePolicy: FallbackToLogsOnError
      ports: [{containerPort: 9090}, {name: dns, containerPort: 53, protocol: UDP}]
      envFrom: [{configMapRef: {name: files}}]
      env: [{name: KEY, valueFrom: {secretKeyRef: {name: keys, key: k}}}]
      volumeMounts: [{name: files, mountPath: /files, readOnly: true}, {name: keys, mountPath: /keys}, {name: all, mountPath: /all}, {name: etc, mountPath: /etc/it}]
      livenessProbe: {httpGet: {path: /, port: 9090}}
      lifecycle: {preStop: {exec: {command: [sync]}}}
    - {name: beside, image: "example.com/beside"}
  volumes:
    - {name: files, configMap: {name: files}}
    - {name: keys, secret: {secretName: keys, items: [{key: k, path: k}]}}
    - {name: etc, hostPath: {path: /etc/it, type: DirectoryOrCreate}}
    - name: all
      projected:
        sources:
          - configMap: {name: files}
          - secret: {name: keys}
          - downwardAPI: {items: [{path: target, fieldRef: {fieldPath: "metadata.annotations['bottlerocket.aws/target']"}}]}
          - serviceAccountToken: {path: token, audience: elsewhere}
`},
	"kernel": {"6.12.40-63.114", `
spec:
  containers: [{name: patch, image: "example.com/patch:1"}]
`},
	"runtime": {"containerd://2.1.5", `
spec:
  runtimeClassName: heavy
  enableServiceLinks: false
  resources: {limits: {cpu: "1", memory: 512Mi, hugepages-2Mi: 4Mi}, requests: {cpu: 900m}}
  overhead: {cpu: 100m}
  containers:
    - {name: one, image: "example.com/one:TARGET_VERSION", resources: {limits: {memory: 64Mi, hugepages-2Mi: 2Mi}}}
    - {name: two, image: "example.com/two:TARGET_VERSION", resources: {requests: {cpu: "0.5"}}, ports: [{containerPort: 80}]}
  volumes: [{name: scratch, emptyDir: {sizeLimit: 1Gi}}]
`},
}

// planWall is both manifests on a real API server. It has the ServiceAccount admission and what makes its accounts, which
// the other walls do without.
type planWall struct {
	*wall
	// thief may do anything by RBAC, under the runner's name in the namespace lair; runner is the account itself.
	thief, runner kubernetes.Interface
	// text is the policy.
	text string
	// honest are the pods that nodes asked for when they were looked at for attacks.
	honest map[string]*corev1.Pod
}

const lair = "lair"

// The nodes of plans, by what is odd about each.
const (
	// The intent stands, the node is busy with it and cordoned. It is the first part of the names of one node for each of
	// planTemplates.
	busyNode = "busy-"
	// The same without a cordon, with an intent of which drain is false, and of which the action is another.
	freeNode, preparingNode = "free", "preparing"
	// What no pod may be made for.
	uncordonedNode, idleNode, staleNode, answeredNode, lateNode = "uncordoned", "idle", "stale", "answered", "late"
	templatelessNode, stabilizingNode, absentNode, unnamedNode  = "templateless", "stabilizing", "absent-template", "unnamed-template"
	// Without the label of plans.
	updateAPINode = "update-api"
)

func newPlanWall(t *testing.T) *planWall {
	t.Helper()
	w := &planWall{wall: &wall{cp: controlplane.ForTest(t, controlplane.Config{ControllerManager: true}), users: map[string]kubernetes.Interface{}, namespace: Namespace, label: string(fleet.InterfacePlan)}}
	var err error
	w.admin, err = kubernetes.NewForConfig(w.cp.AdminConfig())
	assert.NilError(t, err)
	w.apply(t, moved(t, Namespace))
	w.apply(t, string(further(t, plansFile)))
	config, err := w.cp.UserConfig("system:serviceaccount:"+Namespace+":update-operator-runner", "system:serviceaccounts", "system:serviceaccounts:"+Namespace, "system:authenticated")
	assert.NilError(t, err)
	w.runner, err = kubernetes.NewForConfig(config)
	assert.NilError(t, err)
	w.apply(t, `
apiVersion: v1
kind: Namespace
metadata: {name: lair}
---
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: heavy}
handler: heavy
overhead: {podFixed: {cpu: 100m}}
scheduling: {nodeSelector: {heavy: "true"}, tolerations: [{key: heavy, operator: Exists}]}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: upgrader, namespace: bottlerocket-plans}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: update-state, namespace: bottlerocket}
---
apiVersion: v1
kind: LimitRange
metadata: {name: some, namespace: bottlerocket-plans}
spec: {limits: [{type: Container, default: {ephemeral-storage: 1Gi}, defaultRequest: {cpu: 5m}}]}
`)
	await(t, "the account is there", func() bool {
		_, err := w.admin.CoreV1().ServiceAccounts(plansNamespace).Patch(t.Context(), "default", types.MergePatchType, []byte(`{"imagePullSecrets":[{"name":"all"}]}`), metav1.PatchOptions{})
		return err == nil
	})
	w.text = "version: 1\nplans:\n  - name: unnamed\n    apply: other\n"
	for name, p := range planTemplates {
		template := &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Name: name}}
		assert.NilError(t, yaml.UnmarshalStrict([]byte(p.template), &template.Template))
		_, err := w.admin.CoreV1().PodTemplates(plansNamespace).Create(t.Context(), template, metav1.CreateOptions{FieldValidation: "Strict"})
		assert.NilError(t, err)
		w.text += fmt.Sprintf("  - name: %s\n    apply: %[1]s\n", name)
	}
	unnamed := &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Name: "unnamed"}}
	assert.NilError(t, yaml.Unmarshal([]byte(planTemplates["kernel"].template), &unnamed.Template))
	_, err = w.admin.CoreV1().PodTemplates(plansNamespace).Create(t.Context(), unnamed, metav1.CreateOptions{})
	assert.NilError(t, err)
	w.plans(t, w.text)
	w.fill(t)
	w.fillPlans(t)
	w.thief = w.almighty(t, lair, Runner)
	return w
}

// plans writes the policy.
func (w *planWall) plans(t *testing.T, text string) {
	t.Helper()
	maps := w.admin.CoreV1().ConfigMaps(Namespace)
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: kube.PolicyConfigMap}, Data: map[string]string{kube.PolicyKey: text}}
	_, err := maps.Update(t.Context(), o, metav1.UpdateOptions{})
	if err != nil {
		_, err = maps.Create(t.Context(), o, metav1.CreateOptions{})
	}
	assert.NilError(t, err)
}

// planMarks are those of a node that is busy with the reboot of a plan, and the time until which it may begin.
func planMarks(plan string) marker.Marks {
	now := time.Now()
	digest := planDigest
	m := marker.Marks{
		Intent: marker.Intent{ID: "id-" + plan, Action: marker.ActionRebootUpdate, Time: now, Until: now.Add(time.Hour), RebootFrom: "boot", Template: plan,
			Target: marker.PlanVersion(plan, planTemplates[plan].target, digest)},
		Plan: &marker.Plan{Name: plan, Digest: digest, Proof: marker.ProofKubelet, Effect: marker.EffectRestart, Drain: marker.DrainAll, Apply: plan, Deadline: (30 * time.Minute).String()},
	}
	if planTemplates[plan].target == "" {
		m.Intent.Target, m.Plan.Proof = m.Plan.Done(digest), marker.ProofContent
	}
	m.Report = marker.Report{ActiveID: m.Intent.ID, State: marker.StateBusy, BootID: "boot", Protocol: marker.Protocol, OperatorVersion: "v", Current: m.Plan.Version("v0")}
	return m
}

// runnersPart is what the runner writes of a report.
func runnersPart(r marker.Report) map[string]string {
	out := map[string]string{}
	for k, v := range marker.EncodeReport(r) {
		if k != marker.KeyAvailableVersion && k != marker.KeyUpdateAvailable {
			out[string(k)] = v
		}
	}
	return out
}

func (w *planWall) fillPlans(t *testing.T) {
	t.Helper()
	app := corev1.PodSpec{NodeName: freeNode, Containers: []corev1.Container{{Name: "app", Image: "app"}}}
	_, err := w.admin.CoreV1().Pods(plansNamespace).Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: barePod}, Spec: app}, metav1.CreateOptions{})
	assert.NilError(t, err)
	_, err = w.admin.CoreV1().Pods(plansNamespace).Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: victimPod, Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"a": "b"},
		Finalizers: []string{planFinalizer, "example.com/theirs"}}, Spec: app}, metav1.CreateOptions{})
	assert.NilError(t, err)
	add := func(name, plan string, change func(m *marker.Marks, n *corev1.Node)) {
		m := planMarks(plan)
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{string(marker.KeyInterfaceVersion): string(fleet.InterfacePlan),
			corev1.LabelTopologyZone: "zone", corev1.LabelTopologyRegion: "region"}, Annotations: map[string]string{"example.com/theirs": "kept", string(marker.KeyPaused): "why"},
			Finalizers: []string{"example.com/theirs"}}, Spec: corev1.NodeSpec{Unschedulable: true}}
		change(&m, n)
		for k, v := range marker.Encode(m) {
			n.Annotations[string(k)] = v
		}
		maps.Copy(n.Annotations, runnersPart(m.Report))
		_, err := w.admin.CoreV1().Nodes().Create(t.Context(), n, metav1.CreateOptions{})
		assert.NilError(t, err)
	}
	for plan := range planTemplates {
		add(busyNode+plan, plan, func(*marker.Marks, *corev1.Node) {})
	}
	for name, change := range map[string]func(m *marker.Marks, n *corev1.Node){
		freeNode: func(m *marker.Marks, n *corev1.Node) { m.Plan.Drain, n.Spec.Unschedulable = marker.DrainNothing, false },
		preparingNode: func(m *marker.Marks, n *corev1.Node) {
			m.Intent.Action, n.Spec.Unschedulable = marker.ActionPrepareUpdate, false
		},
		uncordonedNode:   func(_ *marker.Marks, n *corev1.Node) { n.Spec.Unschedulable = false },
		idleNode:         func(m *marker.Marks, _ *corev1.Node) { m.Report = marker.Report{} },
		staleNode:        func(m *marker.Marks, _ *corev1.Node) { m.Report.ActiveID = "earlier" },
		answeredNode:     func(m *marker.Marks, _ *corev1.Node) { m.Report.State, m.Report.Message = marker.StateError, "m" },
		lateNode:         func(m *marker.Marks, _ *corev1.Node) { m.Intent.Until = time.Now() },
		templatelessNode: func(m *marker.Marks, _ *corev1.Node) { m.Intent.Template = "" },
		stabilizingNode:  func(m *marker.Marks, _ *corev1.Node) { m.Intent.Action = marker.ActionStabilize },
		absentNode:       func(m *marker.Marks, _ *corev1.Node) { m.Intent.Template = "absent" },
		unnamedNode:      func(m *marker.Marks, _ *corev1.Node) { m.Intent.Template = "unnamed" },
		updateAPINode: func(_ *marker.Marks, n *corev1.Node) {
			n.Labels[string(marker.KeyInterfaceVersion)] = string(fleet.InterfaceUpdateAPI)
		},
	} {
		add(name, "kernel", change)
	}
}

// planPod is the pod that the contract asks for, of what stands on a node and in the template that it names.
func (w *planWall) planPod(t *testing.T, node string) *corev1.Pod {
	t.Helper()
	n, err := w.admin.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
	assert.NilError(t, err)
	version, name := n.Annotations[string(marker.KeyTargetVersion)], n.Annotations[string(marker.KeyPlanTemplate)]
	template := &corev1.PodTemplate{}
	if name != "" && name != "absent" {
		template, err = w.admin.CoreV1().PodTemplates(plansNamespace).Get(t.Context(), name, metav1.GetOptions{})
		assert.NilError(t, err)
	}
	plan, target := marker.PlanOf(version), marker.PlanTargetOf(version)
	if target == marker.ContentTarget {
		target = marker.PlanDigestOf(version)
	}
	tag := strings.ReplaceAll(target, "+", "-")
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: plan + "-0123456789abcdef", Labels: map[string]string{}, Annotations: map[string]string{}}, Spec: *template.Template.Spec.DeepCopy()}
	maps.Copy(p.Labels, template.Template.Labels)
	p.Labels["bottlerocket.aws/plan"] = plan
	maps.Copy(p.Annotations, template.Template.Annotations)
	for k, v := range map[string]string{"intent-id": n.Annotations[string(marker.KeyIntentID)], "node-uid": string(n.UID), "plan-template": name, "target": target, "tag": tag} {
		p.Annotations[marker.Prefix+k] = v
	}
	p.Finalizers = []string{planFinalizer}
	p.Spec.NodeName = node
	p.Spec.NodeSelector = maps.Clone(p.Spec.NodeSelector)
	if p.Spec.NodeSelector == nil {
		p.Spec.NodeSelector = map[string]string{}
	}
	p.Spec.NodeSelector[string(marker.KeyInterfaceVersion)] = string(fleet.InterfacePlan)
	p.Spec.RestartPolicy = corev1.RestartPolicyNever
	p.Spec.Tolerations = append(slices.Clone(p.Spec.Tolerations), corev1.Toleration{Operator: corev1.TolerationOpExists})
	if p.Spec.AutomountServiceAccountToken == nil {
		p.Spec.AutomountServiceAccountToken = new(false)
	}
	p.Spec.ActiveDeadlineSeconds = new(int64(1800))
	for _, all := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range all {
			if image, ok := strings.CutSuffix(all[i].Image, ":TARGET_VERSION"); ok {
				all[i].Image = image + ":" + tag
			}
		}
	}
	return p
}

// asked is planPod as it was when attacks were first made of it.
func (w *planWall) asked(t *testing.T, node string) *corev1.Pod {
	t.Helper()
	if w.honest == nil {
		w.honest = map[string]*corev1.Pod{}
	}
	if w.honest[node] == nil {
		w.honest[node] = w.planPod(t, node)
	}
	return w.honest[node].DeepCopy()
}

// create asks for a pod in the namespace of plans, unless it names another.
func create(ctx context.Context, client kubernetes.Interface, p *corev1.Pod, dry []string) error {
	namespace := p.Namespace
	if namespace == "" {
		namespace = plansNamespace
	}
	_, err := client.CoreV1().Pods(namespace).Create(ctx, p, metav1.CreateOptions{DryRun: dry})
	return err
}
