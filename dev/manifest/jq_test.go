package manifest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/itchyny/gojq"
	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
)

// nodesStatus is the program behind `make get-nodes-status`.
func nodesStatus(t *testing.T) string {
	t.Helper()
	program, err := os.ReadFile(filepath.Join(filepath.Dir(must(Path())), "dev", "nodes-status.jq"))
	assert.NilError(t, err)
	return string(program)
}

// jq runs a program on what `kubectl get nodes -o json` prints, as jq -r does, whether or not this
// machine has jq.
func jq(t *testing.T, program string, nodes []corev1.Node) string {
	t.Helper()
	list, err := json.Marshal(corev1.NodeList{Items: nodes})
	assert.NilError(t, err)
	var input any
	assert.NilError(t, json.Unmarshal(list, &input))
	query, err := gojq.Parse(program)
	assert.NilError(t, err)
	var out strings.Builder
	for results := query.Run(input); ; {
		v, more := results.Next()
		if !more {
			return out.String()
		}
		if err, is := v.(error); is {
			assert.NilError(t, err)
		}
		fmt.Fprintln(&out, v)
	}
}

// oneLiner is the README's line of jq, which prints only ASCII (-a), so nothing that a terminal obeys.
func oneLiner(t *testing.T) string {
	t.Helper()
	_, rest, found := strings.Cut(page(t, readmePage), "kubectl get nodes -o json | jq -SCa '")
	assert.Assert(t, found, "the README has lost its line of jq")
	program, _, _ := strings.Cut(rest, "'")
	return program
}

// The README's line of jq prints of each node the operator's labels and annotations, and nothing else.
func TestReadmeOneLiner(t *testing.T) {
	n := corev1.Node{}
	n.Name = "a"
	n.Labels = map[string]string{"bottlerocket.aws/updater-interface-version": "2.0.0", "kubernetes.io/os": "linux"}
	n.Annotations = map[string]string{"bottlerocket.aws/current-version": "1.0.0", "example.com/a": "b"}
	bare := corev1.Node{}
	bare.Name = "b"
	var got []map[string]map[string]string
	for line := range strings.Lines(jq(t, "("+oneLiner(t)+") | tojson", []corev1.Node{n, bare})) {
		var node map[string]map[string]string
		assert.NilError(t, json.Unmarshal([]byte(line), &node))
		got = append(got, node)
	}
	assert.DeepEqual(t, got, []map[string]map[string]string{
		{"a": {"bottlerocket.aws/updater-interface-version": "2.0.0", "bottlerocket.aws/current-version": "1.0.0"}},
		{"b": {}},
	})
}
