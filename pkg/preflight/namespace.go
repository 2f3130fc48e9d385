package preflight

import "fmt"

// enforceLabel says which pods a namespace takes, https://kubernetes.io/docs/concepts/security/pod-security-admission/.
const (
	enforceLabel = "pod-security.kubernetes.io/enforce"
	privileged   = "privileged"
)

func namespace(s *Snapshot) []Finding {
	if b := blind(s.Home); b != nil {
		return b
	}
	if s.Home.Value == nil {
		if s.Workloads.Refused == "" {
			return absent(s)
		}
		return failed("there is no namespace "+s.Namespace,
			installIt+"; if the operator runs in another one, name it with -n")
	}
	label := fmt.Sprintf("kubectl label namespace %s %s=%s --overwrite", s.Namespace, enforceLabel, privileged)
	switch level, there := s.Home.Value[enforceLabel]; {
	case !there:
		return warned(fmt.Sprintf("namespace %s has no label %s, so the default of the cluster's API servers holds; if that is not %s, agents are refused",
			s.Namespace, enforceLabel, privileged), label)
	case level != privileged:
		return failed(fmt.Sprintf("namespace %s enforces the pod security level %q, which refuses agents: they mount the host's socket", s.Namespace, level), label)
	}
	if !s.installed() {
		found := absent(s)
		found[0].Message, found[0].Remedy = "nothing of the operator is in namespace "+s.Namespace+" yet", installIt+"; if it runs in another one, name that with -n"
		return found
	}
	return well("namespace " + s.Namespace + " takes the operator's pods")
}
