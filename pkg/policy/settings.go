package policy

import (
	"fmt"
	"slices"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/window"
)

// Settings are the policy. The rules in it are for the whole fleet, and for the nodes that are in no group.
type Settings struct {
	Rules `yaml:",inline"`
	// Groups are looked through in this order: a node is in the first whose selector chooses it.
	Groups []Group `yaml:"groups"`
	// Ungrouped is what becomes of nodes that no group chooses, where there are groups. Default UngroupedGo.
	Ungrouped Ungrouped `yaml:"ungrouped" words:"go,wait"`
	// MaxLost is how many Lost nodes MaxUnavailable leaves out, or which share of the fleet; with more of them
	// nothing starts. Default 1.
	MaxLost Limit `yaml:"maxLost"`
	// MaxStaging is how many nodes may download and write an update at once. Default 10.
	MaxStaging int `yaml:"maxStaging"`
	// CountUnavailable: nodes that others cordoned, or that aren't Ready, use up budgets too. Default true.
	CountUnavailable bool `yaml:"countUnavailable"`
	// IgnoreAfter is how long they do. Default 1 h.
	IgnoreAfter time.Duration `yaml:"ignoreAfter"`
	// Plans are what is run on nodes with the label value plan, in this order on each node.
	Plans []Plan `yaml:"plans"`
	// MaxFailed is on how many nodes a version may fail, or on which share of the fleet, before nothing starts
	// for it any more. Default 3.
	MaxFailed Limit `yaml:"maxFailed"`
	// AutoLabel: the controller labels nodes that run Bottlerocket and were never labelled. Default false.
	AutoLabel bool `yaml:"autoLabel"`
	// FreshNodes is how nodes are updated that have no workloads yet, by the taint of new nodes.
	FreshNodes FreshNodes `yaml:"freshNodes"`
	// SingleNode is what becomes of the only node of a cluster. Default never.
	SingleNode SingleNode `yaml:"singleNode" words:"never,allow"`
	// Alerts are those that keep everything from starting.
	Alerts Alerts `yaml:"alerts"`
	// Notify is where messages about a rollout are sent, and which.
	Notify Notify `yaml:"notify"`
	// Deadlines of the phases.
	Deadlines Deadlines `yaml:"deadlines"`
	Retry     `yaml:"retry"`
	// PauseAfterUncordon is how long a node is left alone after a user uncordoned it during its update. Default 10 min.
	PauseAfterUncordon time.Duration `yaml:"pauseAfterUncordon"`
}

// FreshNodes is how new nodes are updated while a taint keeps workloads away from them.
type FreshNodes struct {
	// MaxUnavailable is how many of them may be out of service at once, beside all that the other limits count. With 0
	// none is updated so, and each loses the taint at once. Default 10.
	MaxUnavailable Limit `yaml:"maxUnavailable"`
	// Deadline is how long after its creation a node may keep the taint, unless its host reboots by then. Default 15 min.
	Deadline time.Duration `yaml:"deadline"`
}

// Retry is how long a node waits after a failure.
type Retry struct {
	// RetryBase is the wait after the first, doubled by each further one. Default 10 min.
	RetryBase time.Duration `yaml:"base"`
	// RetryMax is the longest wait. Default 24 h.
	RetryMax time.Duration `yaml:"max"`
}

// Rules are what may differ between groups of nodes.
type Rules struct {
	// MaxUnavailable is how many of these nodes may be out of service (cordoned to verified) at once, or which
	// share of them; none is a pause. Default 1 for the fleet, and no limit of its own for a group.
	MaxUnavailable Limit `yaml:"maxUnavailable"`
	// Topology are budgets for each value of a label.
	Topology []Topology `yaml:"topology"`
	// Pause is why nothing starts; nil if something may.
	Pause *Pause `yaml:"pause"`
	// Versions are those that nodes may go to.
	Versions HostVersions `yaml:"versions"`
	// Calendar is when nodes may be taken out of service; an empty one is always.
	Calendar window.Calendar `yaml:",inline"`
	// FitWindow: nothing starts that can't end within the window, by how long the fleet's updates took so far.
	// Default true.
	FitWindow bool `yaml:"fitWindow"`
	// StageOutside: updates are staged outside the windows too, though never in a freeze. Default true.
	StageOutside bool `yaml:"stageOutsideWindows"`
	// WhenClosed is what becomes of nodes that are out of service and haven't begun to reboot when the window
	// closes. Default Return.
	WhenClosed Ending `yaml:"whenWindowCloses" words:"finish,return"`
	// Soak is how long a node must be Ready, without a break, after its update. Default 60 s.
	Soak     time.Duration `yaml:"soak"`
	Draining `yaml:"drain"`
	// Balancers is how load balancers learn of nodes that are out of service.
	Balancers Balancers `yaml:"loadBalancers"`
	// Protect: annotations keep autoscalers from removing nodes that the operator has taken out of service. Default true.
	Protect bool `yaml:"autoscalers" words:"protect=true,ignore=false"`
	// Volumes is what is made of volumes that are still attached when the node is empty.
	Volumes Volumes `yaml:"volumes"`
	// Hooks are what others do to a node while it is out of service.
	Hooks Hooks `yaml:"hooks"`
	// Verify is what must be well after an update, beside the node.
	Verify Verify `yaml:"verify"`
}

// Draining is how a node is drained.
type Draining struct {
	// Drain is how long a drain may take: past it the node is uncordoned, and not rebooted. Default 30 min.
	Drain time.Duration `yaml:"timeout"`
	// Eviction is how the pods are taken off a node.
	Eviction Eviction `yaml:",inline"`
}

// Balancers is how load balancers learn of nodes that are out of service.
type Balancers struct {
	// Exclude: a label has them send nothing to a node from its cordon on. Default true.
	Exclude bool `yaml:"exclude"`
	// Wait is how long they are given before anything is evicted. Default 0.
	Wait time.Duration `yaml:"wait"`
}

// Group is a part of the fleet with rules of its own.
type Group struct {
	Name     string   `yaml:"name" need:"give each group one"`
	Selector Selector `yaml:"nodeSelector" need:"give one; {} chooses every node"`
	Rules    `yaml:",inline"`
	// After names groups that must have the version, and have had it for AfterSoak, before this one starts.
	After     []string      `yaml:"after"`
	AfterSoak time.Duration `yaml:"afterSoak"`
}

// Ungrouped is what becomes of nodes that no group chooses.
type Ungrouped string

const (
	// UngroupedGo has them go by the fleet's rules, whenever these let them.
	UngroupedGo Ungrouped = "go"
	// UngroupedWait has them start nothing until a group chooses them.
	UngroupedWait Ungrouped = "wait"
)

// Topology is a budget for each value of a label. Nodes without the label share one.
type Topology struct {
	Key string `yaml:"key" need:"name a label such as topology.kubernetes.io/zone"`
	// MaxUnavailable is for the nodes with one value of the label, or which share of them. Default Unlimited.
	MaxUnavailable Limit `yaml:"maxUnavailable"`
	// MaxDomains is how many values may have nodes out of service at once; 0 is no limit.
	MaxDomains int `yaml:"maxDomains"`
}

// Pause stops new starts.
type Pause struct {
	// Reason is shown on every node that waits.
	Reason string `yaml:"reason" need:"say why: it is shown on every node that waits"`
	// InFlight is what becomes of nodes that are out of service and haven't begun to reboot. Default Finish.
	InFlight Ending `yaml:"inFlight" words:"finish,return"`
}

// Ending is what becomes of what has begun when it may not begin any more.
type Ending string

// The endings.
const (
	// Finish lets a node go on to the end of its attempt.
	Finish Ending = "finish"
	// Return uncordons it and ends its attempt; nothing is counted as a failure.
	Return Ending = "return"
)

// Deadlines are counted by the controller's clock from the mark that began the phase.
type Deadlines struct {
	// Staging must be longer than an agent's patience with a busy host, intent.BusyPatience. Default 45 min.
	Staging time.Duration `yaml:"staging"`
	// Reboot is also how long an agent may take to begin. Default 30 min.
	Reboot time.Duration `yaml:"reboot"`
	// Return is for the kubelet to show the new boot, and again for the soak to end. Default 15 min.
	Return time.Duration `yaml:"return"`
}

// GroupAt returns which of the groups has a node with these labels: the first that chooses it; -1 if none does.
func (s *Settings) GroupAt(labels map[string]string) int {
	return slices.IndexFunc(s.Groups, func(g Group) bool { return g.Selector.Matches(labels) })
}

// GroupOf names that group; empty if none does.
func (s *Settings) GroupOf(labels map[string]string) string {
	if at := s.GroupAt(labels); at >= 0 {
		return s.Groups[at].Name
	}
	return ""
}

// DefaultSettings returns the defaults.
func DefaultSettings() Settings {
	return Settings{
		Rules: Rules{
			MaxUnavailable: Count(1), FitWindow: true, StageOutside: true, WhenClosed: Return,
			Soak: time.Minute, Balancers: Balancers{Exclude: true}, Protect: true,
			Draining: Draining{Drain: 30 * time.Minute,
				Eviction: Eviction{EmptyDirData: Evict, UnmanagedPods: Evict, Predict: true, PerHour: 1000}},
			Volumes: Volumes{Wait: 5 * time.Minute, OnTimeout: Ignore},
			Verify:  Verify{Deadline: 10 * time.Minute, OnWorkloads: FailOnWorkloads},
		},
		Ungrouped:          UngroupedGo,
		MaxLost:            Count(1),
		MaxStaging:         10,
		CountUnavailable:   true,
		IgnoreAfter:        time.Hour,
		MaxFailed:          Count(3),
		FreshNodes:         FreshNodes{MaxUnavailable: Count(10), Deadline: 15 * time.Minute},
		SingleNode:         SingleNodeNever,
		Deadlines:          Deadlines{Staging: 45 * time.Minute, Reboot: 30 * time.Minute, Return: 15 * time.Minute},
		Retry:              Retry{RetryBase: 10 * time.Minute, RetryMax: 24 * time.Hour},
		PauseAfterUncordon: 10 * time.Minute,
	}
}

// Validate returns the first thing that is wrong, a Mistake, with the remedy.
func (s Settings) Validate() error {
	if found := s.Mistakes(); len(found) > 0 {
		return found[0]
	}
	return nil
}

// Mistakes returns all that is wrong. What a group has from the fleet and is wrong there is among them for both.
func (s Settings) Mistakes() []Mistake {
	var m mistakes
	if s.MaxStaging < 1 {
		m.add("maxStaging", "is %d: give 1 or more", s.MaxStaging)
	}
	if s.IgnoreAfter < 0 {
		m.add("ignoreAfter", "is %s: give 0 or more", s.IgnoreAfter)
	}
	if s.Ungrouped != UngroupedGo && s.Ungrouped != UngroupedWait {
		m.add("ungrouped", "is %q: give %s or %s", string(s.Ungrouped), UngroupedGo, UngroupedWait)
	}
	if s.SingleNode != SingleNodeNever && s.SingleNode != SingleNodeAllow {
		m.add("singleNode", "is %q: give %s or %s", string(s.SingleNode), SingleNodeNever, SingleNodeAllow)
	}
	if s.MaxFailed.None() {
		m.add("maxFailed", "is 0, which would stop every version: give 1 or more, a percentage, or unlimited")
	}
	m.positive("freshNodes.deadline", s.FreshNodes.Deadline)
	m.positive("deadlines.staging", s.Deadlines.Staging)
	m.positive("deadlines.reboot", s.Deadlines.Reboot)
	m.positive("deadlines.return", s.Deadlines.Return)
	switch {
	case s.RetryBase <= 0:
		m.positive("retry.base", s.RetryBase)
	case s.RetryMax < s.RetryBase:
		m.add("retry.max", "is %s, less than retry.base, which is %s: give the longer wait as max", s.RetryMax, s.RetryBase)
		m.beside("retry.base")
	}
	if s.PauseAfterUncordon < 0 {
		m.add("pauseAfterUncordon", "is %s: give 0 or more", s.PauseAfterUncordon)
	}
	s.validatePlans(&m)
	s.Alerts.validate(&m)
	s.Notify.validate(&m)
	s.Rules.validate(&m)
	s.validateGroups(&m)
	return m
}

// positive finds a time that must pass and doesn't.
func (m *mistakes) positive(field string, d time.Duration) {
	if d <= 0 {
		m.add(field, "is %s: give a duration such as 10m", d)
	}
}

func (r Rules) validate(m *mistakes) {
	if r.Soak < 0 {
		m.add("soak", "is %s: give 0 or more", r.Soak)
	}
	r.Versions.validate(m)
	m.positive("drain.timeout", r.Drain)
	if r.Balancers.Wait < 0 || r.Drain > 0 && r.Balancers.Wait >= r.Drain {
		m.add("loadBalancers.wait", "is %s: give 0 or more, and less than drain.timeout, which is %s and counts from the cordon too",
			r.Balancers.Wait, r.Drain)
		m.beside("drain.timeout")
	}
	if r.Volumes.Wait < 0 {
		m.add("volumes.wait", "is %s: give 0 or more", r.Volumes.Wait)
	}
	r.Hooks.validate(m)
	r.Verify.validate(m)
	for i, t := range r.Topology {
		if t.Key == "" {
			m.add(fmt.Sprintf("topology[%d].key", i), "is missing: name a label such as topology.kubernetes.io/zone")
		}
		if t.MaxDomains < 0 {
			m.add(fmt.Sprintf("topology[%d].maxDomains", i), "is %d: give 1 or more, or leave it out", t.MaxDomains)
		}
	}
	r.Eviction.validate(m)
	for i, w := range r.Calendar.Windows {
		m.about(fmt.Sprintf("windows[%d]", i), w.Validate())
	}
	for i, f := range r.Calendar.Freezes {
		m.about(fmt.Sprintf("freezes[%d]", i), f.Validate())
	}
}

func (s Settings) validateGroups(m *mistakes) {
	var names, fields []string
	first := map[string]int{}
	for i, g := range s.Groups {
		names, fields = append(names, g.Name), append(fields, fmt.Sprintf("groups[%d].name", i))
		if _, there := first[g.Name]; !there {
			first[g.Name] = i
		}
	}
	after := s.reached()
	for i, g := range s.Groups {
		at := fmt.Sprintf("groups[%d]", i)
		if g.Name == "" {
			m.add(at+".name", "is missing: give each group one")
		} else if other := first[g.Name]; other != i {
			m.add(at+".name", "is %q, as is groups[%d].name: give each group a name of its own", g.Name, other)
		}
		if g.AfterSoak < 0 {
			m.add(at+".afterSoak", "is %s: give 0 or more", g.AfterSoak)
		}
		for j, a := range g.After {
			if _, known := first[a]; !known {
				m.add(fmt.Sprintf("%s.after[%d]", at, j), "is %q, which is no group: name one of this file%s", a, Suggestion(a, names))
				m.beside(fields...)
			}
		}
		var own mistakes
		g.Rules.validate(&own)
		for _, o := range own {
			*m = append(*m, o.within(at))
		}
		// Groups that wait for each other are one mistake, of the first of them.
		if after[g.Name][g.Name] && !slices.ContainsFunc(names[:i], func(n string) bool { return after[g.Name][n] && after[n][g.Name] }) {
			m.add(at+".after", "leads from group %q back to itself, by way of the groups that it comes after: nothing in it would ever start", g.Name)
		}
	}
}

// reached are, by a group's name, the groups that it waits for, at once or by way of others.
func (s Settings) reached() map[string]map[string]bool {
	after, all := map[string][]string{}, map[string]map[string]bool{}
	for _, g := range s.Groups {
		after[g.Name] = g.After
	}
	for _, g := range s.Groups {
		reached, next := map[string]bool{}, g.After
		for len(next) > 0 {
			a := next[0]
			next = next[1:]
			if !reached[a] {
				reached[a] = true
				next = append(next[:len(next):len(next)], after[a]...)
			}
		}
		all[g.Name] = reached
	}
	return all
}

// Warnings returns what is allowed but will surprise.
func (s Settings) Warnings() []string {
	var w []string
	if s.Deadlines.Staging <= intent.BusyPatience {
		w = append(w, "the staging deadline is shorter than an agent's patience with a busy host ("+intent.BusyPatience.String()+")")
	}
	if s.Deadlines.Reboot <= intent.RebootPatience {
		w = append(w, "the reboot deadline is shorter than an agent's patience with its own reboot ("+intent.RebootPatience.String()+")")
	}
	return w
}

// BackOff is the wait after the count-th failure.
func (s Settings) BackOff(count int) time.Duration {
	d := s.RetryBase
	for i := 1; i < count && d < s.RetryMax; i++ {
		d *= 2
	}
	return min(d, s.RetryMax)
}

// Soon is in which time there may be attemptsSoon. By default it is an hour.
func (s Settings) Soon() time.Duration { return 6 * s.RetryBase }
