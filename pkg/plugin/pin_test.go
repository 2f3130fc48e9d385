package plugin

import (
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	"gotest.tools/v3/golden"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

const pinPolicy = "# ours, kept in order\nversion: 1 # the format\n\n# slowly\nmaxUnavailable: 1\ngroups:\n" +
	"- name: canary # the birds\n  nodeSelector: {matchLabels: {wave: canary}}\n- name: workers\n  nodeSelector: {matchLabels: {wave: workers}}\n  after: [canary]\n"

// pinFleet is a fleet of hosts in each state that matters to a pin.
func (c *cluster) pinFleet(text string) {
	c.t.Helper()
	canary, worker := map[string]string{"wave": "canary"}, map[string]string{"wave": "workers"}
	for _, h := range []struct {
		name, runs, offers, lock string
		labels                   map[string]string
	}{
		{"canary-1", v2, v2 + "," + v1, "latest", canary}, {"canary-2", v2, v2, "latest", canary},
		{"worker-1", v2, v2 + "," + v1, "1.51.0", worker}, {"worker-2", v1, v2 + "," + v1, "latest", worker}, {"idle", v2, "", "", nil},
	} {
		m := at(marker.ActionStabilize, marker.StateReady, time.Hour, h.runs, "")
		m.Report.Offered, m.Report.VersionLock = marker.Offers(h.offers), h.lock
		if h.runs == v2 {
			m.History = []marker.Attempt{{Version: v2, From: v1, Outcome: marker.OutcomeUpdated, Reason: "Updated", Started: ago(3 * time.Hour), Ended: ago(2 * time.Hour)}}
		}
		c.node(host{name: h.name, labels: h.labels, marks: m})
	}
	c.configMap(kube.PolicyConfigMap, kube.PolicyKey, text)
	c.slots()
	c.leads("idle")
	c.leader = atNoon{c: c, node: "idle"}
}

// What a pin, a rollback and their end change, and what users read before: the lines, the nodes, and the plan.
func TestPin(t *testing.T) {
	c := newCluster(t)
	c.pinFleet(pinPolicy)
	for _, tc := range []struct{ name, args string }{
		{"pin-dry", "pin 1.50.0 --dry-run"}, {"pin-group-dry", "pin 1.52.0 --group canary --dry-run=server"}, {"rollback-dry", "rollback --group canary --dry-run"},
	} {
		got := c.run(strings.Fields(tc.args)...)
		golden.Assert(t, c.anywhere(got.out+"--- stderr\n"+got.errs), tc.name+".golden")
		assert.Equal(t, got.status, 0)
		assert.Equal(t, c.policyText(), pinPolicy)
	}
	// Nothing that is not yes writes.
	for input, says := range map[string]string{"": "there is no answer, so nothing was done: give --yes where nothing can answer", "n\n": "nothing was done"} {
		got := c.runWith(input, "rollback")
		assert.Assert(t, strings.HasSuffix(got.errs, "error: "+says+"\n"), got.errs)
		assert.Equal(t, got.status, 1)
		assert.Equal(t, c.policyText(), pinPolicy)
	}
	back := strings.Replace(pinPolicy, "# the format\n", "# the format\nversions:\n  pin: 1.50.0\n  downgrade: true # for the pin\n", 1)
	got := c.run("rollback", "-o", "yaml")
	got.is(t, back)
	assert.Equal(t, c.policyText(), pinPolicy)

	got = c.runWith("y\n", "rollback")
	assert.Equal(t, got.status, 0, got.errs)
	assert.Equal(t, c.policyText(), back)
	assert.Assert(t, strings.HasSuffix(got.out, "\nconfigmap/update-policy pinned to 1.50.0\n"), got.out)
	assert.Equal(t, got.errs, "Pin the fleet, 5 nodes, to 1.50.0? [y/N] ")
	m, err := c.client.CoreV1().ConfigMaps(c.namespace).Get(t.Context(), kube.PolicyConfigMap, metav1.GetOptions{})
	assert.NilError(t, err)
	assert.Equal(t, m.Data["other"], "kept")
	c.run("pin", v1).is(t, "configmap/update-policy unchanged\n")

	got = c.run("pin", v2, "--group", "canary", "-y")
	assert.Equal(t, got.status, 0, got.errs)
	got = c.run("unpin", "-y", "--dry-run=server")
	golden.Assert(t, c.anywhere(got.out+"--- stderr\n"+got.errs), "unpin-dry.golden")
	for _, args := range []string{"unpin --group canary", "unpin"} {
		got = c.run(append(strings.Fields(args), "--yes")...)
		assert.Equal(t, got.status, 0, got.errs)
	}
	assert.Equal(t, c.policyText(), pinPolicy, "what is taken out again leaves the policy as it was")
	c.run("unpin").is(t, "configmap/update-policy unchanged\n")
}

// A policy that was changed between what was shown and what is written stays as it is.
func TestPinOfAPolicyThatChanged(t *testing.T) {
	c := newCluster(t)
	c.pinFleet(pinPolicy)
	const others = pinPolicy + "maxLost: 2\n"
	c.patchPolicy(others)
	p := &pinning{key: configKey{c.namespace, kube.PolicyConfigMap, kube.PolicyKey}, before: pinPolicy, after: "version: 1\n"}
	err := p.send(t.Context(), c.client, &pinOptions{})
	assert.Error(t, err, "the policy has been changed since it was shown, and nothing was written: say it again")
	assert.Equal(t, c.policyText(), others)
}

// A ConfigMap that something else keeps is not written, unless that is asked for: the change would be gone soon.
func TestPinOfAPolicyThatOthersKeep(t *testing.T) {
	c := newCluster(t)
	c.pinFleet(pinPolicy)
	for _, tc := range []struct{ patch, keeper string }{
		{`{"annotations":{"argocd.argoproj.io/tracking-id":"ops:/ConfigMap:bottlerocket/update-policy"}}`, "Argo CD (annotation argocd.argoproj.io/tracking-id=ops:/ConfigMap:bottlerocket/update-policy)"},
		{`{"labels":{"kustomize.toolkit.fluxcd.io/name":"apps"}}`, "Flux (label kustomize.toolkit.fluxcd.io/name=apps)"},
		{`{"labels":{"helm.toolkit.fluxcd.io/name":"operator"}}`, "Flux (label helm.toolkit.fluxcd.io/name=operator)"},
		{`{"labels":{"app.kubernetes.io/managed-by":"Helm","app.kubernetes.io/instance":"operator"}}`, "Helm (label app.kubernetes.io/managed-by=Helm)"},
		{`{"labels":{"app.kubernetes.io/instance":"ops"}}`, "Argo CD or Helm (label app.kubernetes.io/instance=ops)"},
	} {
		maps := c.client.CoreV1().ConfigMaps(c.namespace)
		_, err := maps.Patch(t.Context(), kube.PolicyConfigMap, types.JSONPatchType, []byte(`[{"op":"add","path":"/metadata/labels","value":{}},{"op":"add","path":"/metadata/annotations","value":{}}]`), metav1.PatchOptions{})
		assert.NilError(t, err)
		_, err = maps.Patch(t.Context(), kube.PolicyConfigMap, types.MergePatchType, []byte(`{"metadata":`+tc.patch+`}`), metav1.PatchOptions{})
		assert.NilError(t, err)
		got := c.run("pin", v1, "--yes")
		assert.Equal(t, got.errs, "error: ConfigMap "+c.namespace+"/update-policy is kept by "+tc.keeper+
			", which would take this back: change these lines where that has them (-o yaml prints the whole policy), or --force\n")
		assert.Equal(t, got.status, 1)
		assert.Assert(t, strings.Contains(got.out, "\n+   pin: 1.50.0\n"), got.out)
		assert.Equal(t, c.policyText(), pinPolicy)
	}
	got := c.run("pin", v1, "--yes", "--force")
	assert.Equal(t, got.status, 0, got.errs)
	assert.Assert(t, c.policyText() != pinPolicy)
	assert.Equal(t, keeperOf(nil), "")
	assert.Equal(t, keeperOf(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app.kubernetes.io/managed-by": "ann"}}}), "")
	assert.Equal(t, keeperOf(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"kustomize.toolkit.fluxcd.io/name": "apps"},
		Annotations: map[string]string{"kustomize.toolkit.fluxcd.io/reconcile": "disabled"}}}), "")
}

// A version that failed here is not gone back to without a word, nor one for which nothing starts any more.
func TestRollbackToAVersionThatFailed(t *testing.T) {
	c := newCluster(t)
	for _, name := range []string{"a", "b"} {
		h := idleHost(name)
		h.marks = at(marker.ActionStabilize, marker.StateReady, time.Hour, v2, "")
		h.marks.Report.Offered = v2 + "," + v1
		h.marks.History = []marker.Attempt{{Version: v2, From: v1, Outcome: marker.OutcomeUpdated, Ended: ago(time.Hour)}}
		h.marks.Failure = &marker.Failure{Versions: []string{v1}, Broken: []string{v1}, Reason: "RolledBack", At: ago(3 * time.Hour), RetryAfter: ago(2 * time.Hour)}
		c.node(h)
	}
	c.configMap(kube.PolicyConfigMap, kube.PolicyKey, "version: 1\nmaxFailed: 2\n")
	c.slots()
	c.leads("a")
	c.leader = atNoon{c: c, node: "a"}
	got := c.run("rollback", "--dry-run")
	assert.Equal(t, got.status, 0, got.errs)
	assert.Assert(t, strings.Contains(got.out, "\n2 nodes that failed with 1.50.0: a b\n"), got.out)
	assert.Assert(t, strings.Contains(got.out, "\nVersionStopped: 1.50.0 failed on 2 nodes, and nothing starts for a version that failed on 2: "), got.out)
}

// Without a ConfigMap one is made, which is said; without a leader what would happen isn't known, which is said too.
func TestPinWithLess(t *testing.T) {
	c := newCluster(t)
	got := c.run("pin", v1, "--yes")
	assert.Equal(t, got.status, 0, got.errs)
	assert.Assert(t, strings.HasPrefix(got.errs, "warning: what would happen by the policy with this change is not known: only the leading controller can show its plan: "), got.errs)
	assert.Assert(t, strings.HasPrefix(got.out, "ConfigMap "+c.namespace+"/update-policy, which does not exist and is made; all that its policy.yaml does not say is as by default:\n@@ line 1 @@\n+ version: 1\n"), got.out)
	assert.Equal(t, c.policyText(), "version: 1\nversions:\n  pin: 1.50.0\n")
}

// One line for what can't be pinned, and nothing written.
func TestPinRefuses(t *testing.T) {
	c := newCluster(t)
	c.pinFleet(strings.Replace(pinPolicy, "# slowly\n", "versions: {deny: 1.49.x}\n", 1))
	c.run("pin").fails(t, "name a version; see 'kubectl bottlerocket pin --help'")
	c.run("pin", "latest").fails(t, `"latest" is not a version: give one such as 1.27.0`)
	c.run("pin", "1.49.0").fails(t, "with versions.pin: 1.49.0: line 4: versions.pin is 1.49.0, which versions.deny denies: nothing would ever start")
	c.run("rollback", "--to", "1.49.0", "--group", "canary").fails(t, "with versions.pin: 1.49.0: line 9: groups[0].versions.pin is 1.49.0, which versions.deny denies: nothing would ever start")
	c.run("pin", v1, "--group", "nobody").fails(t, `group "nobody" is not in the policy: it has ["canary" "workers"]`)
	c.run("pin", v1, "-o", "json").fails(t, `output format "json" is not known: give one of yaml`)
	c.patchPolicy("version: 1\nsoka: 1m\n")
	c.run("rollback").fails(t, "the policy has a mistake, correct that first: ConfigMap "+c.namespace+"/update-policy: line 2: there is no field soka: the nearest is soak")
	c.patchPolicy("version: 1\nversions: {hold: 1.51.0}\n")
	c.run("rollback").fails(t, "the policy has versions.hold: 1.51.0, and a pin can't stand beside it: take the hold out of the policy, then say this again")
}

func (c *cluster) patchPolicy(text string) {
	c.t.Helper()
	m, err := c.client.CoreV1().ConfigMaps(c.namespace).Get(c.t.Context(), kube.PolicyConfigMap, metav1.GetOptions{})
	assert.NilError(c.t, err)
	m.Data[kube.PolicyKey] = text
	_, err = c.client.CoreV1().ConfigMaps(c.namespace).Update(c.t.Context(), m, metav1.UpdateOptions{})
	assert.NilError(c.t, err)
}
