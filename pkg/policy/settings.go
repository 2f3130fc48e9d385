package policy

import (
	"time"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/window"
)

// Settings are the policy. The rules in it are for the whole fleet, and for the nodes that are in no group.
type Settings struct {
	Rules
	// Groups are looked through in this order: a node is in the first whose selector chooses it.
	Groups []Group
	// Ungrouped is what becomes of nodes that no group chooses, where there are groups. Default UngroupedGo.
	Ungrouped Ungrouped
	// MaxLost is how many Lost nodes lend their slot on, or which share of the fleet; with more of them
	// nothing starts. Default 1.
	MaxLost Limit
	// MaxStaging is how many nodes may download and write an update at once. Default 10.
	MaxStaging int
	// CountUnavailable: nodes that others cordoned, or that aren't Ready, use up budgets too. Default true.
	CountUnavailable bool
	// IgnoreAfter is how long they do. Default 1 h.
	IgnoreAfter time.Duration
	// Versions are those that nodes may go to.
	Versions Versions
	// MaxFailed is on how many nodes a version may fail, or on which share of the fleet, before nothing starts
	// for it any more. Default 3.
	MaxFailed Limit
	// SingleNode is what becomes of the only node of a cluster. Default never.
	SingleNode SingleNode
	// Alerts are those that keep everything from starting.
	Alerts Alerts
	// Deadlines of the phases.
	Deadlines Deadlines
	// RetryBase is the wait after a node's first failure, doubled by each further one up to RetryMax.
	// Defaults 10 min and 24 h.
	RetryBase, RetryMax time.Duration
	// HandsOff is how long a node is left alone after a human took our cordon away. Default 10 min.
	HandsOff time.Duration
}

// Rules are what may differ between groups of nodes.
type Rules struct {
	// MaxUnavailable is how many of these nodes may be in our hands (cordoned to verified) at once, or which
	// share of them; none is a pause. Default 1 for the fleet, and no limit of its own for a group.
	MaxUnavailable Limit
	// Topology are budgets for each value of a label.
	Topology []Topology
	// Pause is why nothing starts; nil if something may.
	Pause *Pause
	// Calendar is when nodes may be taken out of service; an empty one is always.
	Calendar window.Calendar
	// FitWindow: nothing starts that can't end within the window, by how long the fleet's updates took so far.
	// Default true.
	FitWindow bool
	// StageOutside: updates are staged outside the windows too, though never in a freeze. Default true.
	StageOutside bool
	// WhenClosed is what becomes of nodes that are out of service and haven't begun to reboot when the window
	// closes. Default Return.
	WhenClosed Ending
	// Soak is how long a node must be Ready, without a break, after its update. Default 60 s.
	Soak time.Duration
	// Drain is how long a drain may take: past it the node is given back, and never rebooted. Default 30 min.
	Drain time.Duration
	// Eviction is how the pods are taken off a node.
	Eviction Eviction
	// Balancers is what load balancers are told of nodes that are out of service.
	Balancers Balancers
	// Protect: autoscalers are told to leave nodes alone while they are in our hands. Default true.
	Protect bool
	// Volumes is what is made of volumes that are still attached when the node is empty.
	Volumes Volumes
	// Hooks are what others do to a node while it is out of service.
	Hooks Hooks
	// Verify is what must be well after an update, beside the node.
	Verify Verify
}

// Balancers is what load balancers are told.
type Balancers struct {
	// Exclude: they are told to send nothing to a node from its cordon on. Default true.
	Exclude bool
	// Wait is how long they are given before anything is evicted. Default 0.
	Wait time.Duration
}

// Group is a part of the fleet with rules of its own.
type Group struct {
	Name     string
	Selector Selector
	Rules
	// After names groups that must have the version, and have had it for AfterSoak, before this one starts.
	After     []string
	AfterSoak time.Duration
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
	Key string
	// MaxUnavailable is for the nodes with one value of the label, or which share of them.
	MaxUnavailable Limit
	// MaxDomains is how many values may have nodes in our hands at once; 0 is no limit.
	MaxDomains int
}

// Pause stops new starts.
type Pause struct {
	// Reason is for people.
	Reason string
	// InFlight is what becomes of nodes that are out of service and haven't begun to reboot. Default Finish.
	InFlight Ending
}

// Ending is what becomes of what has begun when it may not begin any more.
type Ending string

// The endings.
const (
	// Finish lets it go on to its end.
	Finish Ending = "finish"
	// Return gives it back; nothing is counted as a failure.
	Return Ending = "return"
)

// Deadlines are counted by the controller's clock from the mark that began the phase.
type Deadlines struct {
	// Prepare must be longer than an agent's patience with a busy host, intent.BusyPatience. Default 45 min.
	Prepare time.Duration
	// Reboot is also how long an agent may take to begin. Default 30 min.
	Reboot time.Duration
	// Return is for the kubelet to show the new boot, and again for the soak to end. Default 15 min.
	Return time.Duration
}

// DefaultSettings returns the defaults.
func DefaultSettings() Settings {
	return Settings{
		Rules: Rules{
			MaxUnavailable: Count(1), FitWindow: true, StageOutside: true, WhenClosed: Return,
			Soak: time.Minute, Drain: 30 * time.Minute, Balancers: Balancers{Exclude: true}, Protect: true,
			Eviction: Eviction{EmptyDirData: Evict, UnmanagedPods: Evict, Predict: true},
			Volumes:  Volumes{Wait: 5 * time.Minute, OnTimeout: Ignore},
			Verify:   Verify{Deadline: 10 * time.Minute, OnWorkloads: FailOnWorkloads},
		},
		Ungrouped:        UngroupedGo,
		MaxLost:          Count(1),
		MaxStaging:       10,
		CountUnavailable: true,
		IgnoreAfter:      time.Hour,
		MaxFailed:        Count(3),
		SingleNode:       SingleNodeNever,
		Deadlines:        Deadlines{Prepare: 45 * time.Minute, Reboot: 30 * time.Minute, Return: 15 * time.Minute},
		RetryBase:        10 * time.Minute,
		RetryMax:         24 * time.Hour,
		HandsOff:         10 * time.Minute,
	}
}

// Validate returns the first thing that is wrong, with the remedy.
func (s Settings) Validate() error {
	switch {
	case s.MaxStaging < 1:
		return errors.Errorf("maxStaging is %d: give 1 or more", s.MaxStaging)
	case s.IgnoreAfter < 0:
		return errors.Errorf("ignoreAfter is %s: give 0 or more", s.IgnoreAfter)
	case s.Ungrouped != UngroupedGo && s.Ungrouped != UngroupedWait:
		return errors.Errorf("ungrouped is %q: give %s or %s", string(s.Ungrouped), UngroupedGo, UngroupedWait)
	case s.SingleNode.validate() != nil:
		return s.SingleNode.validate()
	case s.MaxFailed.None():
		return errors.New("maxFailed is 0, which would stop every version: give 1 or more, a percentage, or unlimited")
	case s.Deadlines.Prepare <= 0 || s.Deadlines.Reboot <= 0 || s.Deadlines.Return <= 0:
		return errors.New("a phase's deadline is not positive: give each a duration such as 30m")
	case s.RetryBase <= 0 || s.RetryMax < s.RetryBase:
		return errors.Errorf("retry waits are %s to %s: give positive durations, the smaller one first", s.RetryBase, s.RetryMax)
	case s.HandsOff < 0:
		return errors.Errorf("handsOff is %s: give 0 or more", s.HandsOff)
	}
	if err := s.Alerts.validate(); err != nil {
		return err
	}
	if err := s.Rules.validate(); err != nil {
		return err
	}
	return s.validateGroups()
}

func (r Rules) validate() error {
	switch {
	case r.Soak < 0:
		return errors.Errorf("soak is %s: give 0 or more", r.Soak)
	case r.Drain <= 0:
		return errors.Errorf("drain is %s: give a duration such as 30m", r.Drain)
	case r.Balancers.Wait < 0 || r.Balancers.Wait >= r.Drain:
		return errors.Errorf("loadBalancers.wait is %s: give 0 or more, and less than drain.timeout, which is %s and counts from the cordon too", r.Balancers.Wait, r.Drain)
	}
	if r.Volumes.Wait < 0 {
		return errors.Errorf("volumes.wait is %s: give 0 or more", r.Volumes.Wait)
	}
	if err := r.Hooks.validate(); err != nil {
		return err
	}
	if err := r.Verify.validate(); err != nil {
		return err
	}
	for _, t := range r.Topology {
		if t.Key == "" {
			return errors.New("a topology has no key: name a label such as topology.kubernetes.io/zone")
		}
		if t.MaxDomains < 0 {
			return errors.Errorf("maxDomains of topology %s is %d: give 1 or more, or leave it out", t.Key, t.MaxDomains)
		}
	}
	return r.Eviction.validate()
}

func (s Settings) validateGroups() error {
	before := map[string]bool{}
	for _, g := range s.Groups {
		before[g.Name] = true
	}
	seen := map[string]bool{}
	for _, g := range s.Groups {
		switch {
		case g.Name == "":
			return errors.New("a group has no name: give each one")
		case seen[g.Name]:
			return errors.Errorf("group %q is there twice: give each a name of its own", g.Name)
		case g.AfterSoak < 0:
			return errors.Errorf("afterSoak of group %q is %s: give 0 or more", g.Name, g.AfterSoak)
		}
		seen[g.Name] = true
		for _, a := range g.After {
			if !before[a] {
				return errors.Errorf("group %q comes after %q, which is no group: name one of this file", g.Name, a)
			}
		}
		if err := g.Rules.validate(); err != nil {
			return errors.WithMessagef(err, "group %q", g.Name)
		}
	}
	if cycle := s.cycle(); cycle != "" {
		return errors.Errorf("group %q comes after itself, by way of the groups that it comes after: nothing in it would ever start", cycle)
	}
	return nil
}

// cycle names a group that waits for itself; empty if none does.
func (s Settings) cycle() string {
	after := map[string][]string{}
	for _, g := range s.Groups {
		after[g.Name] = g.After
	}
	for _, g := range s.Groups {
		reached, next := map[string]bool{}, g.After
		for len(next) > 0 {
			a := next[0]
			next = next[1:]
			if a == g.Name {
				return g.Name
			}
			if !reached[a] {
				reached[a] = true
				next = append(next, after[a]...)
			}
		}
	}
	return ""
}

// Warnings returns what is allowed but will surprise.
func (s Settings) Warnings() []string {
	var w []string
	if s.Deadlines.Prepare <= intent.BusyPatience {
		w = append(w, "the prepare deadline is shorter than an agent's patience with a busy host ("+intent.BusyPatience.String()+")")
	}
	if s.Deadlines.Reboot <= intent.RebootPatience {
		w = append(w, "the reboot deadline is shorter than an agent's patience with its own reboot ("+intent.RebootPatience.String()+")")
	}
	return w
}

// backOff is the wait after the count-th failure.
func (s Settings) backOff(count int) time.Duration {
	d := s.RetryBase
	for i := 1; i < count && d < s.RetryMax; i++ {
		d *= 2
	}
	return min(d, s.RetryMax)
}
