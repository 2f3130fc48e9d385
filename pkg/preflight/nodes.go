package preflight

import (
	"fmt"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// nodesWhere returns the names of the nodes for which is holds.
func (s *Snapshot) nodesWhere(is func(*Node) bool) []string {
	var names []string
	for i := range s.Nodes.Value {
		if n := &s.Nodes.Value[i]; is(n) {
			names = append(names, n.Name)
		}
	}
	return names
}

const unlabelIt = "kubectl label node NODE bottlerocket.aws/updater-interface-version-"

func unlabelled(s *Snapshot) []Finding {
	if b := blind(s.Nodes); b != nil {
		return b
	}
	total := len(s.nodesWhere((*Node).Bottlerocket))
	const remedy = "label those that should be updated: kubectl bottlerocket enroll NODE, or without NODE all of them"
	switch names := s.nodesWhere(func(n *Node) bool { return n.Bottlerocket() && !n.Labelled() }); {
	case total == 0:
		return warned("no node of this cluster runs Bottlerocket",
			"see docs/plans.md for nodes of other systems: kubectl get nodes -o wide")
	case len(names) > 0:
		return warned("not updated, because they have no label, are "+of(names, "Bottlerocket node"), remedy)
	}
	return well("all " + count(total, "Bottlerocket node") + " have the label")
}

// freshGrace is how long after its deadline a controller may still be at taking a taint off.
const freshGrace = 5 * time.Minute

// freshNodes looks for new nodes to which no workloads come, since their taint is still there.
func freshNodes(s *Snapshot) []Finding {
	if b := blind(s.Nodes, s.Clock); b != nil {
		return b
	}
	deadline := policy.DefaultSettings().FreshNodes.Deadline
	if p := s.Policy.Value; p.There && len(p.Mistakes) == 0 {
		deadline = p.Settings.FreshNodes.Deadline
	}
	held := func(n *Node) bool {
		return n.FreshTaint && !n.Disrupted() && s.Clock.Value.Server.Sub(n.Created) > deadline+freshGrace
	}
	if names := s.nodesWhere(held); len(names) > 0 {
		return warned(fmt.Sprintf("the taint %s keeps workloads away for longer than freshNodes.deadline, %s, from %s", marker.TaintFresh, deadline, of(names, "node")),
			"see that a controller leads, and that they have the label; or take it off: kubectl taint node NODE "+marker.TaintFresh+":NoSchedule-")
	}
	return well("no node keeps the taint of new nodes for long")
}

func labelValues(s *Snapshot) []Finding {
	if b := blind(s.Nodes); b != nil {
		return b
	}
	var names []string
	for i := range s.Nodes.Value {
		if n := &s.Nodes.Value[i]; n.Labelled() && !n.Interface.Known() {
			names = append(names, fmt.Sprintf("%s (%s)", n.Name, n.Interface))
		}
	}
	if len(names) > 0 {
		return failed("the label's value is not known on "+of(names, "node"),
			"kubectl label node NODE --overwrite bottlerocket.aws/updater-interface-version=2.0.0")
	}
	return well("the values of all labels are known")
}

func otherSystems(s *Snapshot) []Finding {
	if b := blind(s.Nodes); b != nil {
		return b
	}
	if names := s.nodesWhere(func(n *Node) bool {
		return n.Interface == fleet.InterfaceUpdateAPI && n.OSImage != "" && !n.Bottlerocket()
	}); len(names) > 0 {
		return failed("labelled for the Update API, and of another system than Bottlerocket, are "+of(names, "node"),
			unlabelIt+"; for a plan (docs/plans.md) the value is plan")
	}
	return well("no node of another system is labelled as a Bottlerocket host")
}

func inPlace(s *Snapshot) []Finding {
	if b := blind(s.Nodes); b != nil {
		return b
	}
	if names := s.nodesWhere(func(n *Node) bool { return n.Labelled() && n.Marks.Report.Reason == marker.ReasonInterfaceUnsupported }); len(names) > 0 {
		return warned("in-place updates are not supported by the hosts of "+of(names, "node"),
			"replace them by nodes with a newer image, or take the label off: "+unlabelIt)
	}
	return well("no host has said that it can't be updated in place")
}

func annotations(s *Snapshot) []Finding {
	if b := blind(s.Nodes); b != nil {
		return b
	}
	var found []Finding
	var names []string
	first := ""
	for i := range s.Nodes.Value {
		n := &s.Nodes.Value[i]
		if len(n.Problems) == 0 || !n.Labelled() && !n.Marked() {
			continue
		}
		names = append(names, n.Name)
		if first == "" {
			first = n.Problems[0].String()
		}
	}
	if len(names) > 0 {
		found = failed("annotations can't be read, so these nodes are left alone: "+of(names,
			"node")+". The first: "+first,
			"correct or remove it, see docs/troubleshooting.md#an-annotation-cant-be-read: kubectl annotate node NODE bottlerocket.aws/KEY-")
	}
	if found == nil {
		return well("the operator's annotations can be read")
	}
	return found
}

// autoscalerMarks looks for marks that the operator did not set, or left: it keeps what stood there before.
func autoscalerMarks(s *Snapshot) []Finding {
	if b := blind(s.Nodes); b != nil {
		return b
	}
	var found []Finding
	if names := s.nodesWhere(func(n *Node) bool { return n.Labelled() && !n.Disrupted() && len(n.Autoscalers) > 0 }); len(names) > 0 {
		found = append(found,
			warned("autoscalers never remove these, because of an annotation that the operator leaves as it is: "+of(names, "node"),
				fmt.Sprintf("if it is not meant: kubectl annotate node NODE %s- %s-", marker.AnnotationScaleDown,
					marker.AnnotationDisrupt))...)
	}
	if names := s.nodesWhere(func(n *Node) bool { return n.Labelled() && !n.Disrupted() && n.Excluded }); len(names) > 0 {
		found = append(found,
			warned("load balancers leave these out, because of a label that the operator leaves as it is: "+of(names,
				"node"),
				fmt.Sprintf("if it is not meant: kubectl label node NODE %s-", marker.LabelExcluded))...)
	}
	if found == nil {
		return well("no marks for autoscalers and load balancers are left on labelled nodes")
	}
	return found
}
