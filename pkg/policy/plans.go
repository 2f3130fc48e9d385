package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// Plan is what is run on nodes with the label value plan, and what for.
type Plan struct {
	Name string `yaml:"name" need:"give each plan one"`
	// Selector chooses among the nodes with that label value.
	Selector Selector `yaml:"nodeSelector" need:"give one; {} chooses every node of plans"`
	// Prepare is the PodTemplate of a pod that runs while the node is in service; empty: there is none.
	Prepare string `yaml:"prepare"`
	// Apply is the PodTemplate of the pod that brings the target.
	Apply string `yaml:"apply" need:"name a PodTemplate"`
	// Target is what the nodes go to.
	Target PlanTarget `yaml:"target" need:"give version, channel or content"`
	// Proof is where a node shows the target.
	Proof marker.Proof `yaml:"proof" words:"kubeletVersion,osImage,kernelVersion,containerRuntimeVersion,content" need:"say where nodes show the target, such as kubeletVersion"`
	// Effect is what the apply pod does to the node.
	Effect marker.Effect `yaml:"effect" words:"none,restart,reboot" need:"give none, restart or reboot"`
	// Drain is what becomes of the node's pods first; empty: what Drains says.
	Drain marker.PlanDrain `yaml:"drain" words:"true,cordon,false"`
	// Versions are those that the plan's nodes may go to.
	Versions Versions `yaml:"versions"`
	// MaxMinorSkip is by how many minor versions one step may go up; 0 is no limit.
	MaxMinorSkip int `yaml:"maxMinorSkip"`
	// Deadline is how long a pod may run. Default DefaultPlanDeadline.
	Deadline time.Duration `yaml:"deadline"`
}

// PlanTarget is what the nodes of a plan go to: one of the three.
type PlanTarget struct {
	// Version is the version itself, as the proof shows it.
	Version string `yaml:"version"`
	// Channel is an address that answers with a redirect whose last path element is the version.
	Channel string `yaml:"channel"`
	// Content: the templates, and the ConfigMaps and Secrets that they mount, as they stand.
	Content bool `yaml:"content"`
}

// PlansOf returns the plans that choose a node with these labels, in their order.
func (s *Settings) PlansOf(labels map[string]string) []*Plan {
	var chosen []*Plan
	for i := range s.Plans {
		if s.Plans[i].Selector.Matches(labels) {
			chosen = append(chosen, &s.Plans[i])
		}
	}
	return chosen
}

// PlanNamed returns the plan with this name; nil if there is none.
func (s *Settings) PlanNamed(name string) *Plan {
	for i := range s.Plans {
		if s.Plans[i].Name == name {
			return &s.Plans[i]
		}
	}
	return nil
}

// DefaultPlanDeadline is how long the pods of a plan may run that has no deadline of its own.
const DefaultPlanDeadline = 30 * time.Minute

// Drains is what becomes of the node's pods before the apply pod. Where the plan doesn't say it, they are drained,
// unless the effect is none.
func (p *Plan) Drains() marker.PlanDrain {
	switch {
	case p.Drain != "":
		return p.Drain
	case p.Effect == marker.EffectNone:
		return marker.DrainNothing
	}
	return marker.DrainAll
}

// SkipsMinor reports whether a step between two versions is longer than MaxMinorSkip allows. With 1, 1.36 may follow
// 1.35, and 1.37 may not. One to a higher major version is longer. A leading v doesn't count, and where one of the two
// is no version, there is no step.
func (p *Plan) SkipsMinor(from, to string) bool {
	fromMajor, fromMinor, readFrom := minorOf(from)
	toMajor, toMinor, readTo := minorOf(to)
	switch {
	case p.MaxMinorSkip == 0 || !readFrom || !readTo:
		return false
	case fromMajor < toMajor:
		return true
	}
	return fromMajor == toMajor && toMinor-fromMinor > p.MaxMinorSkip
}

// bare is a target without the v that it may begin with.
func bare(target string) string { return strings.TrimPrefix(target, "v") }

// minorOf returns the first two numbers of a version.
func minorOf(version string) (major, minor int, ok bool) {
	if !marker.ValidVersion(bare(version)) {
		return 0, 0, false
	}
	first, second, _ := strings.Cut(bare(semver.MajorMinor("v"+bare(version))), ".")
	major, errMajor := strconv.Atoi(first)
	minor, errMinor := strconv.Atoi(second)
	return major, minor, errMajor == nil && errMinor == nil
}

const (
	// maxPlanDeadline ends a pod that hangs while the fleet waits for it; the shortest that Kubernetes has is a second.
	minPlanDeadline, maxPlanDeadline = time.Second, 24 * time.Hour
	// maxChannel is how long an address may be, in bytes.
	maxChannel = 2048
)

var (
	// objectName is what the API server lets a PodTemplate be named.
	objectName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	// channelURL has a host, and neither user info nor a fragment.
	channelURL = regexp.MustCompile(`^https://([a-zA-Z0-9]([-.a-zA-Z0-9]*[a-zA-Z0-9])?|\[[0-9a-fA-F:.]+\])(:[0-9]{1,5})?([/?]([!"$&-~]|%[0-9a-fA-F]{2})*)?$`)
)

func (s Settings) validatePlans(m *mistakes) {
	first, contents := map[string]int{}, 0
	for i := range s.Plans {
		p, at := &s.Plans[i], fmt.Sprintf("plans[%d]", i)
		if p.Target.Content {
			contents++
		}
		if p.Target.Content && contents == marker.MaxPlansDone+1 {
			m.add(at+".target.content", "is one more than a node remembers, which is the content of %d plans: put what goes to the same nodes into one plan", marker.MaxPlansDone)
		}
		if other, twice := first[p.Name]; twice {
			m.add(at+".name", "is %q, as is plans[%d].name: give each plan a name of its own", p.Name, other)
		} else if p.Name != "" {
			first[p.Name] = i
		}
		var own mistakes
		p.validate(&own)
		for _, o := range own {
			*m = append(*m, o.within(at))
		}
	}
}

func (p *Plan) validate(m *mistakes) {
	switch {
	case p.Name == "":
		m.add("name", "is missing: give each plan one")
	case !marker.ValidPlanName(p.Name):
		m.add("name", "is %q: give at most 40 lower-case letters, digits and inner hyphens", p.Name)
	}
	p.validateTemplates(m)
	p.Target.validate(m, p.Proof)
	p.validateVersions(m)
	p.validateAct(m)
}

func (p *Plan) validateTemplates(m *mistakes) {
	named := func(field, template string) {
		switch {
		case !objectName.MatchString(template):
			m.add(field, "is %q: give the name of a PodTemplate in the namespace bottlerocket-plans", template)
		case !marker.ValidToken(template):
			m.add(field, "is longer than a node's annotation holds: give a PodTemplate a name of at most 128 bytes")
		}
	}
	if p.Apply == "" {
		m.add("apply", "is missing: name a PodTemplate")
	} else {
		named("apply", p.Apply)
	}
	switch {
	case p.Prepare == "":
	case p.Prepare == p.Apply:
		m.add("prepare", "is %q, as is apply: give it a PodTemplate of its own, or leave it out", p.Prepare)
		m.beside("apply")
	default:
		named("prepare", p.Prepare)
	}
}

func (t PlanTarget) validate(m *mistakes, proof marker.Proof) {
	var given []string
	for _, f := range []struct {
		name string
		has  bool
	}{{"version", t.Version != ""}, {"channel", t.Channel != ""}, {"content", t.Content}} {
		if f.has {
			given = append(given, f.name)
		}
	}
	version := bare(t.Version)
	switch {
	case len(given) == 0:
		m.add("target", "has none of version, channel and content: give one of them")
	case len(given) > 1:
		m.add("target", "has %s: keep one of them", strings.Join(given, " and "))
	case t.Version != "" && (version == marker.ContentTarget || !marker.ValidPlanTarget(t.Version) || !marker.ValidPlanTarget(version)):
		m.add("target.version", "is %q: give what nodes show, in at most 64 printable ASCII characters without #; for content give content: true", t.Version)
	case t.Version != "" && proof == marker.ProofKubelet && !marker.ValidVersion(version):
		m.add("target.version", "is %q: give all of a version, as kubelets show it, such as v1.36.3", t.Version)
		m.beside("proof")
	case t.Channel != "" && (len(t.Channel) > maxChannel || !channelURL.MatchString(t.Channel)):
		// What is wrong may be a password in it, so it isn't quoted.
		m.add("target.channel", "is no address to ask: give one that begins with https:// and a host, without user info or fragment, in at most %d bytes", maxChannel)
	}
	switch {
	case proof == "":
		m.add("proof", "is missing: say where nodes show the target, such as kubeletVersion")
	case !slices.Contains(marker.Proofs(), proof):
		m.add("proof", "is %q: give one of %v%s", string(proof), marker.Proofs(), suggestionOf(proof, marker.Proofs()))
	case len(given) != 1:
	case t.Content && proof != marker.ProofContent:
		m.add("proof", "is %s, but the target is content: give content", proof)
		m.beside("target.content")
	case !t.Content && proof == marker.ProofContent:
		m.add("proof", "is content, but the target is a version: give the field in which nodes show it, or target.content")
		m.beside("target")
	case t.Channel != "" && proof != marker.ProofKubelet:
		m.add("target.channel", "is given, but what nodes show at %s has no order: give target.version, or proof: kubeletVersion", proof)
		m.beside("proof")
	}
}

// validateVersions looks at what the plan's versions rest on, beside themselves.
func (p *Plan) validateVersions(m *mistakes) {
	v := p.Versions
	v.validate(m)
	version := bare(p.Target.Version)
	switch {
	case p.Target.Content && v.Allow != nil:
		m.add("versions.allow", "is given, but content has no version: take it out")
		m.beside("target")
	case p.Target.Content && v.Deny != nil:
		m.add("versions.deny", "is given, but content has no version: take it out")
		m.beside("target")
	case p.Target.Version == "":
	case v.Deny != nil && v.Deny.Contains(version):
		m.add("target.version", "is %s, which versions.deny denies: nothing would ever start", p.Target.Version)
		m.beside("versions.deny")
	case v.Allow != nil && !v.Allow.Contains(version):
		m.add("target.version", "is %s, which versions.allow does not allow: nothing would ever start", p.Target.Version)
		m.beside("versions.allow")
	}
	switch {
	case p.MaxMinorSkip < 0:
		m.add("maxMinorSkip", "is %d: give 1 or more, or 0 for no limit", p.MaxMinorSkip)
	case p.MaxMinorSkip > 0 && p.Proof != marker.ProofKubelet:
		m.add("maxMinorSkip", "is %d, which goes by proof: kubeletVersion alone: give that, or take it out", p.MaxMinorSkip)
		m.beside("proof")
	}
}

// validateAct looks at what the plan does to a node.
func (p *Plan) validateAct(m *mistakes) {
	switch {
	case p.Effect == "":
		m.add("effect", "is missing: give none, restart or reboot")
	case !slices.Contains(marker.Effects(), p.Effect):
		m.add("effect", "is %q: give one of %v%s", string(p.Effect), marker.Effects(), suggestionOf(p.Effect, marker.Effects()))
	}
	switch {
	case !slices.Contains(marker.PlanDrains(), p.Drains()):
		m.add("drain", "is %q: give one of %v%s", string(p.Drain), marker.PlanDrains(), suggestionOf(p.Drain, marker.PlanDrains()))
	case p.Drain == marker.DrainNothing && p.Effect != marker.EffectNone:
		m.add("drain", "is false, but the effect is %s: give true or cordon", p.Effect)
		m.beside("effect")
	}
	if p.Deadline < minPlanDeadline || p.Deadline > maxPlanDeadline {
		m.add("deadline", "is %s: give %s or more, and at most %s", p.Deadline, minPlanDeadline, maxPlanDeadline)
	}
}

// suggestionOf is Suggestion for words of a type of their own.
func suggestionOf[T ~string](word T, known []T) string {
	var words []string
	for _, k := range known {
		words = append(words, string(k))
	}
	return Suggestion(string(word), words)
}
