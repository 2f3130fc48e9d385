package manifest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"text/template"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostile"
)

// TestAttackStatus: what `make get-nodes-status`, the commands of docs/uninstall.md and `make undeploy` print of Nodes that
// say anything is a line for each, without what a terminal obeys.
func TestAttackStatus(t *testing.T) {
	left := regexp.MustCompile(`go-template='(.*)'`).FindStringSubmatch(page(t, uninstallPage))
	assert.Assert(t, left != nil, "%s doesn't show what is left any more", uninstallPage)
	// As kubectl makes it.
	names, err := template.New("").Parse(left[1])
	assert.NilError(t, err)
	for name, word := range hostile.Words() {
		t.Run(name, func(t *testing.T) {
			quiet := corev1.Node{}
			quiet.Name = "c"
			nodes := []corev1.Node{*hostile.Node("a", word, false), *hostile.Node("b", word, true), quiet}
			list, err := json.Marshal(corev1.NodeList{Items: nodes})
			assert.NilError(t, err)
			var input any
			assert.NilError(t, json.Unmarshal(list, &input))
			var out strings.Builder
			assert.NilError(t, names.Execute(&out, input))
			for printed, lines := range map[string]int{jq(t, nodesStatus(t), nodes): 3, out.String(): 2} {
				assert.NilError(t, hostile.Obeyed(strings.ReplaceAll(printed, "\t", " ")))
				assert.Equal(t, strings.Count(printed, "\n"), lines, "%q", printed)
			}
		})
	}
}

// What a node waits for is shown as it stands there.
func TestWhatIsLeftIsNamed(t *testing.T) {
	program, err := os.ReadFile(filepath.Join(filepath.Dir(must(Path())), "dev", "undeploy.sh"))
	assert.NilError(t, err)
	left, err := template.New("").Parse(regexp.MustCompile(`go-template='(.*)'`).FindStringSubmatch(string(program))[1])
	assert.NilError(t, err)
	var out strings.Builder
	assert.NilError(t, left.Execute(&out, map[string]any{"items": []any{
		map[string]any{"metadata": map[string]any{"name": "a", "annotations": map[string]any{"bottlerocket.aws/intent-id": "7", "bottlerocket.aws/waiting-for": "Paused: für Ann"}}},
		map[string]any{"metadata": map[string]any{"name": "b", "annotations": map[string]any{"bottlerocket.aws/protocol": "2"}}},
		map[string]any{"metadata": map[string]any{"name": "c", "annotations": map[string]any{"example.com/x": "2"}}},
		map[string]any{"metadata": map[string]any{"name": "d"}},
	}}))
	assert.Equal(t, out.String(), "a \"Paused: für Ann\"\nb\n")
}
