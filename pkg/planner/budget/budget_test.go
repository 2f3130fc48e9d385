package budget_test

import (
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner/budget"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

var (
	now      = time.Date(2026, 9, 20, 10, 0, 0, 0, time.UTC)
	serves   = budget.Claim{}
	ours     = budget.Claim{Disrupted: true}
	others   = budget.Claim{Away: true}
	othersBy = budget.Claim{Away: true, Until: now}
	unread   = budget.Claim{Disrupted: true, Unreadable: true}
)

func node(name, zone string) *fleet.Node { return &fleet.Node{Name: name, Zone: zone} }

// scope is the fleet with nodes a, b, c... of those claims, in the zone of a letter each.
func scope(r policy.Rules, gone int, zones string, claims ...budget.Claim) *budget.Scope {
	s := budget.Fleet(&r)
	for i, c := range claims {
		zone := ""
		if i < len(zones) && zones[i] != ' ' {
			zone = zones[i : i+1]
		}
		s.Add(node(string(rune('a'+i)), zone), true, c)
	}
	s.Settle(gone)
	return s
}

// A node finds room by how many are out of service, by which client, and by whether it is one of them (S1).
func TestRefuses(t *testing.T) {
	one, two := policy.Rules{MaxUnavailable: policy.Count(1)}, policy.Rules{MaxUnavailable: policy.Count(2)}
	perZone := policy.Rules{MaxUnavailable: policy.Count(9), Topology: []policy.Topology{{Key: fleet.ZoneLabel, MaxUnavailable: policy.Count(1)}}}
	oneZone := policy.Rules{MaxUnavailable: policy.Count(9), Topology: []policy.Topology{{Key: fleet.ZoneLabel, MaxUnavailable: policy.Unlimited, MaxDomains: 1}}}
	twoZones := oneZone
	twoZones.Topology = []policy.Topology{{Key: fleet.ZoneLabel, MaxUnavailable: policy.Unlimited, MaxDomains: 2}}
	noZone := policy.Rules{MaxUnavailable: policy.Count(9), Topology: []policy.Topology{{Key: fleet.ZoneLabel, MaxDomains: 1}}}
	const limit, domains, free = plan.ReasonUnavailableLimit, plan.ReasonDomainLimit, plan.Reason("")
	for _, tc := range []struct {
		name       string
		rules      policy.Rules
		gone       int
		zones      string
		claims     []budget.Claim
		zone       string
		away, slot bool
		want       plan.Reason
		// says is how the message begins and ends.
		says string
	}{
		{name: "none is out", rules: one, claims: []budget.Claim{serves, serves}, want: free},
		{name: "as many as may be", rules: one, claims: []budget.Claim{ours, serves}, want: limit, says: "the fleet: 1 of 1 ... a"},
		{name: "one fewer", rules: two, claims: []budget.Claim{ours, serves}, want: free},
		{name: "it is one of them by its slot", rules: one, claims: []budget.Claim{ours, serves}, slot: true, want: free},
		{name: "it is one of them, and another's is out", rules: one, claims: []budget.Claim{ours, others}, slot: true, want: limit},
		{name: "but not of so many", rules: one, claims: []budget.Claim{ours, ours}, slot: true, want: limit},
		{name: "others count", rules: one, claims: []budget.Claim{others}, want: limit, says: "the fleet: 1 of 1 ... a (not by the operator)"},
		{name: "others count for a time", rules: one, claims: []budget.Claim{othersBy}, want: limit,
			says: "... a (not by the operator; counts until it is back in service, or 2026-09-20 10:00:00 UTC)"},
		{name: "it is one of those", rules: one, claims: []budget.Claim{others}, away: true, want: free},
		{name: "one of two of those", rules: one, claims: []budget.Claim{others, others}, away: true, want: limit},
		{name: "but of ours there are never more than the limit", rules: one, claims: []budget.Claim{ours, others}, away: true, want: limit},
		{name: "also where others would leave room", rules: two, claims: []budget.Claim{ours, ours, others}, away: true, want: limit},
		{name: "with room for it", rules: two, claims: []budget.Claim{ours, others}, away: true, want: free},
		{name: "a slot of a node that is gone", rules: one, gone: 1, claims: []budget.Claim{serves}, want: limit, says: "the fleet: 1 of 1 ... : 1 hold a place and are gone"},
		{name: "and one that isn't", rules: two, gone: 1, claims: []budget.Claim{ours}, want: limit, says: "the fleet: 2 of 2 ... a; 1 hold a place and are gone"},
		{name: "very many", rules: one, claims: []budget.Claim{ours, ours, others, serves, ours, ours}, want: limit, says: "the fleet: 5 of 1 ... a, b, c (not by the operator) and 2 more"},

		{name: "one more", rules: one, claims: []budget.Claim{ours, ours, ours, ours}, want: limit, says: "... a, b, c and 1 more"},

		{name: "its zone is full", rules: perZone, zones: "xy", claims: []budget.Claim{ours, serves}, zone: "x", want: limit, says: "topology.kubernetes.io/zone=x: 1 of 1 ... a"},
		{name: "another zone is", rules: perZone, zones: "xy", claims: []budget.Claim{ours, serves}, zone: "y", want: free},
		{name: "that of nodes without a zone is", rules: perZone, zones: " y", claims: []budget.Claim{ours, serves}, want: limit, says: "nodes without topology.kubernetes.io/zone: 1 of 1 ... a"},
		{name: "it is the one in its zone", rules: perZone, zones: "x", claims: []budget.Claim{ours}, zone: "x", slot: true, want: free},
		{name: "a node gone may be of its zone", rules: perZone, gone: 1, zones: "x", claims: []budget.Claim{serves}, zone: "x", want: limit},
		{name: "a zone is closed", rules: noZone, zones: "x", claims: []budget.Claim{serves}, zone: "x", want: plan.ReasonPolicyPaused, says: "topology.kubernetes.io/zone=x ... "},
		{name: "a value that no node had", rules: perZone, zones: "x", claims: []budget.Claim{ours}, zone: "z", want: free},

		{name: "it would begin a second zone", rules: oneZone, zones: "xy", claims: []budget.Claim{ours, serves}, zone: "y", want: domains,
			says: "... : x"},
		{name: "two may have some", rules: twoZones, zones: "xy", claims: []budget.Claim{ours, serves}, zone: "y", want: free},
		{name: "its zone has begun", rules: oneZone, zones: "xx", claims: []budget.Claim{ours, serves}, zone: "x", want: free},
		{name: "others began another", rules: oneZone, zones: "xy", claims: []budget.Claim{others, serves}, zone: "y", want: domains},
		{name: "others began its own", rules: oneZone, zones: "xx", claims: []budget.Claim{others, serves}, zone: "x", want: free},
		{name: "others began its own and we another", rules: oneZone, zones: "xyx", claims: []budget.Claim{others, ours, serves}, zone: "x", want: domains, says: "... : x, y"},
		{name: "it is the one that others took out, beside ours", rules: oneZone, zones: "xy", claims: []budget.Claim{others, ours}, zone: "x", away: true, want: domains},
		{name: "it is the one that others took out", rules: oneZone, zones: "x", claims: []budget.Claim{others}, zone: "x", away: true, want: free},
		{name: "it began its zone itself, and others began another", rules: oneZone, zones: "xy", claims: []budget.Claim{ours, others}, zone: "x", slot: true, want: domains},
		{name: "it began its zone itself", rules: oneZone, zones: "xy", claims: []budget.Claim{ours, serves}, zone: "x", slot: true, want: free},
		{name: "it began its zone with another", rules: oneZone, zones: "xxy", claims: []budget.Claim{ours, ours, ours}, zone: "x", slot: true, want: free},
		{name: "it began its zone with another, and with another's", rules: oneZone, zones: "xxxy", claims: []budget.Claim{ours, ours, others, others}, zone: "x", slot: true, want: free},
		{name: "it began its zone with another's, and we another", rules: oneZone, zones: "xxy", claims: []budget.Claim{ours, others, ours}, zone: "x", slot: true, want: domains},
		{name: "its zone has begun, and so have we another", rules: oneZone, zones: "xy", claims: []budget.Claim{ours, ours}, zone: "x", want: free},
		{name: "its zone has begun, and so have others another", rules: oneZone, zones: "xy", claims: []budget.Claim{ours, others}, zone: "x", want: free},
		{name: "its zone has begun with others, and so have these another", rules: oneZone, zones: "xxy", claims: []budget.Claim{ours, others, others}, zone: "x", want: free},
		{name: "a node gone may be ours in another zone", rules: oneZone, gone: 1, zones: "xx", claims: []budget.Claim{others, serves}, zone: "x", want: domains},
		{name: "others began one, and a node gone may be of a third", rules: twoZones, gone: 1, zones: "xy", claims: []budget.Claim{serves, others}, zone: "x", want: domains},
		{name: "a node that can't be read counts", rules: one, claims: []budget.Claim{unread, serves}, want: limit, says: "the fleet: 1 of 1 ... a"},
		{name: "it is one zone's", rules: oneZone, zones: "xy", claims: []budget.Claim{unread, serves}, zone: "y", want: domains, says: "... : x"},
		{name: "and doesn't keep its own closed by itself", rules: oneZone, zones: "xx", claims: []budget.Claim{unread, serves}, zone: "x", want: free},
		{name: "but it begins none beside another", rules: oneZone, zones: "xyx", claims: []budget.Claim{unread, ours, serves}, zone: "x", want: domains, says: "... : x, y"},
		{name: "nor beside others'", rules: oneZone, zones: "xyx", claims: []budget.Claim{unread, others, serves}, zone: "x", want: domains},
		{name: "one that can be read does", rules: oneZone, zones: "xxyx", claims: []budget.Claim{unread, ours, ours, serves}, zone: "x", want: free},
		{name: "three zones", rules: oneZone, zones: "abcz", claims: []budget.Claim{ours, ours, ours, serves}, zone: "z", want: domains, says: "... : a, b, c"},
		{name: "a node gone may be of another zone", rules: oneZone, gone: 1, zones: "x", claims: []budget.Claim{serves}, zone: "x", want: domains},
		{name: "many zones", rules: oneZone, zones: "dcba z", claims: []budget.Claim{ours, ours, others, ours, ours, serves}, zone: "z", want: domains,
			says: "... : a, b, c, 2 more"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := scope(tc.rules, tc.gone, tc.zones, tc.claims...)
			got := s.Refuses(node("z", tc.zone), tc.away, tc.slot)
			assert.Equal(t, got.Reason, tc.want, "%s", got.Message)
			begins, ends, _ := strings.Cut(tc.says, "...")
			message := got.Message.String()
			assert.Assert(t, strings.HasPrefix(message, strings.TrimSpace(begins)) && strings.HasSuffix(message, strings.TrimSpace(ends)), message)
			if !tc.away && !tc.slot && tc.zones == "" {
				assert.Equal(t, s.Full(), got.Refuses())
			}
		})
	}
}

// What is taken is counted from then on: against the limit, in its zone, and by its name.
func TestTake(t *testing.T) {
	rules := policy.Rules{MaxUnavailable: policy.Count(3), Topology: []policy.Topology{{Key: fleet.ZoneLabel, MaxUnavailable: policy.Count(2), MaxDomains: 2}}}
	s := scope(rules, 0, "xxyyz", serves, others, serves, serves, serves)
	want := func(disrupted, others int, zones ...plan.Usage) {
		t.Helper()
		all := []plan.Usage{{Of: "the fleet", Rule: "3", Limit: 3, Used: disrupted + others, Disrupted: disrupted, ByOthers: others}}
		assert.DeepEqual(t, s.Usage(), append(all, zones...))
	}
	domains := func(disrupted, others int) plan.Usage {
		return plan.Usage{Of: "values of " + fleet.ZoneLabel, Rule: "2", Limit: 2, Used: disrupted + others, Disrupted: disrupted, ByOthers: others}
	}
	zone := func(name string, disrupted, others int) plan.Usage {
		return plan.Usage{Of: fleet.ZoneLabel + "=" + name, Rule: "2", Limit: 2, Used: disrupted + others, Disrupted: disrupted, ByOthers: others}
	}
	want(0, 1, domains(0, 1), zone("x", 0, 1), zone("y", 0, 0), zone("z", 0, 0))
	assert.Equal(t, s.Away(), 1)
	s.Take(node("b", "x"), true)
	want(1, 0, domains(1, 0), zone("x", 1, 0), zone("y", 0, 0), zone("z", 0, 0))
	s.Take(node("c", "y"), false)
	want(2, 0, domains(2, 0), zone("x", 1, 0), zone("y", 1, 0), zone("z", 0, 0))
	s.Take(node("d", "y"), false)
	want(3, 0, domains(2, 0), zone("x", 1, 0), zone("y", 2, 0), zone("z", 0, 0))
	message := s.Refuses(node("a", "x"), false, false).Message.String()
	assert.Assert(t, strings.HasSuffix(message, ": b, c, d"), message)
	assert.Equal(t, s.Refuses(node("c", "y"), false, true).Reason, plan.Reason(""))
	assert.Assert(t, s.Full())

	// Also one that no message names.
	s = scope(policy.Rules{MaxUnavailable: policy.Count(1)}, 0, "", others, others, others, others)
	s.Take(node("d", ""), true)
	assert.DeepEqual(t, s.Usage(), []plan.Usage{{Of: "the fleet", Rule: "1", Limit: 1, Used: 4, Disrupted: 1, ByOthers: 3}})
}

// Shares are of the nodes that are capacity; what a limit leaves out isn't told of.
func TestUsage(t *testing.T) {
	unlimited := policy.Topology{Key: "rack", MaxUnavailable: policy.Unlimited}
	g := policy.Group{Name: "canary", Rules: policy.Rules{MaxUnavailable: policy.Unlimited, Topology: []policy.Topology{unlimited, {Key: fleet.ZoneLabel, MaxUnavailable: policy.Percent(50), MaxDomains: 1}}}}
	s := budget.Group(&g)
	for i, c := range []budget.Claim{ours, others, serves, serves, serves} {
		s.Add(node(string(rune('a'+i)), "x"), i > 0, c)
	}
	s.Add(node("z", ""), false, serves)
	s.Settle(1)
	assert.DeepEqual(t, s.Usage(), []plan.Usage{
		{Of: "values of " + fleet.ZoneLabel + " in group canary", Rule: "1", Limit: 1, Used: 1, Disrupted: 1},
		{Of: "nodes without " + fleet.ZoneLabel + " in group canary", Rule: "50%", Limit: 1, Used: 1},
		{Of: fleet.ZoneLabel + "=x in group canary", Rule: "50%", Limit: 2, Used: 3, Disrupted: 1, ByOthers: 1},
	})
	assert.Assert(t, s.Members() == 6 && s.Nodes() == 4 && s.Away() == 1 && s.Limit() == policy.SlotCapacity)
	assert.Equal(t, s.Of(), "group canary")
	g.MaxUnavailable = policy.Percent(50)
	assert.Equal(t, s.Rules(), &g.Rules)
	s.Settle(0)
	assert.DeepEqual(t, s.Usage()[0], plan.Usage{Of: "group canary", Rule: "50%", Limit: 2, Used: 2, Disrupted: 1, ByOthers: 1})
	fleet := budget.Fleet(&policy.Rules{MaxUnavailable: policy.Unlimited})
	fleet.Settle(0)
	assert.DeepEqual(t, fleet.Usage(), []plan.Usage{{Of: "the fleet", Rule: "unlimited", Limit: policy.SlotCapacity}})
	assert.Assert(t, !fleet.Full())
	assert.Equal(t, budget.PausedBy("group canary").Reason, plan.ReasonPolicyPaused)
}
