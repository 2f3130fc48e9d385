package realcluster

import (
	"bytes"
	"crypto/rand"
	"embed"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
)

//go:embed etc
var etc embed.FS

// facts fill the files below etc.
type facts struct {
	Name    string
	Number  int
	DNS     string
	Runc    string
	Pause   string
	CoreDNS string
	Taint   string
}

// render fills one of the files below etc.
func render(name string, f facts) ([]byte, error) {
	t, err := template.ParseFS(etc, "etc/"+name)
	if err != nil {
		return nil, errors.Wrapf(err, "reading %s", name)
	}
	var b bytes.Buffer
	err = t.Execute(&b, f)
	return b.Bytes(), errors.Wrapf(err, "filling %s", name)
}

// folders of a node's disk.
var folders = []string{
	"dev", "etc/alternatives", "etc/cni/net.d", "etc/containerd", "etc/kubernetes", "home", "mnt", "oldroot", "opt/bin", "proc", "root",
	"run", "srv", "sys", "tmp", "usr", "var/lib/containerd", "var/lib/kubelet", "var/log", "var/tmp",
}

// makeDisk makes the folder that is the node's root: what it holds outlives a power cut, but for /run.
func (n *Node) makeDisk(plane *controlplane.ControlPlane) error {
	for _, f := range folders {
		if err := os.MkdirAll(filepath.Join(n.root, f), 0o755); err != nil {
			return errors.Wrap(err, "making a node's disk")
		}
	}
	for _, link := range []string{"bin", "sbin", "lib", "lib64"} {
		if err := os.Symlink("usr/"+link, filepath.Join(n.root, link)); err != nil {
			return errors.Wrap(err, "making a node's disk")
		}
	}
	if err := os.Symlink("/run", filepath.Join(n.root, "var/run")); err != nil {
		return errors.Wrap(err, "making a node's disk")
	}
	runc, err := exec.LookPath("runc")
	if err != nil {
		return errors.Wrap(err, "looking for runc")
	}
	f := facts{Name: n.name, Number: n.number, DNS: dnsService, Runc: runc, Pause: pauseImage, Taint: n.taint}
	if n.debian != nil {
		if err := n.installLocal(); err != nil {
			return err
		}
	}
	files := map[string][]byte{
		"etc/hostname":                   []byte(n.name + "\n"),
		"etc/resolv.conf":                nil,
		"etc/hosts":                      fmt.Appendf(nil, "127.0.0.1 localhost\n%s %s\n", n.address(), n.name),
		"etc/kubernetes/ca.crt":          plane.CACert(),
		"etc/nsswitch.conf":              []byte("passwd: files\ngroup: files\nhosts: files dns\n"),
		"etc/passwd":                     []byte("root:x:0:0:root:/root:/bin/bash\n"),
		"etc/group":                      []byte("root:x:0:\n"),
		"etc/kubernetes/kubelet.yaml":    nil,
		"etc/kubernetes/kube-proxy.yaml": nil,
	}
	id := make([]byte, 16)
	if _, err := rand.Read(id); err != nil {
		return errors.Wrap(err, "drawing a machine ID")
	}
	files["etc/machine-id"] = []byte(hex.EncodeToString(id) + "\n")
	if files["etc/kubernetes/node.crt"], files["etc/kubernetes/node.key"], err = plane.ServingCertificate(n.name, n.address()); err != nil {
		return err
	}
	for name, to := range map[string]string{
		"kubelet.yaml": "etc/kubernetes/kubelet.yaml", "kube-proxy.yaml": "etc/kubernetes/kube-proxy.yaml",
		"containerd.toml": "etc/containerd/config.toml", "cni.conflist": "etc/cni/net.d/10-pods.conflist", "node-init.sh": "etc/node-init",
	} {
		if files[to], err = render(name, f); err != nil {
			return err
		}
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(n.root, name), content, 0o600); err != nil {
			return errors.Wrap(err, "filling a node's disk")
		}
	}
	for _, readable := range []string{"etc/passwd", "etc/group", "etc/hosts", "etc/nsswitch.conf", "etc/resolv.conf"} {
		if err := os.Chmod(filepath.Join(n.root, readable), 0o644); err != nil {
			return errors.Wrap(err, "filling a node's disk")
		}
	}
	for user, to := range map[string][]string{
		"kubelet":    {"system:node:" + n.name, "system:nodes"},
		"kube-proxy": {"system:kube-proxy"},
	} {
		cfg, err := plane.UserConfig(to[0], to[1:]...)
		if err != nil {
			return err
		}
		if err := controlplane.WriteKubeconfig(filepath.Join(n.root, "etc/kubernetes", user+".kubeconfig"), cfg); err != nil {
			return err
		}
	}
	return nil
}

// writeBoot writes what a boot changes: os-release and the boot ID.
func (n *Node) writeBoot() error {
	now := n.Host.Snapshot()
	release := debianRelease
	if n.debian == nil {
		release = fmt.Sprintf("NAME=Bottlerocket\nID=bottlerocket\nPRETTY_NAME=%q\nVARIANT_ID=%s\nVERSION_ID=%s\n",
			hostsim.PrettyName(now.Version, n.variant), n.variant, now.Version)
	}
	for name, content := range map[string]string{"etc/os-release": release, bootIDFile: now.BootID + "\n"} {
		if err := os.WriteFile(filepath.Join(n.root, name), []byte(content), 0o644); err != nil {
			return errors.Wrapf(err, "booting %s", n.name)
		}
	}
	return nil
}

// clearRun empties /run, as a boot does.
func (n *Node) clearRun() error {
	run := filepath.Join(n.root, "run")
	entries, err := os.ReadDir(run)
	if err != nil {
		return errors.Wrap(err, "emptying /run")
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(run, e.Name())); err != nil {
			return errors.Wrap(err, "emptying /run")
		}
	}
	return nil
}

// Log returns the last bytes of what a program of the node wrote: kubelet, containerd, kube-proxy or init.
func (n *Node) Log(program string, bytes int) string {
	b, err := os.ReadFile(filepath.Join(n.root, "var/log", program+".log"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b[max(0, len(b)-bytes):]))
}
