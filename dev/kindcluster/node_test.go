package kindcluster

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
)

// stub is a cluster of one worker whose commands are only written down. at looks at the worker before each.
func stub(t *testing.T, at func(n *Node, command string)) (n *Node, commands func() []string) {
	t.Helper()
	var lines []string
	c := &Cluster{config: Config{Version: "1.50.0", Variant: "aws-k8s-1.36"}, Repo: &hostsim.Repo{}, dir: t.TempDir()}
	c.run = func(_ context.Context, _ io.Reader, name string, args ...string) (string, error) {
		line := name + " " + strings.Join(args, " ")
		lines = append(lines, line)
		at(n, line)
		return "", nil
	}
	c.ctx, c.cancel = context.WithCancel(t.Context())
	t.Cleanup(c.cancel)
	assert.NilError(t, c.add(1))
	n = c.Nodes[0]
	t.Cleanup(n.CloseHostAPI)
	return n, func() []string {
		c.work.Wait()
		return lines
	}
}

// file is what the node sees of its host.
func (n *Node) file(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(n.folder, name))
	assert.NilError(t, err)
	return strings.TrimSpace(string(b))
}

func (n *Node) answers() bool {
	conn, err := net.Dial("unix", filepath.Join(n.folder, "api.sock"))
	if err == nil {
		_ = conn.Close()
	}
	return err == nil
}

// A reboot cuts the power first, and what the new boot changes is there before the container starts.
func TestReboot(t *testing.T) {
	started := false
	n, commands := stub(t, func(n *Node, command string) {
		if command != "docker start "+Name+"-worker" {
			return
		}
		started = true
		assert.Check(t, n.answers())
		assert.Check(t, n.file(t, "boot-id") == n.Host.BootID())
		assert.Check(t, strings.Contains(n.file(t, "os-release"), `PRETTY_NAME="Bottlerocket OS 1.50.0 (aws-k8s-1.36)"`))
	})
	first := n.Host.BootID()
	assert.Equal(t, n.file(t, "boot-id"), first)
	assert.Assert(t, n.answers(), "kind makes the container of a host that is up")

	n.onReboot()
	assert.DeepEqual(t, commands(), []string{"docker kill " + Name + "-worker", "docker wait " + Name + "-worker", "docker start " + Name + "-worker"})
	assert.Assert(t, started && n.Up() && n.Cuts() == 1)
	assert.Assert(t, n.Host.BootID() != first)
}

func TestRebootIntoTheDark(t *testing.T) {
	n, commands := stub(t, func(*Node, string) {})
	n.StayDark(true)
	n.onReboot()
	assert.DeepEqual(t, commands(), []string{"docker kill " + Name + "-worker", "docker wait " + Name + "-worker"})
	assert.Assert(t, !n.Up() && !n.answers() && n.Host.Snapshot().Off)

	n.StayDark(false)
	assert.NilError(t, n.PowerOn(t.Context()))
	assert.Assert(t, n.Up() && n.answers() && n.file(t, "boot-id") == n.Host.BootID())
}

// kind's names of workers: the first one has no number.
func TestNames(t *testing.T) {
	n, _ := stub(t, func(*Node, string) {})
	assert.NilError(t, n.cluster.add(2))
	second := n.cluster.Nodes[1]
	t.Cleanup(second.CloseHostAPI)
	assert.Equal(t, n.Name(), "bottlerocket-update-operator-e2e-worker")
	assert.Equal(t, second.Name(), "bottlerocket-update-operator-e2e-worker2")
	assert.Assert(t, second.Host.BootID() != n.Host.BootID())
}
