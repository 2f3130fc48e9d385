package simcluster_test

import (
	"bytes"
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/simcluster"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plugin"
)

// The kubectl plugin gets the leader's own plan by way of the API server's proxy, and one by a policy file.
func TestThePluginAsksTheLeader(t *testing.T) {
	w := inWorld(t)
	plan := func(policy string, args ...string) (out string, status int) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		args = append([]string{"kubectl-bottlerocket", "--kubeconfig", w.Plane.Kubeconfig(), "-n", simcluster.Namespace, "plan"}, args...)
		status = plugin.Run(t.Context(), args, strings.NewReader(policy), &stdout, &stderr)
		return stdout.String() + stderr.String(), status
	}
	var out string
	var status int
	// A controller that has just started doesn't lead yet.
	assert.NilError(t, simcluster.Await(t.Context(), "a leader answers", patience, func() (bool, error) {
		out, status = plan("")
		return status == 0, nil
	}))
	for _, m := range w.Fleet.Machines() {
		assert.Assert(t, strings.Contains(out, m.Name()+" "), out)
	}
	out, status = plan("version: 1\nmaxStaging: 7\n", "--policy", "-")
	assert.Equal(t, status, 0, out)
	assert.Assert(t, strings.Contains(out, "by standard input\n") && strings.Contains(out, "staging") && strings.Contains(out, " 7 "), out)
	out, status = plan("version: 1\nmaxStagin: 7\n", "--policy", "-")
	assert.Equal(t, out, "error: standard input: line 2: there is no field maxStagin: the nearest is maxStaging\n")
	assert.Equal(t, status, 1)
}

// command runs the plugin.
func (w *world) command(ctx context.Context, args ...string) (out string, status int) {
	var both bytes.Buffer
	args = append([]string{"kubectl-bottlerocket", "--kubeconfig", w.Plane.Kubeconfig(), "-n", simcluster.Namespace}, args...)
	status = plugin.Run(ctx, args, strings.NewReader(""), &both, &both)
	return both.String(), status
}

// One node goes through a whole cycle with nothing offered: drained, rebooted once, back in service, and no other node
// is touched. With a version offered it goes there before the others.
func TestThePluginTriesOneNode(t *testing.T) {
	w := inWorld(t)
	followers := w.followers(t)
	node := followers[0]
	before := w.boots()
	out, status := w.command(t.Context(), "e2e", "--node", node)
	assert.Assert(t, status == 1 && strings.Contains(out, "nothing was done"), out)
	out, status = w.command(t.Context(), "e2e", "--node", node, "--yes-reboot-it", "--timeout", bound.String())
	t.Log(out)
	assert.Equal(t, status, 0, out)
	for _, line := range []string{`checked +runs \S+, boot \S+; nothing is offered`, `Draining +taken out of service for a cycle`, `pod +default/on-` + node + `\S+ has left the node`,
		`Rebooting +nothing is left to evict`, `PASSED: ` + node + ` went through a cycle`} {
		assert.Check(t, regexp.MustCompile(line).MatchString(out), "%s is not in:\n%s", line, out)
	}
	for name, boots := range w.boots() {
		want := before[name]
		if name == node {
			want++
		}
		assert.Check(t, boots == want, "%s rebooted %d times", name, boots-before[name])
	}
	assert.NilError(t, w.awaitRest(t.Context()))

	// All are staged, and wait for a window. One that was out of service a moment ago would go after the others.
	node = followers[1]
	w.setPolicy(t, quick+"windows: [{schedule: '0 0 29 2 *', duration: 1m}]\n")
	defer w.setPolicy(t, quick)
	type ended struct {
		out    string
		status int
	}
	done := make(chan ended, 1)
	w.rollout(t, func() {
		assert.NilError(t, simcluster.Await(t.Context(), "all nodes wait with the new version", bound, func() (bool, error) {
			plan, err := w.plan(t.Context())
			waits := 0
			for _, n := range plan.Nodes {
				if err == nil && n.Phase == "Staged" && n.Target == version(w.released) && n.Reason == "WindowClosed" {
					waits++
				}
			}
			return waits == nodeCount, nil
		}))
		go func() {
			out, status := w.command(t.Context(), "e2e", "--node", node, "--yes-reboot-it", "--timeout", bound.String())
			done <- ended{out, status}
		}()
		assert.NilError(t, simcluster.Await(t.Context(), "the node is asked for", bound, func() (bool, error) {
			n, err := w.Client.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
			return err == nil && n.Annotations[string(marker.KeyCycle)] != "", err
		}))
		w.setPolicy(t, quick)
	})
	got := <-done
	t.Log(got.out)
	assert.Equal(t, got.status, 0, got.out)
	assert.Assert(t, strings.Contains(got.out, "WindowClosed: ") && strings.Contains(got.out, "PASSED: "+node+" was updated to "+version(w.released)), got.out)
	var first string
	var at time.Time
	list, err := w.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	assert.NilError(t, err)
	for i := range list.Items {
		m, _ := marker.Decode(list.Items[i].Annotations)
		if began := m.History[len(m.History)-1].Started; first == "" || began.Before(at) {
			first, at = list.Items[i].Name, began
		}
	}
	assert.Equal(t, first, node, "it goes before the others")
}

// followers are the nodes on which the controller that leads doesn't run: that one goes after all others.
func (w *world) followers(t *testing.T) []string {
	t.Helper()
	pods, err := w.Pods(t.Context(), controller)
	assert.NilError(t, err)
	lease, err := w.Client.CoordinationV1().Leases(simcluster.Namespace).Get(t.Context(), kube.LeaseName, metav1.GetOptions{})
	assert.NilError(t, err)
	var nodes []string
	for _, m := range w.Fleet.Machines() {
		if !slices.ContainsFunc(pods, func(p corev1.Pod) bool {
			return p.Spec.NodeName == m.Name() && strings.HasPrefix(*lease.Spec.HolderIdentity, p.Name)
		}) {
			nodes = append(nodes, m.Name())
		}
	}
	assert.Assert(t, len(nodes) > 1, nodes)
	return nodes
}
