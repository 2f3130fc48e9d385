package preflight

import (
	"cmp"
	"slices"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plain"
)

// Verdict is what a check came to.
type Verdict string

// The verdicts, worst first.
const (
	// VerdictFail: the operator does not work, or some nodes can't be updated, until that is mended.
	VerdictFail Verdict = "fail"
	// VerdictUnknown: what the check needs could not be read.
	VerdictUnknown Verdict = "unknown"
	// VerdictWarn: it works, but not as it may be meant.
	VerdictWarn Verdict = "warn"
	// VerdictAbsent: that part is not installed yet.
	VerdictAbsent Verdict = "absent"
	// VerdictOK: all is well.
	VerdictOK Verdict = "ok"
)

// Verdicts is the closed list, worst first.
func Verdicts() []Verdict {
	return []Verdict{VerdictFail, VerdictUnknown, VerdictWarn, VerdictAbsent, VerdictOK}
}

// Finding is one thing that a check found.
type Finding struct {
	Check   Check   `json:"check"`
	Verdict Verdict `json:"verdict"`
	// Message says what was looked at, and what is so.
	Message string `json:"message"`
	// Remedy is a sentence with what to type; empty where all is well.
	Remedy string `json:"remedy,omitempty"`
}

// maxText limits a message, which may quote what a kubelet or an annotation says, in bytes.
const maxText = 600

// Judge returns what all checks find, in their order, each check's worst findings first.
func Judge(s *Snapshot) []Finding {
	var all []Finding
	for _, c := range checks {
		found := c.judge(s)
		slices.SortStableFunc(found, func(a, b Finding) int { return cmp.Compare(a.Verdict.rank(), b.Verdict.rank()) })
		for _, f := range found {
			f.Check, f.Message = c.name, plain.Line(f.Message, maxText)
			all = append(all, f)
		}
	}
	return all
}

// WorstFirst sorts findings by their verdict, and leaves those of the same verdict in their order.
func WorstFirst(all []Finding) {
	slices.SortStableFunc(all, func(a, b Finding) int { return cmp.Compare(a.Verdict.rank(), b.Verdict.rank()) })
}

func (v Verdict) rank() int { return slices.Index(Verdicts(), v) }

// well, warned and failed are the findings of a check; Judge adds which.
func well(message string) []Finding {
	return []Finding{{Verdict: VerdictOK, Message: message}}
}

func warned(message, remedy string) []Finding {
	return []Finding{{Verdict: VerdictWarn, Message: message, Remedy: remedy}}
}

func failed(message, remedy string) []Finding {
	return []Finding{{Verdict: VerdictFail, Message: message, Remedy: remedy}}
}

// absent is the finding on a part of the operator before it is installed.
func absent(s *Snapshot) []Finding {
	return []Finding{{Verdict: VerdictAbsent, Message: "not installed yet in namespace " + s.Namespace,
		Remedy: installIt}}
}

// What installs the operator, and what restores an object of it. The manifest applied over a release of Helm, or over a
// kustomization, would undo what is set there, so a remedy must not name one form alone where one is installed already.
const (
	installIt    = "kubectl apply -f update-operator.yaml, or another form of docs/install.md"
	restoreIt    = "apply again what you installed: kubectl apply -f update-operator.yaml, kubectl apply -k, or helm upgrade"
	restorePlans = "apply again what you installed: kubectl apply -f components/plans/plans.yaml, the component plans, or Helm's plans.enabled"
)

// blind is the finding of a check that needs what could not be read; nil if all was read.
func blind(parts ...reading) []Finding {
	for _, p := range parts {
		if why, forbidden := p.refused(); why != "" {
			remedy := "see that the API server is well, and run it again: kubectl get --raw /readyz"
			if forbidden {
				remedy = "run it as a user with the rights of docs/kubectl-plugin.md#rights, by --as or another --context"
			}
			return []Finding{{Verdict: VerdictUnknown, Message: why, Remedy: remedy}}
		}
	}
	return nil
}
