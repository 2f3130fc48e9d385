package preflight

import (
	"fmt"
	"slices"
	"time"
)

func controller(s *Snapshot) []Finding { return s.part(Controller) }

// proxies looks at the pods, and at what the Service makes of them.
func proxies(s *Snapshot) []Finding {
	found := s.part(Proxy)
	if w := s.Workloads.Value[Proxy]; w.Ready == 0 || !s.installed() {
		return found
	}
	if b := blind(s.Endpoints); b != nil {
		return append(found, b...)
	}
	if s.Endpoints.Value == 0 {
		found = append(found,
			failed("the Service update-operator-proxy has no Ready endpoint, so no agent reaches a proxy",
				restoreIt)...)
	}
	return found
}

// part looks at a Deployment of the manifest.
func (s *Snapshot) part(component string) []Finding {
	if b := blind(s.Workloads); b != nil {
		return b
	}
	if !s.installed() {
		return absent(s)
	}
	return s.available(component)
}

// available looks at a Deployment that should be there.
func (s *Snapshot) available(component string) []Finding {
	object := "Deployment " + Account(component)
	w, there := s.Workloads.Value[component]
	switch {
	case !there:
		return failed(object+" is missing", restoreIt)
	case w.Desired == 0:
		return failed(object+" is scaled to none", fmt.Sprintf("kubectl -n %s scale deployment %s --replicas=1",
			s.Namespace, Account(component)))
	case w.Ready >= w.Desired:
		return well(fmt.Sprintf("%s: %d of %d Ready", object, w.Ready, w.Desired))
	}
	message, remedy := fmt.Sprintf("%s: %d of %d Ready", object, w.Ready, w.Desired), s.describe(component)
	if t, known := s.troubleOf(component, w); known {
		message, remedy = message+". "+t.String(), t.remedy
	}
	if w.Ready > 0 {
		return warned(message, remedy)
	}
	return failed(message, remedy)
}

// troubleOf is what is wrong with the first pod that isn't Ready, or with making one.
func (s *Snapshot) troubleOf(component string, w Workload) (told, bool) {
	for _, p := range s.Pods.Value {
		if p.Component == component && !p.Ready {
			return s.recognise(p.Said, component), true
		}
	}
	if len(w.Said) > 0 {
		return s.recognise(w.Said, component), true
	}
	return told{}, false
}

func (s *Snapshot) describe(component string) string {
	return fmt.Sprintf("kubectl -n %s describe pods -l app.kubernetes.io/component=%s; kubectl -n %s logs -l app.kubernetes.io/component=%s",
		s.Namespace, component, s.Namespace, component)
}

func leader(s *Snapshot) []Finding {
	if !s.installed() {
		return absent(s)
	}
	if b := blind(s.Leader, s.Clock); b != nil {
		return b
	}
	l := s.Leader.Value
	see := fmt.Sprintf("see docs/runbooks/no-leader.md: kubectl -n %s logs deployment/%s", s.Namespace,
		Account(Controller))
	switch late := s.now().Sub(l.Renewed); {
	case !l.There || l.Holder == "":
		return failed("no controller leads: the Lease update-operator-controller names none, and nothing is updated",
			see)
	case late > 2*l.Duration:
		return failed(fmt.Sprintf("no controller leads: %s renewed the Lease update-operator-controller last %s ago, and nothing is updated", l.Holder, apart(late)), see)
	case late < -max(skew, 2*l.Duration):
		return warned(fmt.Sprintf("the leader %s renews its Lease at a time that is %s ahead: its node's clock is off",
			l.Holder, apart(late)), setClock)
	default:
		return well(l.Holder + " leads")
	}
}

// images looks whether all parts are of the same build; during an upgrade they are not.
func images(s *Snapshot) []Finding {
	if b := blind(s.Workloads); b != nil {
		return b
	}
	if !s.installed() {
		return absent(s)
	}
	var said, all []string
	for _, component := range []string{Controller, Proxy, Agent, Runner} {
		if w, there := s.Workloads.Value[component]; there {
			said, all = append(said, component+" "+w.Image), append(all, w.Image)
		}
	}
	if slices.Sort(all); len(slices.Compact(slices.Clone(all))) > 1 {
		return warned("the parts of the operator have different images: "+list(said), restoreIt)
	}
	return well("all parts have the image " + all[0])
}

// starting is how long a pod may take before it counts as not Ready.
const starting = time.Minute
