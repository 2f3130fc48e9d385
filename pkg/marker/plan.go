package marker

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

// Plan is what one attempt of a plan does to a node. It is fixed by the attempt's first intent, so that a policy that
// changes in mid attempt changes nothing of it.
type Plan struct {
	// Name is that of the plan in the policy.
	Name string `json:"name"`
	// Digest is that of the templates and of all that they mount, as the runner computed it.
	Digest string `json:"digest"`
	// Proof is where the node shows the target.
	Proof Proof `json:"proof"`
	// Effect is what the apply pod does to the node, beside the target.
	Effect Effect `json:"effect"`
	// Drain is what becomes of the node's other pods before the apply pod.
	Drain PlanDrain `json:"drain"`
	// Apply is the PodTemplate of the pod that brings the target.
	Apply string `json:"apply"`
	// Deadline is how long a pod may run, as time.Duration writes it.
	Deadline string `json:"deadline"`

	extra extra
}

// Proof is where a node shows whether it has the target of a plan.
type Proof string

// The proofs: fields of the kubelet's nodeInfo, and content, which the apply pod's termination message proves.
const (
	ProofKubelet Proof = "kubeletVersion"
	ProofOSImage Proof = "osImage"
	ProofKernel  Proof = "kernelVersion"
	ProofRuntime Proof = "containerRuntimeVersion"
	ProofContent Proof = "content"
)

// Proofs is the closed list.
func Proofs() []Proof {
	return []Proof{ProofKubelet, ProofOSImage, ProofKernel, ProofRuntime, ProofContent}
}

// Effect is what an apply pod does to its node.
type Effect string

const (
	// EffectNone: nothing that the node's other pods would notice.
	EffectNone Effect = "none"
	// EffectRestart: the kubelet, or what it needs, is started anew in the same boot.
	EffectRestart Effect = "restart"
	// EffectReboot: the host boots.
	EffectReboot Effect = "reboot"
)

// Effects is the closed list.
func Effects() []Effect { return []Effect{EffectNone, EffectRestart, EffectReboot} }

// PlanDrain is what becomes of a node's other pods before the apply pod.
type PlanDrain string

const (
	// DrainAll: the node is cordoned and drained.
	DrainAll PlanDrain = "true"
	// DrainCordon: the node is cordoned, and its pods stay.
	DrainCordon PlanDrain = "cordon"
	// DrainNothing: the node stays in service.
	DrainNothing PlanDrain = "false"
)

// PlanDrains is the closed list.
func PlanDrains() []PlanDrain { return []PlanDrain{DrainAll, DrainCordon, DrainNothing} }

// wrong says what can't be acted on; empty if nothing is.
func (p *Plan) wrong() string {
	deadline, err := time.ParseDuration(p.Deadline)
	switch {
	case !ValidPlanName(p.Name):
		return "has no readable name"
	case !ValidPlanDigest(p.Digest):
		return "has no readable digest"
	case !slices.Contains(Proofs(), p.Proof):
		return "has no known proof"
	case !slices.Contains(Effects(), p.Effect):
		return "has no known effect"
	case !slices.Contains(PlanDrains(), p.Drain):
		return "has no known drain"
	case !ValidToken(p.Apply):
		return "names no template"
	case err != nil || deadline <= 0:
		return "has no readable deadline"
	}
	return ""
}

// Same reports whether two plans do the same to a node, as far as this build knows.
func (p *Plan) Same(q *Plan) bool {
	return p.Name == q.Name && p.Digest == q.Digest && p.Proof == q.Proof && p.Effect == q.Effect && p.Drain == q.Drain &&
		p.Apply == q.Apply && p.Deadline == q.Deadline
}

// Within is how long a pod of the plan may run.
func (p *Plan) Within() time.Duration {
	d, _ := time.ParseDuration(p.Deadline)
	return d
}

// Version is what a node runs that shows value at the plan's proof.
func (p *Plan) Version(value string) string { return PlanVersion(p.Name, value, p.Digest) }

// Done is what a node runs whose content has this digest; one without any has an empty one.
func (p *Plan) Done(digest string) string { return PlanVersion(p.Name, ContentTarget, digest) }

// MaxPlansDone is of how many plans a node's content is noted: the annotation can hold as many with the longest names.
const MaxPlansDone = 64

// ContentTarget stands for the target of a plan whose target is its content: its digest says which.
const ContentTarget = "content"

// maxPlanTarget limits a target, in bytes: with its plan's name and its digest it stays below maxToken.
const maxPlanTarget = 64

var (
	// planName leaves room for what makes the name of a pod unique.
	planName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$`)
	digest   = regexp.MustCompile(`^[0-9a-f]{8,16}$`)
	// planVersion is PLAN/TARGET#DIGEST. A target has neither line breaks nor a number sign.
	planVersion = regexp.MustCompile(`^([a-z0-9][-a-z0-9]{0,39})/([ -"$-~]{1,64})#([0-9a-f]{8,16})?$`)
)

// ValidPlanName reports whether a plan can have this name: at most 40 lower-case letters, digits and inner hyphens.
func ValidPlanName(s string) bool { return planName.MatchString(s) }

// ValidPlanDigest reports whether a plan can have this digest: 8 to 16 hex digits in lower case.
func ValidPlanDigest(s string) bool { return digest.MatchString(s) }

// ValidPlanTarget reports whether s can be a target: 1 to 64 bytes of printable ASCII without a number sign.
func ValidPlanTarget(s string) bool { return s != "" && cleanTarget(s) == s }

// PlanVersion is a plan's target, or what a node shows in its place, as a version: PLAN/TARGET#DIGEST. The value may be
// whatever a kubelet says: what can't be part of a version is replaced.
func PlanVersion(name, value, digest string) string {
	if value = cleanTarget(value); value == "" {
		value = "?"
	}
	return name + "/" + value + "#" + digest
}

func cleanTarget(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == '#' {
			return '_'
		}
		return r
	}, s[:min(len(s), maxPlanTarget)])
}

// ValidPlanVersion reports whether s is a version as PlanVersion writes it.
func ValidPlanVersion(s string) bool {
	return planVersion.MatchString(s) && planName.MatchString(PlanOf(s))
}

// PlanOf returns the plan that a version is of; empty for a version of Bottlerocket.
func PlanOf(version string) string {
	if m := planVersion.FindStringSubmatch(version); m != nil {
		return m[1]
	}
	return ""
}

// PlanTargetOf returns the target in a plan's version; empty for a version of Bottlerocket.
func PlanTargetOf(version string) string {
	if m := planVersion.FindStringSubmatch(version); m != nil {
		return m[2]
	}
	return ""
}

// PlanDigestOf returns the digest in a plan's version; empty if it has none.
func PlanDigestOf(version string) string {
	if m := planVersion.FindStringSubmatch(version); m != nil {
		return m[3]
	}
	return ""
}

// ShortVersion is a version for a table: that of a plan without its digest, but where the digest is the target.
func ShortVersion(version string) string {
	if target := PlanTargetOf(version); target != "" && target != ContentTarget {
		return PlanOf(version) + "/" + target
	}
	return version
}

// ComparePlanTargets orders two targets: -1, 0 or 1, and whether they have an order. A leading v doesn't count. Where
// two are equal by semantic versioning, the number at the end of the build decides: v1.36.3+k3s1 is before
// v1.36.3+k3s2, since that is how k3s and RKE2 number their builds (https://docs.k3s.io/release-notes). Two that differ
// in what follows the three numbers and a hyphen have no order: 6.1.0-18-amd64 is a later kernel than 6.1.0-9-amd64,
// and semantic versioning says the opposite.
func ComparePlanTargets(a, b string) (order int, ordered bool) {
	a, b = strings.TrimPrefix(a, "v"), strings.TrimPrefix(b, "v")
	if a == b {
		return 0, true
	}
	if !ValidVersion(a) || !ValidVersion(b) {
		return 0, false
	}
	if c := semver.Compare("v"+a, "v"+b); c != 0 {
		preA, preB := semver.Prerelease("v"+a), semver.Prerelease("v"+b)
		if preA != preB && preA != "" && preB != "" && core(a) == core(b) {
			return 0, false
		}
		return c, true
	}
	nameA, numberA := build(a)
	nameB, numberB := build(b)
	switch {
	case nameA != nameB:
		return 0, false
	case numberA < numberB:
		return -1, true
	case numberA > numberB:
		return 1, true
	}
	return 0, true
}

// sortPlanTargets orders any two targets: those without an order of their own come first, as texts.
func sortPlanTargets(a, b string) int {
	if c, ordered := ComparePlanTargets(a, b); ordered {
		return c
	}
	valid := func(s string) int {
		if ValidVersion(strings.TrimPrefix(s, "v")) {
			return 1
		}
		return 0
	}
	return cmp.Or(valid(a)-valid(b), semver.Compare(canonical(a), canonical(b)), strings.Compare(a, b))
}

func canonical(target string) string { return "v" + strings.TrimPrefix(target, "v") }

// core is a version without what follows its three numbers.
func core(version string) string {
	core, _, _ := strings.Cut(version, "-")
	core, _, _ = strings.Cut(core, "+")
	return core
}

// build is the build metadata of a version: its name and the number that ends it.
func build(version string) (name string, number int) {
	all := semver.Build("v" + version)
	name = strings.TrimRight(all, "0123456789")
	number, _ = strconv.Atoi(all[len(name):])
	return name, number
}

// PlanHas reports whether a node that runs one version of a plan has what another one targets: the same target, for
// content with the same digest, or a higher one.
func PlanHas(runs, version string) bool {
	if PlanOf(runs) != PlanOf(version) {
		return false
	}
	have, want := PlanTargetOf(runs), PlanTargetOf(version)
	if want == ContentTarget || have == ContentTarget {
		return runs == version
	}
	c, ordered := ComparePlanTargets(have, want)
	return ordered && c >= 0
}
