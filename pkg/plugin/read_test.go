package plugin

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gotest.tools/v3/assert"
	"gotest.tools/v3/golden"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
)

// What users read, of one node of each kind. Time stands still, so nothing needs to be made alike.
func TestRead(t *testing.T) {
	c := newCluster(t)
	c.fleet()
	for _, tc := range []struct{ name, args string }{
		{"status", "status"},
		{"status-wide", "status -o wide"},
		{"status-named", "status lost draining"},
		{"status-selected", "status -l wave=workers"},
		{"status-json", "status -o json lost failed"},
		{"plan", "plan"},
		{"plan-wide", "plan -o wide"},
		{"history", "history canary-1"},
		{"history-none", "history idle"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := c.run(strings.Fields(tc.args)...)
			golden.Assert(t, c.anywhere(got.out+"--- stderr\n"+got.errs), tc.name+".golden")
			assert.Equal(t, got.status, 0)
			assert.Equal(t, len(writes(got)), 0, "%q", got.requests)
		})
	}

	t.Run("the same as JSON and YAML", func(t *testing.T) {
		for _, args := range []string{"status", "plan", "history canary-1"} {
			var asJSON, asYAML any
			assert.NilError(t, json.Unmarshal([]byte(c.run(strings.Fields(args+" -o json")...).out), &asJSON))
			converted, err := yaml.ToJSON([]byte(c.run(strings.Fields(args + " -o yaml")...).out))
			assert.NilError(t, err)
			assert.NilError(t, json.Unmarshal(converted, &asYAML))
			assert.DeepEqual(t, asYAML, asJSON)
			assert.Equal(t, asJSON.(map[string]any)["apiVersion"], version)
		}
	})

	t.Run("every labelled or marked node is in the plan once", func(t *testing.T) {
		var got struct {
			Nodes  []struct{ Node string }
			Groups []struct{ Nodes, UpToDate, Starting, InProgress, Waiting int }
		}
		assert.NilError(t, json.Unmarshal([]byte(c.run("plan", "-o", "json").out), &got))
		text := c.run("plan").out
		_, lists, _ := strings.Cut(text, "STARTS-NOW")
		counted, starting := 0, 0
		for _, n := range got.Nodes {
			assert.Equal(t, len(regexp.MustCompile(`(?m)^(\d+ +)?`+n.Node+` `).FindAllString(lists, -1)), 1, "%s: %s", n.Node, lists)
		}
		for _, g := range got.Groups {
			assert.Equal(t, g.Nodes, g.UpToDate+g.Starting+g.InProgress+g.Waiting)
			counted += g.Nodes
			starting += g.Starting
		}
		assert.Equal(t, starting, 3, "groups count as the lists do")
		assert.Equal(t, len(got.Nodes), 13)
		assert.Equal(t, counted, 13)
	})

	t.Run("another policy", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "policy.yaml")
		text := "version: 1\nmaxUnavailable: unlimited\nfreezes: [{from: 2026-01-05T00:00:00Z, to: 2026-01-06T00:00:00Z, reason: stocktaking}]\n"
		assert.NilError(t, os.WriteFile(path, []byte(text), 0o600))
		got := c.run("plan", "--policy", path)
		assert.Equal(t, got.status, 0, got.errs)
		golden.Assert(t, strings.ReplaceAll(got.out, path, "FILE"), "plan-frozen.golden")
		assert.Equal(t, c.runWith(text, "plan", "--policy", "-").out, strings.ReplaceAll(got.out, path, "standard input"))
		assert.DeepEqual(t, writes(got), []string{"POST plan"})
		assert.Equal(t, c.policyText(), testPolicy)
	})

	t.Run("a policy with mistakes", func(t *testing.T) {
		got := c.runWith("version: 1\nmaxUnavailabel: 3\nsoak: 5\n", "plan", "--policy", "-")
		assert.Equal(t, got.errs, "error: standard input: line 2: there is no field maxUnavailabel: the nearest is maxUnavailable\n"+
			"standard input: line 3: soak \"5\" is no duration: give one such as 90s, 30m or 4h\n")
		assert.Equal(t, got.status, 1)
	})
}

// anywhere is text without the number of the test's namespace.
func (c *cluster) anywhere(text string) string {
	return strings.ReplaceAll(text, c.namespace, "NAMESPACE")
}

// Where there is nothing yet, and where the policy can't be read, status says so and shows what there is.
func TestStatusWithLess(t *testing.T) {
	c := newCluster(t)
	got := c.run("status")
	assert.Equal(t, got.status, 0)
	assert.Equal(t, got.out+got.errs, "No nodes found; label the ones to update with bottlerocket.aws/updater-interface-version=2.0.0\n")
	c.node(host{name: "new"})
	c.configMap(kube.PolicyConfigMap, kube.PolicyKey, "version: 2\n")
	got = c.run("status")
	assert.Equal(t, got.status, 0)
	assert.Assert(t, strings.Contains(got.out, "new") && strings.HasPrefix(got.errs, "warning: ConfigMap update-policy has a mistake, so groups are not shown: "), got.errs)
}
