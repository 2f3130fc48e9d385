package bench

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/port"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/process"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/simcluster"
)

// controllerUser is the controller's name for the API server.
const controllerUser = "bench-controller"

// operator is bottlerocket-update-operator, built as the image has it.
func operator(b *testing.B, plane *controlplane.ControlPlane) string {
	b.Helper()
	root, err := controlplane.Root()
	assert.NilError(b, err)
	path := filepath.Join(plane.Dir(), "bottlerocket-update-operator")
	build := exec.CommandContext(b.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, "./cmd/bottlerocket-update-operator")
	build.Dir = root
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	assert.NilError(b, err, "%s", out)
	return path
}

// controllerProcess is the real program in its mode -controller.
type controllerProcess struct {
	*process.Process
	url string
	log string
}

func startController(b *testing.B, plane *controlplane.ControlPlane, path string) *controllerProcess {
	b.Helper()
	config, err := plane.UserConfig(controllerUser, "system:masters")
	assert.NilError(b, err)
	kubeconfig := filepath.Join(plane.Dir(), "controller.kubeconfig")
	assert.NilError(b, controlplane.WriteKubeconfig(kubeconfig, config))
	listen := freeAddress(b)
	c := &controllerProcess{url: "http://" + listen}
	c.Process, c.log = start(b, plane, "controller", path, "-controller", "-kubeconfig="+kubeconfig, "-listen="+listen, "-node-name=none", "-pod-name=controller")
	return c
}

// start starts the program as a container would, with no variable of this environment, and returns it with
// the path of its log.
func start(b *testing.B, plane *controlplane.ControlPlane, name, path string, args ...string) (*process.Process, string) {
	b.Helper()
	logPath := filepath.Join(plane.Dir(), name+".log")
	log, err := process.Log(logPath)
	assert.NilError(b, err)
	defer log.Close()
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = plane.Dir(), log, log
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	p, err := process.Start(cmd)
	assert.NilError(b, err)
	b.Cleanup(func() { p.Stop(10 * time.Second) })
	return p, logPath
}

// awaitReady waits until the controller has seen the fleet.
func (c *controllerProcess) awaitReady(b *testing.B) {
	b.Helper()
	awaitReady(b, "the controller", c.Process, c.url, c.log)
}

func awaitReady(b *testing.B, program string, p *process.Process, url, log string) {
	b.Helper()
	assert.NilError(b, simcluster.Await(b.Context(), program+" is ready", time.Minute, func() (bool, error) {
		if !p.Running() {
			return false, p.Wait()
		}
		code, _, err := get(b.Context(), url+"/readyz")
		return code == http.StatusOK, err
	}), process.LogTail(log, 2048))
}

func get(ctx context.Context, url string) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

func freeAddress(b *testing.B) string {
	b.Helper()
	p, err := port.Reserve(0)
	assert.NilError(b, err)
	b.Cleanup(p.Release)
	return p.Address()
}
