package controlplane

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/process"
	"github.com/pkg/errors"
)

// run starts one program of the control plane with the cluster's folder as its
// working folder and its output in <name>.log.
func (c *ControlPlane) run(name, path string, args ...string) (*process.Process, error) {
	log, err := process.Log(c.logPath(name))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	if n := c.config.Network; n != nil {
		line := append(append(slices.Clone(n.Enter), path), args...)
		path, args = line[0], line[1:]
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = c.dir
	cmd.Stdout, cmd.Stderr = log, log
	// A program of the cluster must not find the caller's own cluster.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + c.dir, "TMPDIR=" + c.dir}
	return process.Start(cmd)
}

func (c *ControlPlane) logPath(name string) string {
	return filepath.Join(c.dir, name+".log")
}

// write puts a file into the cluster's folder and returns its path.
func (c *ControlPlane) write(name string, content []byte) (string, error) {
	path := filepath.Join(c.dir, name)
	return path, errors.Wrapf(os.WriteFile(path, content, 0o600), "writing %s", name)
}
