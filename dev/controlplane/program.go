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
	// The paths of the programs of a control plane. Those of other groups are found by their names.
	APIServer, ControllerManager, Scheduler, Kubectl, Etcd string
}

// Group is a set of programs that are asked for together.
type Group string

// Groups of programs.
const (
	// GroupControlPlane is etcd and Kubernetes without nodes.
	GroupControlPlane Group = "control-plane"
	// GroupNode is what a real node needs: kubelet, containerd and so on.
	GroupNode Group = "node"
	// GroupPrometheus is prometheus and promtool.
	GroupPrometheus Group = "prometheus"
)

// Groups are all there are.
var Groups = []Group{GroupControlPlane, GroupNode, GroupPrometheus}

// program is one thing to build.
type program struct {
	name string
	pkg  string
	// kubernetes marks those that carry the Kubernetes version and follow
	// K8S_VERSION; the others always come from the pins of their module.
	kubernetes bool
	group      Group
	// module is the folder of the module that pins them; empty is dev/controlplane/programs.
	module string
	// tags are build tags, with commas.
	tags string
	// called is the version of Kubernetes that it calls itself; empty is the one that it is of.
	called string
}

const (
	// nodePrograms is the module of what Kubernetes doesn't bring itself.
	nodePrograms       = "dev/realcluster/programs"
	prometheusPrograms = "dev/prometheus/programs"
	// slim leaves out all discovery of targets but that by files and by Kubernetes: the clients of some twenty clouds.
	slim = "remove_all_sd,enable_kubernetes_sd"
)

func (p program) folder() string {
	if p.module == "" {
		return "dev/controlplane/programs"
	}
	return p.module
}

var programs = []program{
	{name: "etcd", pkg: "go.etcd.io/etcd/server/v3", group: GroupControlPlane},
	{name: "kube-apiserver", pkg: "k8s.io/kubernetes/cmd/kube-apiserver", kubernetes: true, group: GroupControlPlane},
	{name: "kube-controller-manager", pkg: "k8s.io/kubernetes/cmd/kube-controller-manager", kubernetes: true, group: GroupControlPlane},
	{name: "kube-scheduler", pkg: "k8s.io/kubernetes/cmd/kube-scheduler", kubernetes: true, group: GroupControlPlane},
	{name: "kubectl", pkg: "k8s.io/kubernetes/cmd/kubectl", kubernetes: true, group: GroupControlPlane},

	{name: "kubelet", pkg: "k8s.io/kubernetes/cmd/kubelet", kubernetes: true, group: GroupNode},
	{name: "kube-proxy", pkg: "k8s.io/kubernetes/cmd/kube-proxy", kubernetes: true, group: GroupNode},
	{name: "containerd", pkg: "github.com/containerd/containerd/v2/cmd/containerd", group: GroupNode, module: nodePrograms},
	{name: "containerd-shim-runc-v2", pkg: "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2", group: GroupNode, module: nodePrograms},
	{name: "ctr", pkg: "github.com/containerd/containerd/v2/cmd/ctr", group: GroupNode, module: nodePrograms},
	{name: "ptp", pkg: "github.com/containernetworking/plugins/plugins/main/ptp", group: GroupNode, module: nodePrograms},
	{name: "loopback", pkg: "github.com/containernetworking/plugins/plugins/main/loopback", group: GroupNode, module: nodePrograms},
	{name: "host-local", pkg: "github.com/containernetworking/plugins/plugins/ipam/host-local", group: GroupNode, module: nodePrograms},
	{name: "coredns", pkg: "./coredns", group: GroupNode, module: nodePrograms},
	{name: "pause", pkg: "./pause", group: GroupNode, module: nodePrograms},
	{name: "web", pkg: "./web", group: GroupNode, module: nodePrograms},

	{name: "prometheus", pkg: "github.com/prometheus/prometheus/cmd/prometheus", group: GroupPrometheus, module: prometheusPrograms, tags: slim},
	{name: "promtool", pkg: "github.com/prometheus/prometheus/cmd/promtool", group: GroupPrometheus, module: prometheusPrograms, tags: slim},
}

// kubelets are those that call themselves other versions than theirs.
func kubelets(called []string) []program {
	var out []program
	for _, v := range called {
		out = append(out, program{name: "kubelet-" + v, pkg: "k8s.io/kubernetes/cmd/kubelet", kubernetes: true, group: GroupNode, called: v})
	}
	return out
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

// of names the program, and the version if it is of Kubernetes.
func (p program) of(version string) string {
	if !p.kubernetes {
		return p.name
	}
	return p.name + " " + version
}

// ldflags strips a program and gives the Kubernetes ones their version: without
// it they answer with a placeholder that clients can't parse.
func (p program) ldflags(version string) (string, error) {
	if !p.kubernetes {
		return "-s -w", nil
	}
	if p.called != "" {
		version = p.called
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
