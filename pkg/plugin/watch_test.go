package plugin

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// watching runs a watch; next is its next line.
func (c *cluster) watching(t *testing.T, args ...string) (next func() string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	read, write := io.Pipe()
	p := newPlugin(genericiooptions.IOStreams{In: strings.NewReader(""), Out: write, ErrOut: io.Discard})
	p.now, p.again = func() time.Time { return noon }, 100*time.Millisecond
	done := make(chan int, 1)
	go func() {
		done <- p.run(ctx, append([]string{"--kubeconfig", c.kubeconfig, "-n", c.namespace, "status", "--watch"}, args...))
		_ = write.Close()
	}()
	t.Cleanup(func() {
		stop()
		// Output that is not awaited any more must not hold it up.
		go func() { _, _ = io.Copy(io.Discard, read) }()
		assert.Equal(t, <-done, 0)
	})
	lines := bufio.NewScanner(read)
	return func() string {
		assert.Assert(t, lines.Scan(), "the watch has ended")
		return strings.Join(strings.Fields(lines.Text()), " ")
	}
}

func (c *cluster) patch(node, body string) {
	c.t.Helper()
	_, err := c.client.CoreV1().Nodes().Patch(c.t.Context(), node, types.MergePatchType, []byte(body), metav1.PatchOptions{})
	assert.NilError(c.t, err)
}

// All nodes, and then each that changes, and no other.
func TestWatch(t *testing.T) {
	c := newCluster(t)
	c.node(idleHost("a"))
	c.node(idleHost("b"))
	next := c.watching(t)
	assert.Equal(t, next(), "NODE GROUP PHASE VERSION TARGET SINCE WAITING-FOR")
	assert.Equal(t, next(), "a - Waiting 1.50.0 1.51.0 60m -")
	assert.Equal(t, next(), "b - Waiting 1.50.0 1.51.0 60m -")
	c.patch("a", `{"metadata":{"labels":{"irrelevant":"yes"}}}`)
	c.patch("b", `{"metadata":{"annotations":{"bottlerocket.aws/paused":"Ann"}}}`)
	assert.Equal(t, next(), "b - Waiting 1.50.0 1.51.0 60m Paused: paused: Ann")
	c.run("pause", "a", "--reason", "Bob").is(t, "node/a paused\n")
	assert.Equal(t, next(), "a - Waiting 1.50.0 1.51.0 60m Paused: paused: Bob (by admin at 2026-01-05 12:00 UTC)")
	c.node(host{name: "late"})
	assert.Equal(t, next(), "late - New - - - -")
	c.patch("late", `{"metadata":{"labels":{"bottlerocket.aws/updater-interface-version":null}}}`)
	assert.Equal(t, next(), "late - Gone - - - Gone: not in the operator's care any more")
}

// JSON is one object after the other, of the nodes that are asked for.
func TestWatchJSON(t *testing.T) {
	c := newCluster(t)
	c.node(idleHost("a"))
	c.node(idleHost("b"))
	next := c.watching(t, "b", "-o", "json")
	object := func() (s struct {
		Node   string
		Paused *string
	}) {
		var text strings.Builder
		for depth := 0; ; {
			line := next()
			text.WriteString(line)
			depth += strings.Count(line, "{") - strings.Count(line, "}")
			if depth == 0 {
				break
			}
		}
		assert.NilError(t, json.Unmarshal([]byte(text.String()), &s))
		return s
	}
	assert.Equal(t, object().Node, "b")
	c.patch("a", `{"metadata":{"annotations":{"bottlerocket.aws/paused":"Ann"}}}`)
	c.patch("b", `{"metadata":{"annotations":{"bottlerocket.aws/paused":"Bob"}}}`)
	got := object()
	assert.Equal(t, got.Node, "b")
	assert.Equal(t, *got.Paused, "Bob")
}
