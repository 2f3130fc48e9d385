package plugin

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/authorizer"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// own is what users have on their nodes.
var own = struct {
	labels, annotations map[string]string
	taints              []corev1.Taint
}{
	map[string]string{"example.com/team": "shop", "node.kubernetes.io/exclude-from-external-load-balancers": "mine"},
	map[string]string{"example.com/note": "keep me", "bottlerocket.aws/note": "of a newer operator", "bottlerocket.aws/paused": "by Ann"},
	[]corev1.Taint{{Key: "example.com/gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}},
}

// bare is a Node but for what changes by itself.
func bare(t *testing.T, n *corev1.Node) string {
	t.Helper()
	n = n.DeepCopy()
	n.ResourceVersion, n.ManagedFields, n.Status = "", nil, corev1.NodeStatus{}
	text, err := json.MarshalIndent(n, "", " ")
	assert.NilError(t, err)
	return string(text)
}

func (c *cluster) get(name string) *corev1.Node {
	c.t.Helper()
	n, err := c.client.CoreV1().Nodes().Get(c.t.Context(), name, metav1.GetOptions{})
	assert.NilError(c.t, err)
	return n
}

// left is a node of a user with what an operator that is gone has left there; returned is how it was before.
func (c *cluster) left(h host, wasCordoned bool) string {
	c.t.Helper()
	marks, nodeInfo := h.marks, h.marks.Report
	h.marks, h.noAgent = marker.Marks{Report: marker.Report{BootID: nodeInfo.BootID, Current: nodeInfo.Current}}, true
	after, annotations := h.cordoned, h.annotations
	h.cordoned, h.annotations = wasCordoned, nil
	c.node(h)
	n := c.get(h.name)
	n.Annotations = maps.Clone(own.annotations)
	maps.Copy(n.Labels, own.labels)
	n.Spec.Taints = own.taints
	n, err := c.client.CoreV1().Nodes().Update(c.t.Context(), n, metav1.UpdateOptions{})
	assert.NilError(c.t, err)
	was := bare(c.t, n)
	for _, part := range []map[marker.Key]string{marker.Encode(marks), marker.EncodeReport(nodeInfo), annotations} {
		for k, v := range part {
			n.Annotations[string(k)] = v
		}
	}
	n.Spec.Unschedulable = after
	_, err = c.client.CoreV1().Nodes().Update(c.t.Context(), n, metav1.UpdateOptions{})
	assert.NilError(c.t, err)
	return was
}

// inPhase are the marks of a node that was taken out of service.
func inPhase(action marker.Action, answer marker.State, d *marker.Disruption) marker.Marks {
	m := at(action, answer, time.Hour, v1, v2)
	m.Disruption, m.Intent.RebootFrom = d, m.Report.BootID
	m.Waiting = &marker.Waiting{Reason: "Draining", Message: "x"}
	m.History = []marker.Attempt{{Version: v1, Outcome: marker.OutcomeUpdated, Started: noon, Ended: noon}}
	return m
}

// Whatever an operator left on a node, clean leaves it as it was before, to the byte (S5; kured_63, SUC_71, SUC_341,
// brupop_28, brupop_630).
func TestClean(t *testing.T) {
	cordon := func() *marker.Disruption { return &marker.Disruption{Since: ago(time.Hour)} }
	found := func() *marker.Disruption { return &marker.Disruption{Since: ago(time.Hour), WasUnschedulable: true} }
	soaking := func() *marker.Disruption { return &marker.Disruption{Since: ago(time.Hour), Soak: new(noon)} }
	for _, tc := range []struct {
		name                  string
		marks                 marker.Marks
		cordoned, wasCordoned bool
		says                  string
	}{
		{"idle", at(marker.ActionStabilize, marker.StateReady, time.Hour, v1, v2), false, false, "cleaned: 13 annotations removed"},
		{"prepared", at(marker.ActionPrepareUpdate, marker.StateReady, time.Hour, v1, v2), false, false, "cleaned: 14 annotations removed"},
		{"draining", inPhase(marker.ActionPrepareUpdate, marker.StateReady, cordon()), true, false, "cleaned: uncordoned, 18 annotations removed"},
		{"draining, uncordoned by a user", inPhase(marker.ActionPrepareUpdate, marker.StateReady, cordon()), false, false, "cleaned: 18 annotations removed"},
		{"draining, found cordoned", inPhase(marker.ActionPrepareUpdate, marker.StateReady, found()), true, true,
			"cleaned: 18 annotations removed, cordon kept, it was there before"},
		{"asked to reboot", inPhase(marker.ActionRebootUpdate, marker.StateNone, cordon()), true, false, "cleaned: uncordoned, 16 annotations removed"},
		{"in its soak", inPhase(marker.ActionStabilize, marker.StateReady, soaking()), false, false, "cleaned: 17 annotations removed"},
		{"cordoned by a user in its soak", inPhase(marker.ActionStabilize, marker.StateReady, soaking()), true, true,
			"cleaned: 17 annotations removed, cordon kept, it was there before"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCluster(t)
			before := c.left(host{name: "a", marks: tc.marks, cordoned: tc.cordoned}, tc.wasCordoned)
			c.node(host{name: "foreign", notLabelled: true, noAgent: true, annotations: map[marker.Key]string{"example.com/x": "y"}})

			marked := bare(t, c.get("a"))
			c.run("clean", "--all", "--dry-run").is(t, "node/a "+tc.says+" (dry run)\n")
			c.run("clean", "--all", "--dry-run=server").is(t, "node/a "+tc.says+" (server dry run)\n")
			assert.Equal(t, bare(t, c.get("a")), marked)

			got := c.run("clean", "--all")
			got.is(t, "node/a "+tc.says+"\n")
			assert.DeepEqual(t, writes(got), []string{"PATCH a"})
			assert.Equal(t, bare(t, c.get("a")), before)

			got = c.run("clean", "--all")
			assert.Equal(t, got.errs, "Nothing of the operator is left\n")
			assert.Equal(t, got.status, 0)
			assert.Equal(t, len(writes(got)), 0, "%q", got.requests)
			c.run("clean", "a").is(t, "node/a unchanged\n")
		})
	}
}

// What a host was locked to before is not forgotten without a word: no command in the cluster puts it back (S5).
func TestCleanLocked(t *testing.T) {
	c := newCluster(t)
	locked := func(l *marker.Lock, answer marker.State) marker.Marks {
		m := at(marker.ActionStabilize, answer, time.Hour, v1, "")
		m.Lock = l
		return m
	}
	asked := marker.Lock{Want: "1.50.0", Before: "v1.49.0"}
	c.left(host{name: "a", marks: locked(&asked, marker.StateReady)}, false)
	c.left(host{name: "b", marks: locked(asked.Changed(asked.Before, true), "")}, false)
	c.left(host{name: "c", marks: locked(asked.Changed(asked.Before, true), marker.StateReady)}, false)
	back := locked(asked.Changed(asked.Before, true), marker.StateReady)
	back.Report.VersionLock = asked.Before
	c.left(host{name: "d", marks: back}, false)
	got := c.run("clean", "--all")
	const why = "left: its host may be locked to 1.50.0, which only a command there takes back: apiclient set updates.version-lock=v1.49.0; then give --force=lock\n"
	assert.Equal(t, got.out, "node/a "+why+"node/b "+why+"node/c "+why+"node/d cleaned: 14 annotations removed\n")
	assert.Equal(t, got.errs, "error: 3 of the nodes were left as they are\n")
	got = c.run("clean", "a", "b", "--force=lock")
	assert.Equal(t, got.status, 0, got.errs)
	_, stands := c.get("a").Annotations[string(marker.KeyLock)]
	assert.Assert(t, !stands)
}

// A reboot that has begun can't be taken back: the node is named and left, unless --force=rebooting is given.
func TestCleanDuringReboot(t *testing.T) {
	c := newCluster(t)
	busy := inPhase(marker.ActionRebootUpdate, marker.StateBusy, &marker.Disruption{Since: ago(time.Hour)})
	before := c.left(host{name: "a", marks: busy, cordoned: true}, false)
	c.left(host{name: "b", marks: at(marker.ActionStabilize, marker.StateReady, time.Hour, v1, v2)}, false)
	c.configMap(kube.StateConfigMap, "slots", "{}")
	got := c.run("clean", "--all", "--state")
	assert.Equal(t, got.out, "node/a left: its reboot has begun; clean it when it is back, or give --force=rebooting\nnode/b cleaned: 13 annotations removed\n")
	assert.Equal(t, got.errs, "error: 1 of the nodes were left as they are\n")
	assert.DeepEqual(t, writes(got), []string{"PATCH b"})

	got = c.run("clean", "a", "--force=rebooting")
	assert.Equal(t, got.out, "node/a cleaned: uncordoned, 18 annotations removed\n")
	assert.Equal(t, got.errs, "warning: the host of node \"a\" may have an update activated, which its next reboot goes into\n")
	assert.Equal(t, bare(t, c.get("a")), before)

	// The kubelet's new boot ends it, whatever the agent said last.
	after := busy
	after.Intent.RebootFrom = "the-boot-before"
	before = c.left(host{name: "c", marks: after, cordoned: true}, false)
	c.run("clean", "c").is(t, "node/c cleaned: uncordoned, 18 annotations removed\n")
	assert.Equal(t, bare(t, c.get("c")), before)
}

// What can't be read isn't guessed at.
func TestCleanUnreadable(t *testing.T) {
	c := newCluster(t)
	marks := inPhase(marker.ActionPrepareUpdate, marker.StateReady, &marker.Disruption{Since: ago(time.Hour)})
	before := c.left(host{name: "a", marks: marks, cordoned: true, annotations: map[marker.Key]string{marker.KeyDisruption: "{"}}, false)
	got := c.run("clean", "--all")
	assert.Equal(t, got.out, "node/a left: annotation bottlerocket.aws/disruption: unexpected end of JSON input; correct or remove it, or give --force=unreadable\n")
	assert.Equal(t, got.status, 1)
	assert.Equal(t, len(writes(got)), 0)
	c.run("clean", "--all", "--force=unreadable").is(t, "node/a cleaned: 18 annotations removed, cordon kept, it is not known what put it there\n")
	cordoned := strings.Replace(before, `"spec": {`, `"spec": {`+"\n  \"unschedulable\": true,", 1)
	var want, is any
	assert.NilError(t, json.Unmarshal([]byte(cordoned), &want))
	assert.NilError(t, json.Unmarshal([]byte(bare(t, c.get("a"))), &is))
	assert.DeepEqual(t, is, want)
}

// Where the record of a node's marks for others is lost, those that may be the operator's are named, cordoned or not (S5).
func TestCleanNamesUnknownMarks(t *testing.T) {
	c := newCluster(t)
	marks := inPhase(marker.ActionPrepareUpdate, marker.StateReady, &marker.Disruption{Since: ago(time.Hour)})
	for _, name := range []string{"a", "b"} {
		c.left(host{name: name, marks: marks, cordoned: name == "a", annotations: map[marker.Key]string{marker.KeyDisruption: "{"}}, false)
		c.patch(name, `{"metadata":{"annotations":{"cluster-autoscaler.kubernetes.io/scale-down-disabled":"true","karpenter.sh/do-not-disrupt":"true"}}}`)
	}
	c.patch("a", `{"metadata":{"labels":{"node.kubernetes.io/exclude-from-external-load-balancers":"true"},"annotations":{"karpenter.sh/do-not-disrupt":"false"}}}`)
	want := "node/a cleaned: 18 annotations removed, cordon, label node.kubernetes.io/exclude-from-external-load-balancers, " +
		"annotation cluster-autoscaler.kubernetes.io/scale-down-disabled kept, it is not known what put it there%[1]s\n" +
		"node/b cleaned: 18 annotations removed, annotation cluster-autoscaler.kubernetes.io/scale-down-disabled, " +
		"annotation karpenter.sh/do-not-disrupt kept, it is not known what put it there%[1]s\n"
	c.run("clean", "--all", "--force=unreadable", "--dry-run").is(t, fmt.Sprintf(want, " (dry run)"))
	c.run("clean", "--all", "--force=unreadable").is(t, fmt.Sprintf(want, ""))
	n := c.get("a")
	assert.Assert(t, n.Spec.Unschedulable)
	assert.Equal(t, n.Labels[marker.LabelExcluded], marker.OthersValue)
	assert.Equal(t, n.Annotations[marker.AnnotationDisrupt], "false")
}

// A node that can't be written is named, and keeps the others from nothing.
func TestCleanGoesOnAfterAnError(t *testing.T) {
	c := newCluster(t)
	blocks := rights(t)
	user := "half-" + c.namespace
	c.grant(blocks[0], user)
	c.grant(strings.Replace(blocks[3], "    verbs: [patch]", "    resourceNames: [b, d]\n    verbs: [patch]", 1), user)
	idle := at(marker.ActionStabilize, marker.StateReady, time.Hour, v1, v2)
	want := map[string]string{}
	for _, name := range []string{"a", "b", "d"} {
		want[name] = c.left(host{name: name, marks: idle}, false)
	}
	c.left(host{name: "c", marks: inPhase(marker.ActionRebootUpdate, marker.StateBusy, &marker.Disruption{Since: ago(time.Hour)}), cordoned: true}, false)
	c.configMap(kube.StateConfigMap, "slots", "{}")
	got := c.run("clean", "--all", "--state", "--as", user)
	assert.Equal(t, got.out, "node/b cleaned: 13 annotations removed\nnode/c left: its reboot has begun; clean it when it is back, or give --force=rebooting\n"+
		"node/d cleaned: 13 annotations removed\n")
	assert.Equal(t, got.status, 1)
	first, rest, _ := strings.Cut(got.errs, "\n")
	assert.Assert(t, strings.HasPrefix(first, `error: node/a not cleaned: writing node "a": `) && strings.Contains(first, "forbidden"), first)
	assert.Equal(t, rest, "error: 1 of the nodes could not be cleaned, and 1 were left as they are\n")
	assert.DeepEqual(t, writes(got), []string{"PATCH a", "PATCH b", "PATCH d"})
	for _, name := range []string{"b", "d"} {
		assert.Equal(t, bare(t, c.get(name)), want[name])
	}
}

// While a controller leads it is its work, and clean would only be undone.
func TestCleanBesideAController(t *testing.T) {
	c := newCluster(t)
	before := c.left(host{name: "a", marks: at(marker.ActionStabilize, marker.StateReady, time.Hour, v1, v2)}, false)
	c.leads("a")
	c.run("clean", "--all").fails(t, "pod controller-1 leads by Lease "+c.namespace+"/update-operator-controller: remove the nodes' labels and it takes everything back itself; "+
		"when it was killed, wait until its Lease has run out; --force=controller goes on all the same")
	c.run("clean", "--all", "--force=controller").is(t, "node/a cleaned: 13 annotations removed\n")
	assert.Equal(t, bare(t, c.get("a")), before)

	c.pod("agent-a", "a", corev1.Container{Name: "agent", Image: "agent"}, "agent")
	c.patch("a", `{"metadata":{"annotations":{"bottlerocket.aws/current-version":"1.50.0"}}}`)
	got := c.run("clean", "a", "--force=controller")
	assert.Equal(t, got.out, "node/a cleaned: 1 annotation removed\n")
	assert.Equal(t, got.errs, "warning: an agent's pod is still on node \"a\" and may write its report again: clean once more when it is gone\n")
}

// What users have set stays theirs, and what the operator keeps beside the nodes stays there, unless they want it gone.
func TestCleanLabelsAndState(t *testing.T) {
	c := newCluster(t)
	c.left(host{name: "a", marks: at(marker.ActionStabilize, marker.StateReady, time.Hour, v1, v2)}, false)
	got := c.run("clean", "--all", "--labels")
	got.is(t, "node/a cleaned: 13 annotations removed, label bottlerocket.aws/updater-interface-version removed, annotation bottlerocket.aws/paused removed\n")
	n := c.get("a")
	assert.DeepEqual(t, n.Labels, own.labels)
	assert.DeepEqual(t, n.Annotations, map[string]string{"example.com/note": "keep me", "bottlerocket.aws/note": "of a newer operator"})

	o := authorizer.DefaultOptions()
	c.configMap(kube.StateConfigMap, "slots", "{}")
	c.configMap(kube.PolicyConfigMap, kube.PolicyKey, "version: 1\n")
	c.configMap(o.CAName, "ca.crt", "")
	_, err := c.client.CoreV1().Secrets(c.namespace).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: o.SecretName}}, metav1.CreateOptions{})
	assert.NilError(t, err)
	want := func(suffix string) string {
		var b strings.Builder
		for _, name := range []string{"configmap/update-state", "configmap/" + o.CAName, "secret/" + o.SecretName} {
			b.WriteString(name + " deleted" + suffix + "\n")
		}
		return b.String()
	}
	c.run("clean", "--all", "--state", "--dry-run").is(t, want(" (dry run)"))
	c.run("clean", "--all", "--state", "--dry-run=server").is(t, want(" (server dry run)"))
	c.run("clean", "--all", "--state").is(t, want(""))
	assert.Equal(t, c.run("clean", "--all", "--state").errs, "Nothing of the operator is left\n")
	assert.Equal(t, c.policyText(), "version: 1\n")
}

func TestCleanBadInput(t *testing.T) {
	c := newCluster(t)
	c.run("clean").fails(t, "name nodes, or give --all")
	c.run("clean", "a", "--all").fails(t, "nodes and --all exclude each other: give one of them")
	c.run("clean", "a", "--state").fails(t, "--state is of all nodes: give --all with it")
	c.run("clean", "--all", "--force=yes").fails(t, `--force is "yes": give any of controller, rebooting, unreadable, lock`)
	c.run("clean", "nobody").fails(t, `node "nobody" not found`)
}
