package simcluster_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/simcluster"
)

const (
	deployed = "deployment/update-operator-controller"
	patience = time.Minute
)

// The controller runs with the flags and the environment that stand in its Deployment, and with others as soon as they
// are changed there: MAX_CONCURRENT_UPDATE, as users of the older operators have it, where the policy says nothing else.
func TestTheControllerRunsWithWhatItsDeploymentSays(t *testing.T) {
	w := inWorld(t)
	before := w.controllerArgs(t)
	assert.Assert(t, strings.Contains(strings.Join(before, " "), "-lease-duration=3s"), "%q", before)
	t.Cleanup(func() { w.setControllerArgs(t, before) })

	w.kubectl(t, "set", "env", deployed, "LEVEL=debug", "MAX_CONCURRENT_UPDATE=3")
	w.setControllerArgs(t, append(before, "-log-level=$(LEVEL)"))
	assert.NilError(t, simcluster.Await(t.Context(), "the plan goes by the new limit", patience, func() (bool, error) {
		out, err := w.plan(t.Context())
		return out.Limit == 3, err
	}))
	assert.NilError(t, simcluster.Await(t.Context(), "the controller logs what the new flag says", patience, func() (bool, error) {
		var all strings.Builder
		for _, m := range w.Fleet.Machines() {
			said, err := w.log(t.Context(), controller, m.Name())
			if err != nil {
				return false, err
			}
			all.WriteString(said)
		}
		return strings.Contains(all.String(), `"level":"debug"`), nil
	}))
	w.kubectl(t, "set", "env", deployed, "LEVEL-", "MAX_CONCURRENT_UPDATE-")
}

// What can't run here doesn't start, and its pod says why, while the controller that was there goes on: another image,
// and a flag that a process on a shared machine can't have.
func TestAPodThatCantRunHereSaysWhy(t *testing.T) {
	w := inWorld(t)
	before := w.controllerArgs(t)
	for _, c := range []struct{ what, says string }{
		{`{"image": "example.com/operator:v9"}`, `there is no image "example.com/operator:v9" here, only "public.ecr.aws/`},
		{`{"args": ["-controller", "-listen=:8080"]}`, `-listen is this machine's to say on a local cluster: take it out of the args of container "controller"`},
		{`{"envFrom": [{"configMapRef": {"name": "more"}}]}`, "takes variables from ConfigMaps or Secrets (envFrom), which isn't simulated"},
	} {
		t.Run(c.what, func(t *testing.T) {
			w.patchController(t, c.what)
			assert.NilError(t, simcluster.Await(t.Context(), "a pod says "+c.says, patience, func() (bool, error) {
				pods, err := w.Pods(t.Context(), controller)
				return strings.Contains(waitsFor(pods), c.says), err
			}))
			w.kubectl(t, "rollout", "undo", deployed)
			w.kubectl(t, "rollout", "status", "--timeout=1m", deployed)
		})
	}
	assert.DeepEqual(t, w.controllerArgs(t), before)
}

// The two proxies are on different nodes, so that one node's reboot leaves agents a door; also in a cluster without
// zones, as this one is.
func TestProxiesAreApart(t *testing.T) {
	w := inWorld(t)
	pods, err := w.Pods(t.Context(), proxy)
	assert.NilError(t, err)
	assert.Equal(t, len(pods), 2)
	assert.Assert(t, pods[0].Spec.NodeName != pods[1].Spec.NodeName, "both are on %s", pods[0].Spec.NodeName)
}

func waitsFor(pods []corev1.Pod) string {
	var all strings.Builder
	for i := range pods {
		for _, c := range pods[i].Status.ContainerStatuses {
			if c.State.Waiting != nil {
				all.WriteString(c.State.Waiting.Message + "\n")
			}
		}
	}
	return all.String()
}

// kubectl says something about the operator's own namespace.
func (w *world) kubectl(t *testing.T, args ...string) {
	t.Helper()
	_, err := w.Kubectl(context.WithoutCancel(t.Context()), append([]string{"-n", simcluster.Namespace}, args...)...)
	assert.NilError(t, err)
}

func (w *world) controllerArgs(t *testing.T) []string {
	t.Helper()
	d, err := w.Client.AppsV1().Deployments(simcluster.Namespace).Get(t.Context(), "update-operator-controller", metav1.GetOptions{})
	assert.NilError(t, err)
	return d.Spec.Template.Spec.Containers[0].Args
}

func (w *world) setControllerArgs(t *testing.T, args []string) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"args": args})
	assert.NilError(t, err)
	w.patchController(t, string(text))
	w.kubectl(t, "rollout", "status", "--timeout=1m", deployed)
}

// patchController changes fields of the container in the controller's Deployment.
func (w *world) patchController(t *testing.T, fields string) {
	t.Helper()
	var container map[string]any
	assert.NilError(t, json.Unmarshal([]byte(fields), &container))
	container["name"] = controller
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{container}}}}})
	assert.NilError(t, err)
	w.kubectl(t, "patch", deployed, "-p", string(patch))
}
