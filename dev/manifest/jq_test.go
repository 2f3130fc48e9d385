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

// The README's one-liner says the same of a node as its annotations.
func TestReadmeOneLiner(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(filepath.Dir(must(Path())), "README.md"))
	assert.NilError(t, err)
	_, rest, found := strings.Cut(string(readme), "kubectl get nodes -o json | jq -r '")
	assert.Assert(t, found, "the README has lost its one-liner")
	program, _, _ := strings.Cut(rest, "'")
	n := corev1.Node{}
	n.Name = "a"
	n.Annotations = map[string]string{"bottlerocket.aws/current-version": "1.0.0", "bottlerocket.aws/action-wanted": "stabilize",
		"bottlerocket.aws/action-state": "ready"}
	bare := corev1.Node{}
	bare.Name = "b"
	assert.Equal(t, jq(t, program, []corev1.Node{n, bare}), "a\t1.0.0\t-\tstabilize\tready\t-\nb\t-\t-\t-\t-\t-\n")
}
