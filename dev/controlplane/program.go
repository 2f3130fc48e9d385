package controlplane

import (
	"path/filepath"
	"strings"

	"github.com/pkg/errors"
)

// Binaries says where the programs are.
type Binaries struct {
	// Version is the Kubernetes version, with its v.
	Version string
	// Dir holds them all.
	Dir string
	// The programs' paths.
	APIServer, ControllerManager, Scheduler, Kubectl, Etcd string
	// Those of a node, if Options.Node asked for them, are found by their names.
}

// program is one thing to build.
type program struct {
	name string
	pkg  string
	// kubernetes marks those that carry the Kubernetes version and follow
	// K8S_VERSION; the others always come from the pins of their module.
	kubernetes bool
	// node marks those that only a real node needs.
	node bool
	// module is the folder of the module that pins them; empty is dev/controlplane/programs.
	module string
}

// nodePrograms is the module of what Kubernetes doesn't bring itself.
const nodePrograms = "dev/realcluster/programs"

func (p program) folder() string {
	if p.module == "" {
		return "dev/controlplane/programs"
	}
	return p.module
}

var programs = []program{
	{name: "etcd", pkg: "go.etcd.io/etcd/server/v3"},
	{name: "kube-apiserver", pkg: "k8s.io/kubernetes/cmd/kube-apiserver", kubernetes: true},
	{name: "kube-controller-manager", pkg: "k8s.io/kubernetes/cmd/kube-controller-manager", kubernetes: true},
	{name: "kube-scheduler", pkg: "k8s.io/kubernetes/cmd/kube-scheduler", kubernetes: true},
	{name: "kubectl", pkg: "k8s.io/kubernetes/cmd/kubectl", kubernetes: true},

	{name: "kubelet", pkg: "k8s.io/kubernetes/cmd/kubelet", kubernetes: true, node: true},
	{name: "kube-proxy", pkg: "k8s.io/kubernetes/cmd/kube-proxy", kubernetes: true, node: true},
	{name: "containerd", pkg: "github.com/containerd/containerd/v2/cmd/containerd", node: true, module: nodePrograms},
	{name: "containerd-shim-runc-v2", pkg: "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2", node: true, module: nodePrograms},
	{name: "ctr", pkg: "github.com/containerd/containerd/v2/cmd/ctr", node: true, module: nodePrograms},
	{name: "ptp", pkg: "github.com/containernetworking/plugins/plugins/main/ptp", node: true, module: nodePrograms},
	{name: "loopback", pkg: "github.com/containernetworking/plugins/plugins/main/loopback", node: true, module: nodePrograms},
	{name: "host-local", pkg: "github.com/containernetworking/plugins/plugins/ipam/host-local", node: true, module: nodePrograms},
	{name: "coredns", pkg: "./coredns", node: true, module: nodePrograms},
	{name: "pause", pkg: "./pause", node: true, module: nodePrograms},
	{name: "web", pkg: "./web", node: true, module: nodePrograms},
}

func binaries(version, dir string) Binaries {
	return Binaries{
		Version:           version,
		Dir:               dir,
		APIServer:         filepath.Join(dir, "kube-apiserver"),
		ControllerManager: filepath.Join(dir, "kube-controller-manager"),
		Scheduler:         filepath.Join(dir, "kube-scheduler"),
		Kubectl:           filepath.Join(dir, "kubectl"),
		Etcd:              filepath.Join(dir, "etcd"),
	}
}

// ldflags strips a program and gives the Kubernetes ones their version: without
// it they answer with a placeholder that clients can't parse.
func (p program) ldflags(version string) (string, error) {
	if !p.kubernetes {
		return "-s -w", nil
	}
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) != 3 {
		return "", errors.Errorf("kubernetes version %q is not of the form 1.36.3", version)
	}
	const pkg = "k8s.io/component-base/version."
	return strings.Join([]string{
		"-s -w",
		"-X " + pkg + "gitVersion=" + version,
		"-X " + pkg + "gitMajor=" + parts[0],
		"-X " + pkg + "gitMinor=" + parts[1],
		"-X " + pkg + "gitTreeState=clean",
	}, " "), nil
}
