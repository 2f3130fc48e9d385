package preflight

import "fmt"

// agents looks for a Ready agent on each node that should have one. Nodes with the same trouble are one finding.
func agents(s *Snapshot) []Finding {
	if b := blind(s.Workloads, s.Nodes, s.Pods); b != nil {
		return b
	}
	if !s.installed() {
		return absent(s)
	}
	w, there := s.Workloads.Value[Agent]
	if !there {
		return failed("DaemonSet "+Account(Agent)+" is missing, so no node has an agent", restoreIt)
	}
	pods := map[string]Pod{}
	for _, p := range s.Pods.Value {
		if p.Component != Agent {
			continue
		}
		if other, known := pods[p.Node]; !known || !other.Ready && p.Ready {
			pods[p.Node] = p
		}
	}
	var found []Finding
	nodes, quotes := map[trouble][]string{}, map[trouble]string{}
	var order []trouble
	ready, labelled := 0, 0
	var young []string
	for i := range s.Nodes.Value {
		n := &s.Nodes.Value[i]
		if !n.wantsAgent() {
			continue
		}
		labelled++
		p, exists := pods[n.Name]
		switch {
		case exists && p.Ready:
			ready++
			continue
		case exists && len(p.Said) == 0 && !s.now().IsZero() && s.now().Sub(p.Created) < starting:
			young = append(young, n.Name)
			continue
		}
		t := s.missingAgent(n, w)
		if exists {
			t = s.unreadyAgent(n, p)
		}
		if nodes[t.trouble] == nil {
			order, quotes[t.trouble] = append(order, t.trouble), t.quote
		}
		nodes[t.trouble] = append(nodes[t.trouble], n.Name)
	}
	for _, t := range order {
		found = append(found, failed(fmt.Sprintf("no Ready agent on %s. %s", of(nodes[t], "node"), t.message+quotes[t]),
			t.remedy)...)
	}
	if len(young) > 0 {
		found = append(found, warned("agents have just been made on "+of(young, "node"),
			"wait a minute, then run kubectl bottlerocket check again")...)
	}
	switch {
	case labelled == 0:
		return well("no node has the label that asks for an agent")
	case found == nil:
		return well(fmt.Sprintf("a Ready agent is on each of %s with the label", count(ready, "node")))
	}
	return found
}

func (s *Snapshot) unreadyAgent(n *Node, p Pod) told {
	said := p.Said
	// An agent that can't use its host says so on its Node, if it reaches a proxy.
	if m := n.Marks.Report.Message; m != "" {
		said = append(said[:len(said):len(said)], Words{Message: m})
	}
	if !n.Ready && len(said) == 0 {
		return told{trouble: trouble{"The node itself is not Ready", "repair the node: kubectl describe node NODE"}}
	}
	return s.recognise(said, Agent)
}

func (s *Snapshot) missingAgent(n *Node, w Workload) told {
	if len(w.Said) > 0 {
		return s.recognise(w.Said, Agent)
	}
	if !n.Bottlerocket() {
		return told{trouble: trouble{"It is no Bottlerocket host",
			"take the label off: kubectl label node NODE bottlerocket.aws/updater-interface-version-"}}
	}
	return told{trouble: trouble{"The DaemonSet has made no pod there: the node is not Linux on amd64 or arm64, or no controller manager runs",
		fmt.Sprintf("kubectl -n %s describe daemonset %s", s.Namespace, Account(Agent))}}
}
