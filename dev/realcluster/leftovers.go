package realcluster

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"

	"github.com/pkg/errors"
)

// Leftovers names what there still is of a cluster after its Stop: processes, mounts, cgroups, files.
// Namespaces end with their last process and mount.
func (c *Cluster) Leftovers() ([]string, error) {
	var out []string
	processes, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return nil, errors.Wrap(err, "listing processes")
	}
	for _, path := range processes {
		// One that ended meanwhile is no leftover.
		if b, err := os.ReadFile(path); err == nil && bytes.Contains(b, []byte(ownCgroup())) {
			out = append(out, "process "+filepath.Base(filepath.Dir(path)))
		}
	}
	if c.network != nil && c.network.holder.Running() {
		out = append(out, "the process that holds the network")
	}
	groups, err := filepath.Glob(filepath.Join(cgroupRoot, "*", ownCgroup()))
	if err != nil {
		return nil, errors.Wrap(err, "listing cgroups")
	}
	for _, path := range groups {
		out = append(out, "cgroup "+path)
	}
	if c.Plane == nil {
		return out, nil
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, errors.Wrap(err, "listing mounts")
	}
	for line := range strings.SplitSeq(string(mounts), "\n") {
		if strings.Contains(line, c.Plane.Dir()) {
			out = append(out, "mount "+line)
		}
	}
	if _, err := os.Stat(c.Plane.Dir()); !os.IsNotExist(err) {
		out = append(out, "folder "+c.Plane.Dir())
	}
	return out, nil
}
