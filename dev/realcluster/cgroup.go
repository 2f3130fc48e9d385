package realcluster

import (
	"bufio"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pkg/errors"
)

// Each node is in a cgroup of its own in every hierarchy, below one of the cluster: so kubelets see their
// own node only, and a node's last process can be waited for.

const (
	cgroupRoot = "/sys/fs/cgroup"
	// The process ID of the owner follows.
	cgroupPrefix = "bottlerocket-realcluster-"
	cgroupWithin = 20 * time.Second
	cgroupPoll   = 50 * time.Millisecond
)

// hierarchies are the folders of the version 1 hierarchies.
func hierarchies() ([]string, error) {
	f, err := os.Open("/proc/self/cgroup")
	if err != nil {
		return nil, errors.Wrap(err, "listing cgroup hierarchies")
	}
	defer f.Close()
	var out []string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		parts := strings.SplitN(lines.Text(), ":", 3)
		if len(parts) != 3 || parts[0] == "0" {
			continue
		}
		out = append(out, filepath.Join(cgroupRoot, strings.TrimPrefix(parts[1], "name=")))
	}
	return out, errors.Wrap(lines.Err(), "listing cgroup hierarchies")
}

func ownCgroup() string { return cgroupPrefix + strconv.Itoa(os.Getpid()) }

// makeCgroup makes the node's cgroup everywhere and returns the folders.
func makeCgroup(node string) ([]string, error) {
	all, err := hierarchies()
	if err != nil {
		return nil, err
	}
	var out []string
	for _, h := range all {
		cluster := filepath.Join(h, ownCgroup())
		path := filepath.Join(cluster, node)
		if err := os.MkdirAll(cluster, 0o755); err != nil {
			return nil, errors.Wrap(err, "making a cgroup")
		}
		if err := inheritCpuset(h, cluster); err != nil {
			return nil, err
		}
		if err := os.MkdirAll(path, 0o755); err != nil {
			return nil, errors.Wrap(err, "making a cgroup")
		}
		out = append(out, path)
	}
	return out, nil
}

// inheritCpuset fills a new cpuset: without CPUs and memory it takes no process.
func inheritCpuset(from, to string) error {
	for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
		b, err := os.ReadFile(filepath.Join(from, name))
		if os.IsNotExist(err) {
			return nil
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), b, 0o644)
		}
		if err != nil {
			return errors.Wrap(err, "filling a cpuset")
		}
	}
	return errors.Wrap(os.WriteFile(filepath.Join(to, "cgroup.clone_children"), []byte("1"), 0o644), "filling a cpuset")
}

// removeCgroup waits until the node's last process is gone and removes its cgroups.
func removeCgroup(ctx context.Context, node string) error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, cgroupWithin)
	defer cancel()
	for _, h := range all {
		for {
			err := removeTree(filepath.Join(h, ownCgroup(), node))
			if err == nil {
				break
			}
			select {
			case <-ctx.Done():
				return errors.Wrapf(err, "removing the cgroups of %s", node)
			case <-time.After(cgroupPoll):
			}
		}
	}
	return nil
}

// sweepCgroups removes the cgroups of clusters whose owner was killed, and our own if they are empty.
func sweepCgroups() {
	all, err := hierarchies()
	if err != nil {
		return
	}
	for _, h := range all {
		old, err := filepath.Glob(filepath.Join(h, cgroupPrefix+"*"))
		if err != nil {
			return
		}
		for _, path := range old {
			pid, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(path), cgroupPrefix))
			if err != nil || pid != os.Getpid() && syscall.Kill(pid, 0) == nil {
				continue
			}
			_ = removeTree(path)
		}
	}
}

// removeTree removes a cgroup and those below it; its files go with it.
func removeTree(path string) error {
	var dirs []string
	err := filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			if os.IsNotExist(err) {
				return nil
			}
			return err
		}
		if d.IsDir() {
			dirs = append(dirs, p)
		}
		return nil
	})
	if err != nil {
		return errors.Wrap(err, "listing cgroups")
	}
	for i := len(dirs) - 1; i >= 0; i-- {
		if err := syscall.Rmdir(dirs[i]); err != nil && err != syscall.ENOENT {
			return errors.Wrapf(err, "removing cgroup %s", dirs[i])
		}
	}
	return nil
}
