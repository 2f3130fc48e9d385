package simcluster

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/nodesim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

const plansFile = "components/plans/plans.yaml"

// UpgradesKubelet is a pod of a plan that has the machine's kubelet be of the plan's target.
func UpgradesKubelet(p *corev1.Pod) nodesim.PlanRun {
	return nodesim.PlanRun{Runs: time.Second, Kubelet: p.Annotations[kube.PlanTarget]}
}

// AddPlanned makes one more machine, of another system than Bottlerocket, that plans update: does says what their pods do.
func (c *Cluster) AddPlanned(ctx context.Context, name, kubelet string, does func(*corev1.Pod) nodesim.PlanRun) (*nodesim.Machine, error) {
	return c.Fleet.Add(ctx, nodesim.MachineConfig{
		// There is a host that nothing asks: machines have one.
		Host: hostsim.Config{Version: c.config.Version, Variant: Variant, Arch: Arch, Repo: c.Repo},
		Name: name, OSImage: "Debian GNU/Linux 12 (bookworm)", KubeletVersion: kubelet,
		Labels: map[string]string{string(marker.KeyInterfaceVersion): string(fleet.InterfacePlan)},
		Plan:   does,
	})
}

// InstallPlans applies components/plans/plans.yaml and examples of docs/plans, after Install.
func (c *Cluster) InstallPlans(ctx context.Context, examples ...string) error {
	if err := c.apply(ctx, plansFile); err != nil {
		return err
	}
	root, err := controlplane.Root()
	if err != nil {
		return err
	}
	for _, name := range examples {
		if _, err := c.Kubectl(ctx, "apply", "-f", filepath.Join(root, "docs/plans", name)); err != nil {
			return err
		}
	}
	return nil
}

// read reads a file of this checkout.
func read(name string) ([]byte, error) {
	root, err := controlplane.Root()
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(filepath.Join(root, name))
	return content, errors.Wrap(err, "reading a manifest")
}
