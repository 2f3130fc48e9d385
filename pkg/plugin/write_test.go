package plugin

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

func idleHost(name string) host {
	return host{name: name, marks: at(marker.ActionStabilize, marker.StateReady, time.Hour, v1, v2), noAgent: true}
}

// writes are the requests by which something may change. A review of the user changes nothing, and is posted all the
// same.
func writes(s said) []string {
	var out []string
	for _, r := range s.requests {
		if !strings.HasPrefix(r, "GET ") && !strings.Contains(r, "/selfsubjectreviews") {
			method, rest, _ := strings.Cut(r, " ")
			path, _, _ := strings.Cut(rest, "?")
			out = append(out, method+" "+path[strings.LastIndex(path, "/")+1:])
		}
	}
	return out
}

func (s said) is(t *testing.T, out string) {
	t.Helper()
	assert.Equal(t, s.errs, "")
	assert.Equal(t, s.out, out)
	assert.Equal(t, s.status, 0)
}

func (s said) fails(t *testing.T, line string) {
	t.Helper()
	assert.Equal(t, s.errs, "error: "+line+"\n")
	assert.Equal(t, s.status, 1)
	assert.Equal(t, len(writes(s)), 0, "%q", s.requests)
}

func TestPauseNodes(t *testing.T) {
	c := newCluster(t)
	c.node(idleHost("a"))
	c.node(idleHost("b"))
	before, err := c.client.CoreV1().Nodes().Get(t.Context(), "a", metav1.GetOptions{})
	assert.NilError(t, err)

	for _, mode := range []string{"--dry-run=client", "--dry-run=server", "--dry-run"} {
		got := c.run("pause", "a", "--reason", "x", mode)
		suffix := " (dry run)\n"
		if mode == "--dry-run=server" {
			suffix = " (server dry run)\n"
		}
		got.is(t, "node/a paused"+suffix)
		assert.Equal(t, len(writes(got)) > 0, mode == "--dry-run=server")
		_, there := c.annotation("a", marker.KeyPaused)
		assert.Assert(t, !there)
	}
	c.run("pause", "a", "b", "--reason", "Ann debugs here").is(t, "node/a paused\nnode/b paused\n")
	c.run("pause", "a", "--reason", "Ann debugs here").is(t, "node/a unchanged\n")
	c.run("pause", "a", "--reason", "still").is(t, "node/a paused\n")
	v, _ := c.annotation("a", marker.KeyPaused)
	assert.Equal(t, v, "still (by admin at 2026-01-05 12:00 UTC)")
	assert.Assert(t, strings.Contains(c.run("status", "a").out, "Paused: paused: still (by admin at 2026-01-05 12:00 UTC)"))
	c.run("resume", "a", "b").is(t, "node/a resumed\nnode/b resumed\n")
	c.run("resume", "b").is(t, "node/b unchanged\n")

	// Nothing else of the node was touched.
	after, err := c.client.CoreV1().Nodes().Get(t.Context(), "a", metav1.GetOptions{})
	assert.NilError(t, err)
	for _, n := range []*metav1.ObjectMeta{&before.ObjectMeta, &after.ObjectMeta} {
		n.ResourceVersion, n.ManagedFields = "", nil
	}
	assert.DeepEqual(t, after, before)

	// One wrong name, and no node is paused.
	c.run("pause", "a", "nobody", "--reason", "x").fails(t, `node "nobody" not found`)
	c.run("pause", "a").fails(t, "give a --reason: it is shown on every node that waits")
	c.run("pause", "a", "--group", "canary", "--reason", "x").fails(t, "--group and --in-flight are about a group or the fleet: name no nodes with them")
	c.run("resume", "nobody").fails(t, `node "nobody" not found`)
	c.run("pause", "a", "--reason", "x", "--dry-run=maybe").fails(t,
		`invalid argument "maybe" for "--dry-run" flag: give one of none, client, server; see 'kubectl bottlerocket pause --help'`)

	c.node(host{name: "foreign", notLabelled: true, noAgent: true})
	got := c.run("pause", "foreign", "--reason", "x")
	assert.Equal(t, got.out, "node/foreign paused\n")
	assert.Equal(t, got.errs, "warning: node \"foreign\" is not labelled, so the operator starts nothing there anyhow\n")
}

// pauses returns what PauseConfigMap holds.
func (c *cluster) pauses() string {
	c.t.Helper()
	m, err := c.client.CoreV1().ConfigMaps(c.namespace).Get(c.t.Context(), kube.PauseConfigMap, metav1.GetOptions{})
	assert.NilError(c.t, err)
	var b bytes.Buffer
	assert.NilError(c.t, json.Compact(&b, []byte(m.Data[kube.PauseKey])))
	return b.String()
}

// A pause of the fleet is kept in PauseConfigMap, with who set it and when, whatever the policy says: also where
// that has a mistake, is gone, or is put back every few seconds.
func TestPauseFleet(t *testing.T) {
	c := newCluster(t)
	c.configMap(kube.PolicyConfigMap, kube.PolicyKey, "version: 2\n")
	c.run("resume").is(t, "configmap/update-pause unchanged\n")
	c.run("pause", "--reason", "moving", "--dry-run=server").is(t, "configmap/update-pause paused (server dry run)\n")
	got := c.run("pause", "--reason", "moving: today", "--in-flight", "return")
	got.is(t, "configmap/update-pause paused\n")
	assert.DeepEqual(t, writes(got), []string{"POST configmaps"})
	assert.Equal(t, c.pauses(), `{"fleet":{"reason":"moving: today","by":"admin","at":"2026-01-05T12:00:00Z","inFlight":"return"}}`)
	got = c.run("pause", "--reason", "done soon")
	got.is(t, "configmap/update-pause paused\n")
	assert.DeepEqual(t, writes(got), []string{"PATCH update-pause"})
	const soon = `{"fleet":{"reason":"done soon","by":"admin","at":"2026-01-05T12:00:00Z","inFlight":"return"}}`
	assert.Equal(t, c.pauses(), soon)
	got = c.run("pause", "--reason", "done soon")
	got.is(t, "configmap/update-pause unchanged\n")
	assert.Equal(t, len(writes(got)), 0)
	assert.Equal(t, c.pauses(), soon)
	assert.Equal(t, c.policyText(), "version: 2\n", "the policy is not touched")
	c.run("resume").is(t, "configmap/update-pause resumed\n")
	assert.Equal(t, c.pauses(), "{}")
	c.run("pause", "--reason", "x", "--in-flight", "stop").fails(t, `--in-flight is "stop": give finish or return`)
	c.run("resume", "a", "--group", "b").fails(t, "nodes and a group exclude each other: give one of them")
}

// Resume warns of a pause in the policy, which it does not end.
func TestResumeBesideThePolicysPause(t *testing.T) {
	c := newCluster(t)
	c.configMap(kube.PolicyConfigMap, kube.PolicyKey, "version: 1\npause: {reason: moving}\ngroups: [{name: canary, nodeSelector: {}, pause: {reason: bad canary}}]\n")
	for group, reason := range map[string]string{"": "moving", "canary": "bad canary"} {
		c.run("pause", "--group", group, "--reason", "x")
		got := c.run("resume", "--group", group)
		assert.Equal(t, got.errs, "warning: the policy has a pause too ("+reason+"): to end it, take it out of ConfigMap update-policy\n")
		assert.Assert(t, strings.HasSuffix(got.out, " resumed\n"), got.out)
	}
	assert.Equal(t, c.pauses(), "{}")
}

// A PauseConfigMap that can't be read is not written over.
func TestPauseThatCantBeRead(t *testing.T) {
	c := newCluster(t)
	c.configMap(kube.PauseConfigMap, kube.PauseKey, "{}")
	for _, args := range [][]string{{"pause", "--reason", "x"}, {"resume"}} {
		c.run(args...).fails(t, "ConfigMap "+c.namespace+"/update-pause can't be read, which pauses everything; correct it, or delete it to end its pauses: "+
			`key "other" is not known: pauses are in pauses.json`)
	}
}

func TestPauseGroup(t *testing.T) {
	c := newCluster(t)
	c.configMap(kube.PolicyConfigMap, kube.PolicyKey, testPolicy)
	c.run("pause", "--group", "canary", "--reason", "bad canary").is(t, "configmap/update-pause group canary paused\n")
	c.run("pause", "--group", "workers", "--reason", "x", "--in-flight", "finish").is(t, "configmap/update-pause group workers paused\n")
	c.run("pause", "--reason", "moving").is(t, "configmap/update-pause paused\n")
	const moving = `{"fleet":{"reason":"moving","by":"admin","at":"2026-01-05T12:00:00Z"},"groups":{`
	const workers = `"workers":{"reason":"x","by":"admin","at":"2026-01-05T12:00:00Z","inFlight":"finish"}}}`
	assert.Equal(t, c.pauses(), moving+`"canary":{"reason":"bad canary","by":"admin","at":"2026-01-05T12:00:00Z"},`+workers)
	c.run("resume", "--group", "canary").is(t, "configmap/update-pause group canary resumed\n")
	assert.Equal(t, c.pauses(), moving+workers)
	assert.Equal(t, c.policyText(), testPolicy)
	c.run("pause", "--group", "nobody", "--reason", "x").fails(t, `group "nobody" is not in the policy: it has ["canary" "workers"]`)
}

// Where the policy has a mistake its groups are not known, and a pause of one is set all the same.
func TestPauseGroupBesideAMistake(t *testing.T) {
	c := newCluster(t)
	c.configMap(kube.PolicyConfigMap, kube.PolicyKey, "version: 1\nsoka: 1m\n")
	got := c.run("pause", "--group", "canary", "--reason", "x")
	assert.Equal(t, got.errs, "warning: the policy has a mistake, so it is not known whether it has a group \"canary\": line 2: there is no field soka: the nearest is soak\n")
	assert.Equal(t, got.out, "configmap/update-pause group canary paused\n")
}

func TestRetry(t *testing.T) {
	c := newCluster(t)
	h := idleHost("a")
	h.marks.Failure = &marker.Failure{Versions: []string{v2}, Count: 1, Reason: "RolledBack", At: noon, RetryAfter: noon.Add(time.Hour)}
	c.node(h)
	c.node(idleHost("b"))
	c.node(host{name: "foreign", notLabelled: true, noAgent: true})
	c.run("retry", "a").is(t, "node/a will be retried\n")
	v, there := c.annotation("a", marker.KeyRetry)
	assert.Assert(t, there && v == "")
	c.run("retry", "a").is(t, "node/a unchanged\n")
	got := c.run("retry", "b")
	assert.Equal(t, got.out, "node/b unchanged\n")
	assert.Equal(t, got.errs, "warning: node \"b\" has no recorded failure: there is nothing to retry\n")
	c.run("retry").fails(t, "name at least one node; see 'kubectl bottlerocket retry --help'")
	c.run("retry", "foreign").fails(t, `node "foreign" is not in the operator's care: label it with bottlerocket.aws/updater-interface-version=2.0.0`)
	c.run("retry", "nobody").fails(t, `node "nobody" not found`)
}

func TestAcknowledge(t *testing.T) {
	c := newCluster(t)
	versions := func() []string {
		m, err := c.client.CoreV1().ConfigMaps(c.namespace).Get(t.Context(), kube.AcknowledgedConfigMap, metav1.GetOptions{})
		assert.NilError(t, err)
		var keys []string
		for k := range m.Data {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		return keys
	}
	c.node(host{name: "a", marks: at(marker.ActionStabilize, marker.StateReady, time.Hour, v1, v2)})
	c.run("acknowledge", v2, "--remove").is(t, "configmap/update-acknowledged unchanged\n")
	c.run("acknowledge", v2, "--dry-run=client").is(t, "configmap/update-acknowledged 1.51.0 acknowledged (dry run)\n")
	got := c.run("acknowledge", v2)
	got.is(t, "configmap/update-acknowledged 1.51.0 acknowledged\n")
	assert.DeepEqual(t, writes(got), []string{"POST configmaps"})
	c.run("acknowledge", v2).is(t, "configmap/update-acknowledged unchanged\n")
	c.run("acknowledge", "1.52.0-rc.1").fails(t, "no node runs version 1.52.0-rc.1, is offered it, or failed at it: give one of 1.50.0, 1.51.0, or --force")
	got = c.run("acknowledge", "1.52.0-rc.1", "--force")
	got.is(t, "configmap/update-acknowledged 1.52.0-rc.1 acknowledged\n")
	assert.DeepEqual(t, writes(got), []string{"PATCH update-acknowledged"})
	assert.DeepEqual(t, versions(), []string{v2, "1.52.0-rc.1"})
	c.run("acknowledge", v2, "--remove", "--dry-run=server").is(t, "configmap/update-acknowledged 1.51.0 not acknowledged any more (server dry run)\n")
	got = c.run("acknowledge", v2, "--remove")
	got.is(t, "configmap/update-acknowledged 1.51.0 not acknowledged any more\n")
	assert.DeepEqual(t, writes(got), []string{"PATCH update-acknowledged"})
	assert.DeepEqual(t, versions(), []string{"1.52.0-rc.1"})
	const planned, key = "k3s/v1.36.3+k3s1#0123456789abcdef", "k3s_2Fv1.36.3_2Bk3s1_230123456789abcdef"
	c.run("acknowledge", planned, "--force").is(t, "configmap/update-acknowledged "+planned+" acknowledged\n")
	assert.DeepEqual(t, versions(), []string{"1.52.0-rc.1", key})
	c.run("acknowledge", planned, "--force").is(t, "configmap/update-acknowledged unchanged\n")
	c.run("acknowledge", planned, "--remove").is(t, "configmap/update-acknowledged "+planned+" not acknowledged any more\n")
	assert.DeepEqual(t, versions(), []string{"1.52.0-rc.1"})
	c.run("acknowledge", "latest").fails(t, `"latest" is not a version: give one such as 1.51.0`)
	c.run("acknowledge", "1.51.0+build").fails(t, `version "1.51.0+build" has build metadata, which a ConfigMap can't hold as a key`)
	c.run("acknowledge").fails(t, "name a version; see 'kubectl bottlerocket acknowledge --help'")
}

// One line that names the thing, for what users type and for what the API server refuses.
func TestBadInput(t *testing.T) {
	c := newCluster(t)
	c.node(host{name: "foreign", notLabelled: true, noAgent: true})
	c.run("status", "nobody").fails(t, `node "nobody" not found`)
	c.run("status", "foreign").fails(t, `node "foreign" is not in the operator's care: label it with bottlerocket.aws/updater-interface-version=2.0.0`)
	c.run("status", "-l", "=").fails(t, `selector "=": found '=', expected: !, identifier, or 'end of string'`)
	c.run("status", "a", "-l", "b").fails(t, "nodes and a selector exclude each other: give one of them")
	c.run("status", "-o", "xml").fails(t, `output format "xml" is not known: give one of wide, json, yaml`)
	c.run("history", "a", "b").fails(t, `"b" is one argument too many; see 'kubectl bottlerocket history --help'`)
	c.run("history", "nobody").fails(t, `node "nobody" not found`)
	c.run("plan", "--policy", "/nowhere").fails(t, "reading the policy: open /nowhere: no such file or directory")
	c.run("frobnicate").fails(t, `unknown command "frobnicate" for "kubectl bottlerocket"`)
	got := c.run("status", "--as", "eve")
	assert.Equal(t, got.status, 1)
	assert.Assert(t, strings.HasPrefix(got.errs, "error: listing ") && strings.Contains(got.errs, `is forbidden: User "eve" cannot list`), got.errs)
	got = c.run("status", "--watch", "--as", "eve")
	assert.Equal(t, got.status, 1)
	assert.Assert(t, strings.HasPrefix(got.errs, "error: watching: ") && strings.Contains(got.errs, `is forbidden: User "eve" cannot list`), got.errs)
	assert.Equal(t, strings.Count(got.errs, "\n"), 1)
}

// What another client wrote in between stays, and the write is made on top of it.
func TestWritesInBetween(t *testing.T) {
	c := newCluster(t)
	c.node(idleHost("a"))
	stale, err := c.client.CoreV1().Nodes().Get(t.Context(), "a", metav1.GetOptions{})
	assert.NilError(t, err)
	c.patch("a", `{"metadata":{"annotations":{"bottlerocket.aws/waiting-for":"Something: new"}}}`)
	var out bytes.Buffer
	p := newPlugin(genericiooptions.IOStreams{Out: &out})
	assert.NilError(t, p.annotate(t.Context(), c.client, stale, marker.KeyPaused, new("x"), "paused", &dryRun{}))
	assert.Equal(t, out.String(), "node/a paused\n")
	for key, want := range map[marker.Key]string{marker.KeyPaused: "x", marker.KeyWaitingFor: "Something: new"} {
		v, _ := c.annotation("a", key)
		assert.Equal(t, v, want)
	}

	k := configKey{c.namespace, "config", "key"}
	for _, before := range []string{"", "before"} {
		looks := 0
		changed, err := k.change(t.Context(), c.client, &dryRun{}, func(data map[string]string) (*string, error) {
			looks++
			if looks == 1 && before == "" {
				c.configMap("config", "key", "before")
			} else if looks == 1 {
				_, err := c.client.CoreV1().ConfigMaps(c.namespace).Patch(t.Context(), "config", types.MergePatchType, []byte(`{"data":{"other":"newer"}}`), metav1.PatchOptions{})
				assert.NilError(t, err)
			}
			stands, there := data["key"]
			if !there {
				return new("from nothing"), nil
			}
			return new(stands + "+"), nil
		})
		assert.NilError(t, err)
		assert.Assert(t, changed)
		assert.Equal(t, looks, 2)
	}
	m, err := c.client.CoreV1().ConfigMaps(c.namespace).Get(t.Context(), "config", metav1.GetOptions{})
	assert.NilError(t, err)
	assert.DeepEqual(t, m.Data, map[string]string{"key": "before++", "other": "newer"})
}
