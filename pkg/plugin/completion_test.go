package plugin

import (
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// Each subcommand completes the nodes that it is for.
func TestCompletion(t *testing.T) {
	c := newCluster(t)
	c.configMap(kube.PolicyConfigMap, kube.PolicyKey, testPolicy)
	h := idleHost("node-failed")
	h.marks.Failure = &marker.Failure{Versions: []string{v2, v1}, Count: 1, Reason: "RolledBack", At: noon, RetryAfter: noon.Add(time.Hour)}
	h.marks.History = []marker.Attempt{{Version: v2, Outcome: marker.OutcomeFailed, Started: noon, Ended: noon}}
	c.node(h)
	h = idleHost("node-paused")
	h.annotations = map[marker.Key]string{marker.KeyPaused: ""}
	c.node(h)
	c.node(host{name: "node-foreign", notLabelled: true, noAgent: true})
	for line, want := range map[string]string{
		"status node-":             "node-failed node-paused",
		"status node-failed node-": "node-paused",
		"history ":                 "node-failed",
		"history node-failed ":     "",
		"pause n":                  "node-failed",
		"resume ":                  "node-paused",
		"retry ":                   "node-failed",
		"retry x":                  "",
		"acknowledge ":             v1 + " " + v2,
		"pause --group ":           "canary workers",
		"pause --group w":          "workers",
		"status -o ":               "wide json yaml",
		"history -o ":              "json yaml",
		"versions -o ":             "json yaml",
		"acknowledge x --dry-run=": "none client server",
		"pin ":                     v1 + " " + v2,
		"pin x --group ":           "canary workers",
		"rollback --to 1.51":       v2,
		"unpin -o ":                "yaml",
		"proven --group c":         "canary",
		"proven -o ":               "json yaml name",
		"pause --in-flight ":       "finish return",
	} {
		args := append([]string{"__complete"}, strings.Split(line, " ")...)
		got := c.run(args...)
		words := strings.Fields(strings.Split(got.out, "\n:")[0])
		if got.out[0] == ':' {
			words = nil
		}
		assert.Equal(t, strings.Join(words, " "), want, "%q: %s%s", line, got.out, got.errs)
	}
}

// kubectl completes a plugin's line by an executable of another name, and passes it the words.
func TestCompleterName(t *testing.T) {
	for _, name := range []string{"/usr/local/bin/kubectl_complete-bottlerocket", "kubectl_complete-bottlerocket.exe"} {
		assert.DeepEqual(t, arguments([]string{name, "pause", ""}), []string{"__complete", "pause", ""})
	}
	assert.DeepEqual(t, arguments([]string{"bin/kubectl-bottlerocket", "plan"}), []string{"plan"})
}
