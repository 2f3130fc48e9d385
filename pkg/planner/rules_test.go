package planner_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/window"
)

const zoneKey = "topology.kubernetes.io/zone"

func label(k, v string) change {
	return with(func(n *fleet.Node) {
		if n.Labels == nil {
			n.Labels = map[string]string{}
		}
		n.Labels[k] = v
		n.Zone = n.Labels[fleet.ZoneLabel]
	})
}

func zone(v string) change { return label(zoneKey, v) }

func stageOf(v string) change { return label("stage", v) }

// updated is up to date with v2 since some time ago, and took so long for it.
func updated(ago, took time.Duration) change {
	return func(n *fleet.Node) {
		n.Marks.Report.Current, n.OSVersion = v2, v2
		n.Marks.History = []marker.Attempt{{Version: v2, Outcome: marker.OutcomeUpdated, Reason: string(plan.ReasonUpdated),
			Started: now.Add(-ago - took), Ended: now.Add(-ago)}}
	}
}

// runs is up to date with a version, and nothing tells since when.
func runs(v string) change {
	return func(n *fleet.Node) { n.Marks.Report.Current, n.OSVersion = v, v }
}

func awaySince(ago time.Duration) change {
	return func(n *fleet.Node) { n.UnavailableSince = now.Add(-ago) }
}

func in(group string) policy.Selector {
	return policy.Selector{{Key: "stage", Operator: policy.In, Values: []string{group}}}
}

// groups are canary, then production, each with the fleet's rules but for what is adjusted.
func groups(s *policy.Settings, adjust ...func(canary, production *policy.Group)) {
	rules := s.Rules
	rules.MaxUnavailable = policy.Unlimited
	canary := policy.Group{Name: "canary", Selector: in("canary"), Rules: rules}
	production := policy.Group{Name: "production", Selector: in("production"), Rules: rules, After: []string{"canary"}}
	for _, f := range adjust {
		f(&canary, &production)
	}
	s.Groups = []policy.Group{canary, production}
}

type exactly string

func (e exactly) Contains(v string) bool { return v == string(e) }
func (e exactly) String() string         { return string(e) }

func nightly(t *testing.T, schedule string, d time.Duration) window.Calendar {
	t.Helper()
	c, err := window.ParseCron(schedule)
	assert.NilError(t, err)
	return window.Calendar{Windows: []window.Window{{Schedule: c, Duration: d, Zone: time.UTC}}}
}

// What the policy file can say, each with the nodes that it lets go and what it says of the others. It is ten o'clock.
func TestRules(t *testing.T) {
	open, closed := nightly(t, "0 8 * * *", 4*time.Hour), nightly(t, "0 22 * * *", 4*time.Hour)
	freeze := window.Calendar{Freezes: []window.Freeze{{From: now.Add(-time.Hour), To: now.Add(time.Hour), Reason: "a sale"}}}
	three := func(s *policy.Settings) { s.MaxUnavailable = policy.Count(3) }
	slow := func(s *policy.Settings) { s.Drain = 4 * time.Hour }
	zones := func(n int) func(*policy.Settings) {
		return func(s *policy.Settings) {
			s.Topology = []policy.Topology{{Key: zoneKey, MaxUnavailable: policy.Unlimited, MaxDomains: n}}
		}
	}
	soaked := func(s *policy.Settings) { groups(s, func(_, p *policy.Group) { p.AfterSoak = time.Hour }) }
	for _, tc := range []struct {
		name  string
		rules []func(*policy.Settings)
		nodes []fleet.Node
		want  map[string]string
	}{
		{"a share of the fleet rounds down", []func(*policy.Settings){func(s *policy.Settings) { s.MaxUnavailable = policy.Percent(50) }},
			[]fleet.Node{node("a", prepared), node("b", prepared), node("c"), node("d"), node("e")},
			map[string]string{"a": "Cordon Cordoned", "b": "Cordon Cordoned"}},
		{"but is one at least", []func(*policy.Settings){func(s *policy.Settings) { s.MaxUnavailable = policy.Percent(1) }},
			[]fleet.Node{node("a", prepared), node("b", prepared), node("c")},
			map[string]string{"a": "Cordon Cordoned", "b": "wait UnavailableLimit"}},
		{"unlimited", []func(*policy.Settings){func(s *policy.Settings) { s.MaxUnavailable = policy.Unlimited }},
			[]fleet.Node{node("a", prepared), node("b", prepared), node("c")},
			map[string]string{"a": "Cordon Cordoned", "b": "Cordon Cordoned"}},
		{"none is a pause, and says so", []func(*policy.Settings){func(s *policy.Settings) { s.MaxUnavailable = policy.Count(0) }},
			[]fleet.Node{node("a", prepared), node("b", offered(v2)), node("c", draining)},
			map[string]string{"a": "wait PolicyPaused", "b": "wait PolicyPaused", "c": "Drain Draining"}},

		{"a hold at what it runs", []func(*policy.Settings){func(s *policy.Settings) { s.Versions.Hold = v1 }}, []fleet.Node{node("a"), node("b", runs(v2))},
			map[string]string{"a": "wait UpToDate", "b": "wait UpToDate"}},

		{"so many in one zone", []func(*policy.Settings){three, func(s *policy.Settings) {
			s.Topology = []policy.Topology{{Key: zoneKey, MaxUnavailable: policy.Count(1)}}
		}}, []fleet.Node{node("a", zone("x"), prepared), node("b", zone("x"), prepared), node("c", zone("y"), prepared), node("d")},
			map[string]string{"a": "Cordon Cordoned", "b": "wait UnavailableLimit", "c": "Cordon Cordoned"}},
		{"none in any zone", []func(*policy.Settings){three, func(s *policy.Settings) {
			s.Topology = []policy.Topology{{Key: zoneKey}}
		}}, []fleet.Node{node("a", zone("x"), prepared), node("d")}, map[string]string{"a": "wait PolicyPaused"}},
		{"so many zones at once", []func(*policy.Settings){three, func(s *policy.Settings) {
			s.Topology = []policy.Topology{{Key: zoneKey, MaxUnavailable: policy.Unlimited, MaxDomains: 1}}
		}}, []fleet.Node{node("a", zone("x"), prepared), node("b", zone("x"), prepared), node("c", zone("y"), prepared), node("d")},
			map[string]string{"a": "Cordon Cordoned", "b": "Cordon Cordoned", "c": "wait DomainLimit"}},
		{"a zone that others took down is one of them", []func(*policy.Settings){three, zones(1)},
			[]fleet.Node{node("a", zone("x"), cordoned, notReady), node("b", zone("x"), prepared), node("c", zone("y"), prepared), node("d")},
			map[string]string{"b": "Cordon Cordoned", "c": "wait DomainLimit"}},
		{"and its own node may go", []func(*policy.Settings){three, zones(1)},
			[]fleet.Node{node("a", zone("x"), cordoned, prepared), node("c", zone("y"), prepared), node("d")},
			map[string]string{"a": "Cordon Cordoned", "c": "wait DomainLimit"}},
		{"but not beside a zone that is disrupted", []func(*policy.Settings){three, zones(1)},
			[]fleet.Node{node("a", zone("x"), notReady), node("b", zone("y"), draining), node("c", zone("x"), prepared), node("d")},
			map[string]string{"c": "wait DomainLimit"}},
		// S8: a user broke the mark of a node at rest.
		{"nor where all that began its own can't be read", []func(*policy.Settings){three, zones(1)},
			[]fleet.Node{node("a", zone("x"), broken), node("b", zone("y"), draining), node("c", zone("x"), prepared), node("d")},
			map[string]string{"c": "wait DomainLimit"}},
		{"spread over zones", []func(*policy.Settings){func(s *policy.Settings) { s.MaxUnavailable = policy.Count(2) }},
			[]fleet.Node{node("a", zone("x"), draining), node("b", zone("x"), prepared), node("c", zone("y"), prepared), node("d")},
			map[string]string{"b": "wait UnavailableLimit", "c": "Cordon Cordoned"}},
		{"the oldest version first", nil, []fleet.Node{node("a", prepared, with(func(n *fleet.Node) { n.Marks.Report.Current, n.OSVersion = "1.1.5", "1.1.5" })), node("b", prepared), node("c")},
			map[string]string{"a": "wait UnavailableLimit", "b": "Cordon Cordoned"}},

		{"what others took out of service counts", nil, []fleet.Node{node("a", prepared), node("b", cordoned), node("c"), node("d")},
			map[string]string{"a": "wait UnavailableLimit"}},
		{"and what isn't well", nil, []fleet.Node{node("a", prepared), node("b", notReady), node("c"), node("d")},
			map[string]string{"a": "wait UnavailableLimit"}},
		{"not for ever", nil, []fleet.Node{node("a", prepared), node("b", cordoned, awaySince(2*time.Hour)), node("c"), node("d")},
			map[string]string{"a": "Cordon Cordoned"}},
		{"not if the policy says so", []func(*policy.Settings){func(s *policy.Settings) { s.CountUnavailable = false }},
			[]fleet.Node{node("a", prepared), node("b", cordoned), node("c"), node("d")},
			map[string]string{"a": "Cordon Cordoned"}},
		{"it takes no second place", nil, []fleet.Node{node("a", prepared), node("b", cordoned, prepared), node("c"), node("d")},
			map[string]string{"a": "wait UnavailableLimit", "b": "Cordon Cordoned"}},
		{"nodes on their way out are no capacity, and left alone", []func(*policy.Settings){func(s *policy.Settings) { s.MaxUnavailable = policy.Percent(50) }},
			[]fleet.Node{node("a", prepared), node("b", prepared), node("c"), node("d", prepared, with(func(n *fleet.Node) { n.Leaving = "it is being deleted" }))},
			map[string]string{"a": "Cordon Cordoned", "b": "wait UnavailableLimit", "d": "wait BeingRemoved"}},

		{"a group waits for the one before it", []func(*policy.Settings){three, func(s *policy.Settings) { groups(s) }},
			[]fleet.Node{node("a", stageOf("production"), prepared), node("b", stageOf("canary"), prepared), node("c")},
			map[string]string{"a": "wait AfterGroup", "b": "Cordon Cordoned"}},
		{"and stages nothing before", []func(*policy.Settings){three, func(s *policy.Settings) { groups(s) }},
			[]fleet.Node{node("a", stageOf("production"), offered(v2)), node("b", stageOf("canary"), prepared), node("c")},
			map[string]string{"a": "wait AfterGroup"}},
		{"until it has soaked", []func(*policy.Settings){three, func(s *policy.Settings) {
			groups(s, func(_, p *policy.Group) { p.AfterSoak = time.Hour })
		}}, []fleet.Node{node("a", stageOf("production"), prepared), node("b", stageOf("canary"), updated(30*time.Minute, time.Minute)), node("c")},
			map[string]string{"a": "wait AfterGroup"}},
		{"then it goes", []func(*policy.Settings){three, func(s *policy.Settings) {
			groups(s, func(_, p *policy.Group) { p.AfterSoak = time.Hour })
		}}, []fleet.Node{node("a", stageOf("production"), prepared), node("b", stageOf("canary"), updated(2*time.Hour, time.Minute)), node("c")},
			map[string]string{"a": "Cordon Cordoned"}},
		{"a group without nodes lets no node by", []func(*policy.Settings){three, func(s *policy.Settings) { groups(s) }},
			[]fleet.Node{node("a", stageOf("production"), prepared), node("c")},
			map[string]string{"a": "wait AfterGroup"}},
		{"the controller's own node doesn't wait for those that wait for its group (L1)", []func(*policy.Settings){three, func(s *policy.Settings) { groups(s) }},
			[]fleet.Node{node("a", stageOf("canary"), prepared, controller), node("b", stageOf("production"), offered(v2)), node("c")},
			map[string]string{"a": "Cordon Cordoned", "b": "wait AfterGroup"}},
		{"nor for those that the policy keeps from staging", []func(*policy.Settings){three, func(s *policy.Settings) { s.Versions.Deny = exactly(v3) }},
			[]fleet.Node{node("a", prepared, controller), node("b", offered(v3)), node("c")},
			map[string]string{"a": "Cordon Cordoned", "b": "wait VersionDenied"}},
		{"or whose nodes are all on their way out", []func(*policy.Settings){three, func(s *policy.Settings) { groups(s) }},
			[]fleet.Node{node("a", stageOf("production"), prepared), node("b", stageOf("canary"), with(func(n *fleet.Node) { n.Leaving = "x" })), node("c")},
			map[string]string{"a": "wait AfterGroup"}},
		{"one that joined with the version has it since then", []func(*policy.Settings){three, soaked},
			[]fleet.Node{node("a", stageOf("production"), prepared), node("b", stageOf("canary"), runs(v2), with(func(n *fleet.Node) { n.Created = now.Add(-30 * time.Minute) })), node("c")},
			map[string]string{"a": "wait AfterGroup"}},
		{"and long enough in the end", []func(*policy.Settings){three, soaked},
			[]fleet.Node{node("a", stageOf("production"), prepared), node("b", stageOf("canary"), runs(v2), with(func(n *fleet.Node) { n.Created = now.Add(-2 * time.Hour) })), node("c")},
			map[string]string{"a": "Cordon Cordoned"}},
		{"a node that runs more hasn't the lower version", []func(*policy.Settings){three, func(s *policy.Settings) { s.Versions.Downgrade = true; groups(s) }},
			[]fleet.Node{node("a", stageOf("production"), runs(v3), offered(v2)), node("b", stageOf("canary"), runs(v3), offered(v2)), node("c")},
			map[string]string{"a": "wait AfterGroup", "b": "Stage UpdateAvailable"}},
		{"a group's own budget", []func(*policy.Settings){three, func(s *policy.Settings) {
			groups(s, func(c, _ *policy.Group) { c.MaxUnavailable = policy.Count(1) })
		}}, []fleet.Node{node("a", stageOf("canary"), prepared), node("b", stageOf("canary"), prepared), node("c", prepared), node("d")},
			map[string]string{"a": "Cordon Cordoned", "b": "wait UnavailableLimit", "c": "Cordon Cordoned"}},
		{"the fleet's holds too", []func(*policy.Settings){func(s *policy.Settings) { groups(s) }},
			[]fleet.Node{node("a", stageOf("canary"), prepared), node("b", stageOf("canary"), prepared), node("d")},
			map[string]string{"a": "Cordon Cordoned", "b": "wait UnavailableLimit"}},
		{"a group on pause", []func(*policy.Settings){three, func(s *policy.Settings) {
			groups(s, func(c, _ *policy.Group) { c.Pause = &policy.Pause{Reason: "x", InFlight: policy.Finish} })
		}}, []fleet.Node{node("a", stageOf("canary"), prepared), node("b", prepared), node("c", stageOf("canary"), draining), node("d")},
			map[string]string{"a": "wait PolicyPaused", "b": "Cordon Cordoned", "c": "Drain Draining"}},

		{"the fleet on pause: what has begun finishes", []func(*policy.Settings){func(s *policy.Settings) { s.Pause = &policy.Pause{Reason: "x", InFlight: policy.Finish} }},
			[]fleet.Node{node("a", draining), node("b", offered(v2)), node("c")},
			map[string]string{"a": "Drain Draining", "b": "wait PolicyPaused"}},
		{"or is abandoned, up to the reboot", []func(*policy.Settings){func(s *policy.Settings) { s.Pause = &policy.Pause{Reason: "x", InFlight: policy.Return} }},
			[]fleet.Node{node("a", draining), node("b", rebooting), node("c", busy), node("d")},
			map[string]string{"a": "Uncordon PolicyPaused", "b": "Abandon PolicyPaused", "c": "wait Rebooting"}},

		{"a group's pause that abandons more", []func(*policy.Settings){three, func(s *policy.Settings) {
			s.Pause = &policy.Pause{Reason: "x", InFlight: policy.Finish}
			groups(s, func(c, _ *policy.Group) { c.Pause = &policy.Pause{Reason: "y", InFlight: policy.Return} })
		}}, []fleet.Node{node("a", stageOf("canary"), draining), node("b", draining), node("c")},
			map[string]string{"a": "Uncordon PolicyPaused", "b": "Drain Draining"}},

		{"in the window", []func(*policy.Settings){func(s *policy.Settings) { s.Calendar = open }}, []fleet.Node{node("a", prepared), node("c")},
			map[string]string{"a": "Cordon Cordoned"}},
		{"outside: staging goes on", []func(*policy.Settings){func(s *policy.Settings) { s.Calendar = closed }}, []fleet.Node{node("a", prepared), node("b", offered(v2)), node("c")},
			map[string]string{"a": "wait WindowClosed", "b": "Stage UpdateAvailable"}},
		{"unless the policy says otherwise", []func(*policy.Settings){func(s *policy.Settings) { s.Calendar, s.StageOutside = closed, false }},
			[]fleet.Node{node("b", offered(v2)), node("c")}, map[string]string{"b": "wait WindowClosed"}},
		{"what hasn't begun to reboot when it closes is abandoned", []func(*policy.Settings){func(s *policy.Settings) { s.Calendar = closed }},
			[]fleet.Node{node("a", draining), node("b", rebooting), node("c", busy), node("d")},
			map[string]string{"a": "Uncordon WindowClosed", "b": "Abandon WindowClosed", "c": "wait Rebooting"}},
		{"or finishes", []func(*policy.Settings){func(s *policy.Settings) { s.Calendar, s.WhenClosed = closed, policy.Finish }},
			[]fleet.Node{node("a", draining), node("d")}, map[string]string{"a": "Drain Draining"}},
		{"nothing starts that can't end inside", []func(*policy.Settings){slow, func(s *policy.Settings) { s.Calendar = open }},
			[]fleet.Node{node("a", prepared), node("b", updated(time.Hour, 3*time.Hour)), node("c")}, map[string]string{"a": "wait WindowTooShort"}},
		{"unless that may be", []func(*policy.Settings){slow, func(s *policy.Settings) { s.Calendar, s.FitWindow = open, false }},
			[]fleet.Node{node("a", prepared), node("b", updated(time.Hour, 3*time.Hour)), node("c")}, map[string]string{"a": "Cordon Cordoned"}},
		{"or unless no window is long enough", []func(*policy.Settings){slow, func(s *policy.Settings) { s.Calendar, s.Soak = open, 5*time.Hour }},
			[]fleet.Node{node("a", prepared), node("c")}, map[string]string{"a": "Cordon Cordoned"}},
		{"nothing takes longer than it may", []func(*policy.Settings){func(s *policy.Settings) { s.Calendar = open }},
			[]fleet.Node{node("a", prepared), node("b", updated(time.Hour, 30*time.Hour)), node("c")}, map[string]string{"a": "Cordon Cordoned"}},
		{"the soak must fit too, before anything was measured", []func(*policy.Settings){func(s *policy.Settings) { s.Calendar, s.Soak = open, 3*time.Hour }},
			[]fleet.Node{node("a", prepared), node("c")}, map[string]string{"a": "wait WindowTooShort"}},
		{"in a freeze nothing starts at all", []func(*policy.Settings){func(s *policy.Settings) { s.Calendar = freeze }},
			[]fleet.Node{node("a", prepared), node("b", offered(v2)), node("c")}, map[string]string{"a": "wait Frozen", "b": "wait Frozen"}},

		{"a version that is denied", []func(*policy.Settings){func(s *policy.Settings) { s.Versions.Deny = exactly(v2) }},
			[]fleet.Node{node("a", prepared), node("b", offered(v2)), node("c", draining)},
			map[string]string{"a": "wait VersionDenied", "b": "wait VersionDenied", "c": "Uncordon VersionDenied"}},
		{"one that isn't allowed", []func(*policy.Settings){func(s *policy.Settings) { s.Versions.Allow = exactly(v3) }},
			[]fleet.Node{node("a", prepared), node("c")}, map[string]string{"a": "wait VersionDenied"}},
		{"one version for all", []func(*policy.Settings){func(s *policy.Settings) { s.Versions.Hold = v2 }},
			[]fleet.Node{node("a", prepared), node("b", offered(v3)), node("c")},
			map[string]string{"a": "Cordon Cordoned", "b": "wait HeldAtVersion", "c": "wait HeldAtVersion"}},
		{"a lower one, if the policy says so", []func(*policy.Settings){func(s *policy.Settings) { s.Versions.Downgrade = true }},
			[]fleet.Node{node("a", offered("1.0.0")), node("c")}, map[string]string{"a": "Stage UpdateAvailable"}},
		{"but not once it says no again", nil, []fleet.Node{node("a", prepared, with(func(n *fleet.Node) { n.Marks.Report.Current, n.OSVersion = v3, v3 })), node("c", draining, with(func(n *fleet.Node) { n.Marks.Report.Current, n.OSVersion = v3, v3 }))},
			map[string]string{"a": "wait LowerVersionOffered", "c": "Uncordon LowerVersionOffered"}},
		{"one that is too new here", []func(*policy.Settings){func(s *policy.Settings) { s.Versions.MinAge = 25 * time.Hour }},
			[]fleet.Node{node("a", prepared), node("b", offered(v3)), node("c")},
			map[string]string{"a": "wait VersionTooNew", "b": "wait VersionTooNew"}},
		{"one that has been known for long enough", []func(*policy.Settings){func(s *policy.Settings) { s.Versions.MinAge = 23 * time.Hour }},
			[]fleet.Node{node("a", prepared), node("b", offered(v3)), node("c")},
			map[string]string{"a": "Cordon Cordoned", "b": "wait VersionTooNew"}},
		{"one that failed on too many nodes", []func(*policy.Settings){func(s *policy.Settings) { s.MaxFailed = policy.Count(2) }},
			[]fleet.Node{node("a", prepared), node("b", offered(v2), failedOnce(time.Hour, v2)), node("c", offered(v2), failedOnce(time.Hour, v2)), node("d", offered(v2)), node("e", offered(v3)), node("f", draining)},
			map[string]string{"a": "wait VersionStopped", "d": "wait VersionStopped", "e": "Stage UpdateAvailable", "f": "Uncordon VersionStopped"}},
		{"what a new leader will call Lost counts at its first look", []func(*policy.Settings){three, func(s *policy.Settings) { s.MaxFailed = policy.Count(2) }},
			[]fleet.Node{node("a", prepared), node("b", lost, firstLook), node("c", failedOnce(time.Hour, v2)), node("d")},
			map[string]string{"a": "wait VersionStopped"}},
		{"nodes that went on to a newer one count still", []func(*policy.Settings){func(s *policy.Settings) { s.MaxFailed = policy.Count(1) }},
			[]fleet.Node{node("a", prepared), node("b", offered(v3)), node("c", offered(v3), failedOnce(0, v2), with(func(n *fleet.Node) {
				n.Marks.Report.Current, n.OSVersion, n.Marks.Failure.Count = v3, v3, 0
			}))}, map[string]string{"a": "wait VersionStopped", "b": "Stage UpdateAvailable"}},
		{"not yet on so many", []func(*policy.Settings){func(s *policy.Settings) { s.MaxFailed = policy.Count(3) }},
			[]fleet.Node{node("a", prepared), node("b", offered(v2), failedOnce(time.Hour, v2)), node("c", offered(v2), failedOnce(time.Hour, v2))},
			map[string]string{"a": "Cordon Cordoned"}},
		{"a node on which it failed twice is one", []func(*policy.Settings){func(s *policy.Settings) { s.MaxFailed = policy.Count(2) }},
			[]fleet.Node{node("a", prepared), node("b", lost, failedOnce(time.Hour, v2)), node("c")},
			map[string]string{"a": "Cordon Cordoned", "b": "wait Lost"}},
		{"what staging or a drain failed at is no version's fault", []func(*policy.Settings){func(s *policy.Settings) { s.MaxFailed = policy.Count(1) }},
			[]fleet.Node{node("a", prepared), node("c", offered(v2), failedOnce(time.Hour, v2), with(func(n *fleet.Node) {
				n.Marks.Failure.Broken = nil
			}))}, map[string]string{"a": "Cordon Cordoned"}},
		{"one that a person acknowledged", []func(*policy.Settings){func(s *policy.Settings) { s.MaxFailed = policy.Count(1) }},
			[]fleet.Node{node("a", preparedFor(v3)), node("c", offered(v3), failedOnce(time.Hour, v3))}, map[string]string{"a": "Cordon Cordoned"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			set := policy.DefaultSettings()
			for _, f := range tc.rules {
				f(&set)
			}
			assert.NilError(t, set.Validate())
			s := fleetOf(tc.nodes)
			s.FirstSeen = map[string]time.Time{v2: now.Add(-24 * time.Hour), v1: now.Add(-24 * time.Hour)}
			s.Acknowledged = map[string]bool{v3: true}
			out := planner.Plan(s, set)
			for name, want := range tc.want {
				got, _ := find(t, out, name)
				_, verdict, _ := strings.Cut(verdict(got), " ")
				assert.Check(t, verdict == want, "%s is %q, not %q: %s", name, verdict, want, got.Message)
				assert.Check(t, !strings.ContainsAny(got.Message.String(), "{}"), "%s", got.Message)
			}
		})
	}
}

// preparedFor is a node that has another version staged.
func preparedFor(v string) change {
	return func(n *fleet.Node) {
		prepared(n)
		n.Marks.Report.Available, n.Marks.Intent.Target = v, v
	}
}

// Who asks the controller for its plan in JSON reads the same sentences.
func TestPlanInJSON(t *testing.T) {
	out := planner.Plan(fleetOf([]fleet.Node{node("a", prepared), node("b", draining), node("c", offered(v2), paused), node("d")}), policy.DefaultSettings())
	text, err := json.Marshal(out)
	assert.NilError(t, err)
	var read plan.Plan
	assert.NilError(t, json.Unmarshal(text, &read))
	assert.Equal(t, read.String(), out.String())
}

// With no policy to go by nothing goes on that can be abandoned (S8).
func TestNoPolicy(t *testing.T) {
	s := fleetOf([]fleet.Node{node("a", draining), node("b", rebooting), node("c", busy), node("d", offered(v2)), node("e", prepared)})
	s.NoPolicy, s.PolicyProblem = true, "it is broken"
	out := planner.Plan(s, policy.DefaultSettings())
	for name, want := range map[string]string{"a": "Draining Uncordon PolicyUnreadable", "b": "Rebooting Abandon PolicyUnreadable",
		"c": "Rebooting wait Rebooting", "d": "Waiting wait PolicyUnreadable", "e": "Staged wait PolicyUnreadable"} {
		got, _ := find(t, out, name)
		assert.Check(t, verdict(got) == want, "%s is %q, not %q", name, verdict(got), want)
	}
}

// An intent to reboot doesn't outlive the window, also if no controller is there to take it back.
func TestRebootWithinTheWindow(t *testing.T) {
	set := policy.DefaultSettings()
	set.Calendar = nightly(t, "0 8 * * *", 2*time.Hour+10*time.Minute)
	drained := node("a", draining, drain(fleet.Drain{}))
	_, step := find(t, planner.Plan(fleetOf([]fleet.Node{drained, node("b")}), set), "a")
	assert.Assert(t, step.Change.Marks.Intent.Until.Equal(now.Add(10*time.Minute)), "%s", step.Change.Marks.Intent.Until)
	set.WhenClosed = policy.Finish
	_, step = find(t, planner.Plan(fleetOf([]fleet.Node{drained, node("b")}), set), "a")
	assert.Assert(t, step.Change.Marks.Intent.Until.Equal(now.Add(set.Deadlines.Reboot)), "%s", step.Change.Marks.Intent.Until)
}

// The plan warns of groups without nodes, and of windows that are too short for what updates take.
func TestPlanWarns(t *testing.T) {
	set := policy.DefaultSettings()
	groups(&set, func(canary, production *policy.Group) { canary.Selector, production.Selector = nil, in("prodution") })
	set.Groups = append(set.Groups, policy.Group{Name: "late", Selector: in("x"), Rules: set.Groups[0].Rules})
	set.Calendar, set.Soak = nightly(t, "0 8 * * *", time.Hour), 2*time.Hour
	out := planner.Plan(fleetOf([]fleet.Node{node("a", stageOf("x")), node("b")}), set)
	assert.DeepEqual(t, out.Troubles(), []string{
		"warning: group production has no node: its selector chooses none that is labelled",
		"warning: group late has no node: all 1 that its selector chooses are in groups before it",
		"warning: an update takes 2h0m0s in the fleet, and no window of it is longer than 1h0m0s: it starts whenever one is open",
	})
	set.FitWindow = false
	assert.Equal(t, len(planner.Plan(fleetOf([]fleet.Node{node("a", stageOf("x")), node("b")}), set).Warnings), 2)
	// A group's window is its own, and one that is just as long as an update is too short.
	set.Groups[0].Calendar, set.Groups[0].Soak = nightly(t, "0 8 * * *", time.Hour), time.Hour
	assert.Equal(t, planner.Plan(fleetOf([]fleet.Node{node("a", stageOf("x")), node("b")}), set).Warnings[2].String(),
		"an update takes 1h0m0s in group canary, and no window of it is longer than 1h0m0s: it starts whenever one is open")
}

// A node that no group chooses is warned of; it goes by the fleet's rules, or waits, as the policy says.
func TestUngrouped(t *testing.T) {
	for _, tc := range []struct {
		ungrouped policy.Ungrouped
		want      string
		warning   string
	}{
		{policy.UngroupedGo, "Staged Cordon Cordoned", "no group chooses 2 nodes, a among them, which go by the rules of the fleet"},
		{policy.UngroupedWait, "Staged wait Ungrouped", "no group chooses 2 nodes, a among them, which wait"},
	} {
		set := policy.DefaultSettings()
		set.Ungrouped = tc.ungrouped
		nodes := []fleet.Node{node("a", prepared), node("b"), node("c", stageOf("canary"))}
		plain := planner.Plan(fleetOf(nodes), set)
		got, _ := find(t, plain, "a")
		assert.Equal(t, verdict(got), "Staged Cordon Cordoned", "without groups no node is outside of one")
		assert.Equal(t, len(plain.Warnings), 0)
		set.Groups = []policy.Group{{Name: "canary", Selector: in("canary"), Rules: set.Rules}}
		out := planner.Plan(fleetOf(nodes), set)
		got, _ = find(t, out, "a")
		assert.Equal(t, verdict(got), tc.want)
		assert.DeepEqual(t, out.Troubles(), []string{"warning: " + tc.warning})
	}
}

// A node that was taken out of service by hand is named with the time until which it holds the others up.
func TestForeignCordonSaysUntilWhen(t *testing.T) {
	theirs := node("b", func(n *fleet.Node) { n.Unschedulable, n.UnavailableSince = true, now.Add(-20*time.Minute) })
	got, _ := find(t, planner.Plan(fleetOf([]fleet.Node{node("a", prepared), theirs}), policy.DefaultSettings()), "a")
	assert.Equal(t, got.Reason, plan.ReasonUnavailableLimit)
	assert.Equal(t, got.Message.String(), "staged; the fleet: 1 of 1 allowed nodes are out of service, or go next: "+
		"b (not by the operator; counts until it is back in service, or 2026-09-20 10:40:00 UTC)")
}

// A host that can't load its repository is shown with its own word, while its activation is tried again.
func TestActivatedAgainAndAgain(t *testing.T) {
	waits := node("a", rebooting, answers(marker.StateBusy, "Metadata error: timed out"), because(marker.ReasonRepositoryUnavailable))
	got, _ := find(t, planner.Plan(fleetOf([]fleet.Node{waits, node("b")}, "a"), policy.DefaultSettings()), "a")
	assert.Equal(t, got.Message.String(), "the agent activates "+v2+" again and again, since the host says: Metadata error: timed out")
}

// A version that failed on too many nodes is told of while some node in the operator's care would go to it.
func TestStoppedVersionIsToldOf(t *testing.T) {
	failed := node("a", failedOnce(time.Hour, v2), offered(v3))
	set := policy.DefaultSettings()
	set.MaxFailed = policy.Count(1)
	for _, tc := range []struct {
		name    string
		changes []change
		told    bool
	}{
		{"none is offered it", nil, false},
		{"one is", []change{offered(v2)}, true},
		{"one is on its way", []change{preparing, offered(v3)}, true},
		{"one is there", []change{runs(v2), offered(v2)}, false},
		{"one is not in our care", []change{offered(v2), unlabelled}, false},
	} {
		out := planner.Plan(fleetOf([]fleet.Node{failed, node("b", tc.changes...)}), set)
		assert.Check(t, tc.told == (len(out.Stopped) == 1 && out.Stopped[0].Version == v2), "%s: %v", tc.name, out.Stopped)
	}
}

// An update takes as long as nine of ten nodes took.
func TestHowLongAnUpdateTakes(t *testing.T) {
	set := policy.DefaultSettings()
	set.Drain, set.Calendar = 4*time.Hour, nightly(t, "0 8 * * *", 2*time.Hour+30*time.Minute)
	for n, want := range map[int]string{1: "31m0s", 9: "39m0s", 10: "39m0s", 11: "40m0s", 20: "48m0s"} {
		nodes := []fleet.Node{node("a", prepared)}
		for i := range n {
			nodes = append(nodes, node(fmt.Sprint("b", i), updated(time.Hour, time.Duration(31+i)*time.Minute), func(n *fleet.Node) {
				n.Marks.History = append(n.Marks.History, marker.Attempt{Version: v2, Outcome: marker.OutcomeAbandoned, Ended: now.Add(-48 * time.Hour)})
			}))
		}
		got, _ := find(t, planner.Plan(fleetOf(nodes), set), "a")
		assert.Check(t, strings.HasSuffix(got.Message.String(), " an update takes "+want), "%d: %s", n, got.Message)
	}
}
