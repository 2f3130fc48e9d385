package preflight

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plain"
)

// trouble is why a pod isn't Ready.
type trouble struct{ message, remedy string }

// told is a trouble with what was said.
type told struct {
	trouble
	quote string
}

func (t told) String() string { return t.message + t.quote }

// symptom recognises a trouble by what was said of a pod.
type symptom struct {
	// reasons and parts are one of which is the reason, and all of which are in the message.
	reasons, parts []string
	// message is a sentence; what was said is put behind it.
	message string
	remedy  func(s *Snapshot, component string) string
}

// maxQuote limits what is quoted of a pod's state, in bytes.
const maxQuote = 300

func always(remedy string) func(*Snapshot, string) string {
	return func(*Snapshot, string) string { return remedy }
}

// symptoms are in the order in which they tell the most: a pod that crashes because of the socket has both.
var symptoms = []symptom{
	{nil, []string{"violates PodSecurity"}, "The namespace's pod security level refuses the pod",
		func(s *Snapshot, _ string) string {
			return fmt.Sprintf("kubectl label namespace %s %s=%s --overwrite", s.Namespace, enforceLabel, privileged)
		}},
	{nil, []string{"hostPath type check failed"},
		"The host has no API socket, so it is no Bottlerocket host, or its apiserver is off",
		always("take the label off: kubectl label node NODE bottlerocket.aws/updater-interface-version-")},
	{nil, []string{"references non-existent config key: ca.crt"},
		"It waits for the proxies' certificate authority, which no proxy has published yet", proxyLogs},
	{nil, []string{`configmap "update-operator-proxy-ca" not found`},
		"It waits for the ConfigMap update-operator-proxy-ca, which is missing", always(restoreIt)},
	{nil, []string{"may not be used", "SELinux"}, selinuxMessage, selinux},
	{nil, []string{"permission denied", "api.sock"}, selinuxMessage, selinux},
	{[]string{"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable",
		"ImageInspectError"}, nil, "Its image can't be pulled", func(s *Snapshot, component string) string {
		return fmt.Sprintf("see that name, tag and pull secret of the image are right: kubectl -n %s get %s %s -o jsonpath='{..image}'", s.Namespace, kindOf(component), Account(component))
	}},
	{[]string{"OOMKilled"}, nil, "It was killed for its memory limit", func(s *Snapshot, component string) string {
		return fmt.Sprintf("raise the limit, see docs/operations.md: kubectl -n %s edit %s %s", s.Namespace,
			kindOf(component), Account(component))
	}},
	{[]string{"Unschedulable"}, nil, "No node takes it", func(s *Snapshot, component string) string {
		return fmt.Sprintf("make room on the node, or look at its taints: kubectl -n %s describe pods -l app.kubernetes.io/component=%s", s.Namespace, component)
	}},
	{[]string{"FailedCreate"}, nil, "Its pods can't be made", func(s *Snapshot, component string) string {
		return fmt.Sprintf("see quotas, webhooks and policies of the namespace: kubectl -n %s describe %s %s",
			s.Namespace, kindOf(component), Account(component))
	}},
	{nil, []string{"through the proxy"}, "It does not reach a proxy", func(s *Snapshot, _ string) string {
		return fmt.Sprintf("see the proxies and your network policies (components/network-policy/network-policy.yaml): kubectl -n %s get endpointslices,networkpolicies", s.Namespace)
	}},
	{[]string{"FailedMount"}, nil, "A volume can't be mounted", (*Snapshot).describeComponent},
	{[]string{"CrashLoopBackOff"}, nil, "It crashes again and again", previousLogs},
	{[]string{"CreateContainerConfigError", "CreateContainerError", "RunContainerError"}, nil,
		"Its container can't be made", (*Snapshot).describeComponent},
	{[]string{"Error"}, nil, "It ended with an error", previousLogs},
}

const selinuxMessage = "The host's SELinux policy keeps it from the socket /run/api.sock"

func selinux(s *Snapshot, _ string) string {
	return fmt.Sprintf(`kubectl -n %s patch daemonset %s -p '{"spec":{"template":{"spec":{"securityContext":{"seLinuxOptions":{"type":"super_t"}}}}}}'`,
		s.Namespace, Account(Agent))
}

func proxyLogs(s *Snapshot, _ string) string {
	return fmt.Sprintf("look at the proxies: kubectl -n %s logs -l app.kubernetes.io/component=proxy", s.Namespace)
}

func previousLogs(s *Snapshot, component string) string {
	return fmt.Sprintf("kubectl -n %s logs --previous -l app.kubernetes.io/component=%s", s.Namespace, component)
}

func (s *Snapshot) describeComponent(component string) string { return s.describe(component) }

func kindOf(component string) string {
	if component == Agent {
		return "daemonset"
	}
	return "deployment"
}

// recognise finds the trouble that explains most of what was said.
func (s *Snapshot) recognise(said []Words, component string) told {
	for _, y := range symptoms {
		for _, w := range said {
			if y.fits(w) {
				return told{trouble{y.message, y.remedy(s, component)}, quoted(y.best(w, said))}
			}
		}
	}
	t := told{trouble: trouble{"It is not Ready", s.describe(component)}}
	if len(said) > 0 {
		t.quote = quoted(said[0])
	} else if s.EventsRefused != "" {
		t.message += ", and why is not known: " + s.EventsRefused
	}
	return t
}

func (y *symptom) fits(w Words) bool {
	if y.reasons != nil && !slices.Contains(y.reasons, w.Reason) {
		return false
	}
	for _, part := range y.parts {
		if !strings.Contains(w.Message, part) {
			return false
		}
	}
	return true
}

// best returns the words to quote: a crash is told best by the last line that the container left.
func (y *symptom) best(w Words, said []Words) Words {
	if !slices.Contains(y.reasons, "CrashLoopBackOff") && !slices.Contains(y.reasons, "Error") {
		return w
	}
	for _, other := range said {
		if other.Message != "" && (other.Reason == "" || other.Reason == "Error") {
			return other
		}
	}
	return w
}

func quoted(w Words) string {
	text := w.Message
	if text == "" {
		text = w.Reason
	}
	if text = plain.Line(text, maxQuote); text == "" {
		return ""
	}
	return ": " + text
}
