package planner_test

import (
	"maps"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

const (
	balancers = marker.LabelExcluded
	scaleDown = marker.AnnotationScaleDown
	disrupt   = marker.AnnotationDisrupt
)

// stand puts marks for others on a node.
func stand(key, value string) change {
	return func(n *fleet.Node) {
		if key == balancers {
			n.Labels = maps.Clone(n.Labels)
			if n.Labels == nil {
				n.Labels = map[string]string{}
			}
			n.Labels[key] = value
			return
		}
		n.Autoscalers = maps.Clone(n.Autoscalers)
		if n.Autoscalers == nil {
			n.Autoscalers = map[string]string{}
		}
		n.Autoscalers[key] = value
	}
}

// recorded says what stood there before our mark, and that ours stands.
func recorded(key string, before *string) change {
	return func(n *fleet.Node) {
		if n.Marks.Disruption.Before == nil {
			n.Marks.Disruption.Before = map[string]*string{}
		}
		n.Marks.Disruption.Before[key] = before
		stand(key, marker.OthersValue)(n)
	}
}

// marked is a node that we put all marks on, where a value for Karpenter stood before.
func marked(n *fleet.Node) {
	recorded(balancers, nil)(n)
	recorded(scaleDown, nil)(n)
	recorded(disrupt, new("false"))(n)
}

func text(m map[string]*string) map[string]string {
	out := map[string]string{}
	for k, v := range m {
		out[k] = "nothing"
		if v != nil {
			out[k] = *v
		}
	}
	return out
}

// What stood where we put marks for others is in the record, and the record is in the patch that puts them (S5,
// brupop_798: an autoscaler removes the node that is being drained).
func TestMarksForOthersArePut(t *testing.T) {
	type values = map[string]string
	long := make([]byte, 129)
	for i := range long {
		long[i] = 'x'
	}
	for _, tc := range []struct {
		name    string
		changes []change
		set     func(*policy.Settings)
		writes  values
		before  values
	}{
		{"nothing stood there", nil, nil, values{balancers: "true", scaleDown: "true", disrupt: "true"}, values{balancers: "nothing", scaleDown: "nothing", disrupt: "nothing"}},
		{"another value is remembered", []change{stand(scaleDown, "false")}, nil,
			values{balancers: "true", scaleDown: "true", disrupt: "true"}, values{balancers: "nothing", scaleDown: "false", disrupt: "nothing"}},
		{"what says the same already is another client's", []change{stand(disrupt, "true"), stand(balancers, "")}, nil, values{scaleDown: "true"}, values{scaleDown: "nothing"}},
		{"what is too long to be remembered is left alone", []change{stand(disrupt, string(long))}, nil,
			values{balancers: "true", scaleDown: "true"}, values{balancers: "nothing", scaleDown: "nothing"}},
		{"what could not be written back is left alone", []change{stand(scaleDown, "\xff")}, nil,
			values{balancers: "true", disrupt: "true"}, values{balancers: "nothing", disrupt: "nothing"}},
		{"not told to tell load balancers", nil, func(s *policy.Settings) { s.Balancers.Exclude = false },
			values{scaleDown: "true", disrupt: "true"}, values{scaleDown: "nothing", disrupt: "nothing"}},
		{"not told to mark anything", nil, func(s *policy.Settings) { s.Balancers.Exclude, s.Protect = false, false }, values{}, values{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			set := policy.DefaultSettings()
			if tc.set != nil {
				tc.set(&set)
			}
			_, step := find(t, planner.Plan(fleetOf([]fleet.Node{node("a", append([]change{prepared}, tc.changes...)...), node("b")}), set), "a")
			assert.Equal(t, step.Act, intent.ActCordon)
			writes := text(step.Change.Annotations)
			maps.Copy(writes, text(step.Change.Labels))
			assert.DeepEqual(t, writes, tc.writes)
			assert.DeepEqual(t, text(step.Change.Marks.Disruption.Before), tc.before)
			_, problems := marker.Decode(annotations(step.Change))
			assert.Equal(t, len(problems), 0, "%v", problems)
		})
	}
}

func annotations(c *plan.Change) map[string]string {
	out := map[string]string{}
	for k, v := range marker.Encode(c.Marks) {
		out[string(k)] = v
	}
	return out
}

// Marks for others are undone from the record alone: load balancers have the node back when it takes pods again,
// autoscalers when it leaves our hands, and what others wrote meanwhile stays (S5). So whatever ends a disruption, no
// node stays marked (FLUO_118, kured_63, brupop_28, brupop_630).
func TestMarksForOthersAreUndone(t *testing.T) {
	type values = map[string]string
	all := values{balancers: "nothing", scaleDown: "nothing", disrupt: "false"}
	noSoak := func(n *fleet.Node) { n.Marks.Disruption.Soak = nil }
	gone := func(key string) change {
		return func(n *fleet.Node) {
			n.Labels, n.Autoscalers = maps.Clone(n.Labels), maps.Clone(n.Autoscalers)
			delete(n.Labels, key)
			delete(n.Autoscalers, key)
		}
	}
	unmarkedForBalancers := func(n *fleet.Node) { delete(n.Marks.Disruption.Before, balancers); gone(balancers)(n) }
	for _, tc := range []struct {
		name    string
		act     intent.Act
		changes []change
		writes  values
		left    []string
	}{
		{"abandoned", intent.ActAbandon, []change{draining, marked, paused}, all, nil},
		{"abandoned because a user took our cordon", intent.ActAbandon, []change{draining, marked, schedulable}, all, nil},
		{"uncordoned by the policy", intent.ActUncordon, []change{draining, marked, runs(v3)}, all, nil},
		{"abandoned on a user's cordon: SUC_341", intent.ActAbandon, []change{draining, wasCordoned, marked, paused}, all, nil},
		{"left", intent.ActLeave, []change{draining, marked, unlabelled}, all, nil},
		{"Lost, and left", intent.ActLeave, []change{lost, marked, unlabelled}, all, nil},
		{"back", intent.ActReturn, []change{back(v2), marked}, values{balancers: "nothing"}, []string{scaleDown, disrupt}},
		{"rolled back", intent.ActReturn, []change{back(v1), marked}, values{balancers: "nothing"}, []string{scaleDown, disrupt}},
		{"well again", intent.ActSoak, []change{verifying(1), marked, cordoned, noSoak}, values{balancers: "nothing"}, []string{scaleDown, disrupt}},
		{"finished", intent.ActFinish, []change{verifying(time.Hour), marked, unmarkedForBalancers}, values{scaleDown: "nothing", disrupt: "false"}, nil},
		{"a user's later values stay", intent.ActAbandon, []change{draining, marked, stand(balancers, "mine"), stand(disrupt, "mine"), paused}, values{scaleDown: "nothing"}, nil},
		{"what a user removed stays removed", intent.ActAbandon, []change{draining, marked, gone(balancers), gone(disrupt), paused}, values{scaleDown: "nothing"}, nil},
		{"what isn't in the record isn't ours", intent.ActAbandon, []change{draining, stand(balancers, "true"), stand(disrupt, "true"), paused}, values{}, nil},
		{"what an older build did not record", intent.ActFinish, []change{verifying(time.Hour)}, values{}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := node("a", tc.changes...)
			before := maps.Clone(n.Marks.Disruption.Before)
			c := stepOf(t, n, tc.act).Change
			writes := text(c.Annotations)
			maps.Copy(writes, text(c.Labels))
			assert.DeepEqual(t, writes, tc.writes)
			assert.DeepEqual(t, n.Marks.Disruption.Before, before)
			if c.Marks.Disruption == nil {
				return
			}
			for _, k := range tc.left {
				_, there := c.Marks.Disruption.Before[k]
				assert.Assert(t, there, k)
			}
			assert.Equal(t, len(c.Marks.Disruption.Before), len(tc.left))
		})
	}
}

// A node that becomes unwell in its soak is cordoned again, and load balancers are told again.
func TestLoadBalancersAreToldAgain(t *testing.T) {
	c := stepOf(t, node("a", verifying(1), notReady), intent.ActRecordon).Change
	assert.DeepEqual(t, text(c.Labels), map[string]string{balancers: "true"})
	assert.DeepEqual(t, text(c.Marks.Disruption.Before), map[string]string{balancers: "nothing"})
	assert.Equal(t, len(c.Annotations), 0)
}

// Nothing is evicted before load balancers had their time; a node that asked nothing of them doesn't wait.
func TestLoadBalancersAreGivenTime(t *testing.T) {
	set := policy.DefaultSettings()
	set.Balancers.Wait = 90 * time.Second
	out := planner.Plan(fleetOf([]fleet.Node{node("a", draining, marked), node("b")}, "a"), set)
	standing, _ := find(t, out, "a")
	assert.Equal(t, verdict(standing), "Draining wait LeavingBalancers")
	assert.Assert(t, standing.NotBefore.Equal(now.Add(30*time.Second)) && out.Wake.Equal(standing.NotBefore), "%s", standing.NotBefore)
	for _, changes := range [][]change{{draining}, {draining, marked, cordonedSince(90 * time.Second)}} {
		standing, _ = find(t, planner.Plan(fleetOf([]fleet.Node{node("a", changes...), node("b")}, "a"), set), "a")
		assert.Equal(t, verdict(standing), "Draining "+string(intent.ActDrain)+" Draining")
	}
	// A cordon that a user takes away meanwhile ends it as ever.
	standing, _ = find(t, planner.Plan(fleetOf([]fleet.Node{node("a", draining, marked, schedulable), node("b")}, "a"), set), "a")
	assert.Equal(t, verdict(standing), "Draining "+string(intent.ActAbandon)+" UncordonedByUser")
	set.Drain = set.Balancers.Wait
	assert.ErrorContains(t, set.Validate(), "loadBalancers.wait is 1m30s")
}
