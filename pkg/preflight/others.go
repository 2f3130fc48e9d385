package preflight

import (
	"fmt"
	"slices"
	"strings"
)

// groupBrupop is the group of Brupop's custom resource.
const groupBrupop = "brupop.bottlerocket.aws"

func otherUpdaters(s *Snapshot) []Finding {
	var found []Finding
	for _, g := range s.Groups.Value {
		if g == groupBrupop {
			found = append(found,
				failed("Brupop is installed: the API has the group "+groupBrupop+". Two updaters on one host disturb each other",
					"uninstall it with its CRD bottlerocketshadows."+groupBrupop+", as in docs/migration.md#from-brupop-02-to-1x; first see that it is idle: kubectl get brs -A")...)
		}
	}
	found = append(found, s.rebooters()...)
	var old []string
	for i := range s.Nodes.Value {
		if n := &s.Nodes.Value[i]; len(n.OldLabels) > 0 {
			old = append(old, n.Name)
		}
	}
	if len(old) > 0 {
		found = append(found, warned("labels of the 0.1.x operator are left on "+of(old, "node")+"; nothing reads them",
			"kubectl label node --all bottlerocket.aws/update-available- bottlerocket.aws/action-wanted- bottlerocket.aws/action-active- bottlerocket.aws/action-state-")...)
	}
	for _, part := range []reading{s.Groups, s.DaemonSets, s.UpgradePlans, s.Nodes} {
		if b := blind(part); b != nil {
			found = append(found, b...)
		}
	}
	if found == nil {
		return well("no other updater was found")
	}
	return found
}

// rebooters finds what else updates or reboots nodes by what runs in the cluster.
func (s *Snapshot) rebooters() []Finding {
	var found []Finding
	for _, d := range s.DaemonSets.Value {
		name := d.Namespace + "/" + d.Name
		switch {
		case slices.Contains(firstOperator, d.Name):
			found = append(found,
				failed("the 0.1.x operator is installed: DaemonSet "+name+". It lets every agent write to every Node",
					"remove it as in docs/migration.md#from-the-01x-operator: kubectl delete -f the-old-manifest.yaml")...)
		case d.Name == "brupop-agent":
			found = append(found,
				failed("Brupop is installed: DaemonSet "+name+". Two updaters on one host disturb each other",
					"uninstall it as in docs/migration.md#from-brupop-02-to-1x; first see that it is idle: kubectl get brs -A")...)
		case d.Name == kured || d.App == kured || slices.ContainsFunc(d.Images, isKured):
			found = append(found,
				warned("kured is installed: DaemonSet "+name+". It drains and reboots nodes by limits of its own",
					fmt.Sprintf("keep it from Bottlerocket nodes by a nodeAffinity: kubectl -n %s edit daemonset %s",
						d.Namespace, d.Name))...)
		}
	}
	for _, p := range s.UpgradePlans.Value {
		if len(p.Nodes) > 0 {
			found = append(found, failed("Plan "+p.Name+" of system-upgrade-controller selects "+of(p.Nodes,
				"node")+". Two updaters on one host disturb each other",
				"take these nodes out of its nodeSelector: kubectl edit plans.upgrade.cattle.io -n NAMESPACE NAME")...)
		}
	}
	return found
}

const kured = "kured"

// firstOperator are the DaemonSets of the 0.1.x operator.
var firstOperator = []string{"update-operator-agent-update-api", "update-operator-agent-updog"}

// isKured reports whether an image is kured's, by the last part of its name.
func isKured(image string) bool {
	name := image[strings.LastIndex(image, "/")+1:]
	name, _, _ = strings.Cut(name, "@")
	name, _, _ = strings.Cut(name, ":")
	return name == kured
}
