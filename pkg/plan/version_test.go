package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

var monday = time.Date(2026, 11, 23, 14, 0, 0, 0, time.UTC)

type hostChange func(*fleet.Node)

// runs is a node that runs a version, whose agent reports none of what a host lists.
func runs(version string, changes ...hostChange) *fleet.Node {
	n := &fleet.Node{Interface: fleet.InterfaceUpdateAPI, OSVersion: version}
	n.Marks.Report.Current = version
	for _, c := range changes {
		c(n)
	}
	return n
}

func chooses(v string) hostChange { return func(n *fleet.Node) { n.Marks.Report.Available = v } }
func lists(v string) hostChange {
	return func(n *fleet.Node) { n.Marks.Report.Offered = marker.Offers(v) }
}
func seed(s int) hostChange { return func(n *fleet.Node) { n.Marks.Report.WaveSeed = fmt.Sprint(s) } }
func lock(v string) hostChange {
	return func(n *fleet.Node) { n.Marks.Report.VersionLock = v }
}
func updatedTo(v string) hostChange {
	return func(n *fleet.Node) {
		n.OSVersion, n.Marks.History = v, []marker.Attempt{{Version: v, Outcome: marker.OutcomeUpdated}}
	}
}

func runsNow(v string) hostChange { return func(n *fleet.Node) { n.OSVersion = v } }

// table says in a line each what the versions are: how many run, are offered and choose it.
func table(versions []plan.Version) string {
	var lines []string
	for _, v := range versions {
		lines = append(lines, fmt.Sprintf("%s %d %d %d", v.Version, v.Nodes, v.Offered, v.Chosen))
	}
	return strings.Join(lines, ", ")
}

func TestVersionsOf(t *testing.T) {
	for _, tc := range []struct {
		name  string
		nodes []*fleet.Node
		want  string
		// from is what is left of it without what is lower than all that run; empty: all.
		from string
	}{
		{name: "no node", want: ""},
		{name: "a node that nothing is known of", nodes: []*fleet.Node{{}}, want: ""},
		{name: "older agents, which report no list", nodes: []*fleet.Node{runs("1.2.0"), runs("1.2.0", chooses("1.3.0"))},
			want: "1.3.0 0 1 1, 1.2.0 2 0 0"},
		{name: "lists", nodes: []*fleet.Node{runs("1.2.0", lists("1.3.0,1.2.0,1.1.0"), chooses("1.3.0")), runs("1.2.0", lists("1.2.0,1.1.0"))},
			want: "1.3.0 0 1 1, 1.2.0 2 2 0, 1.1.0 0 2 0", from: "1.3.0 0 1 1, 1.2.0 2 2 0"},
		{name: "a lower version that a host chose", nodes: []*fleet.Node{runs("1.3.0", lists("1.2.0,1.1.0"), chooses("1.2.0"))},
			want: "1.3.0 1 0 0, 1.2.0 0 1 1, 1.1.0 0 1 0", from: "1.3.0 1 0 0, 1.2.0 0 1 1"},
		{name: "sorted by number", nodes: []*fleet.Node{runs("1.9.0"), runs("1.10.0"), runs("1.10.0-rc1")}, want: "1.10.0 1 0 0, 1.10.0-rc1 1 0 0, 1.9.0 1 0 0"},
		{name: "a node on its way, whose kubelet is ahead of its agent", nodes: []*fleet.Node{runs("1.3.0", func(n *fleet.Node) {
			n.Marks.Intent.Target, n.Marks.Report.Current, n.Marks.Report.Available = "1.3.0", "1.2.0", "1.3.0"
		}, lists("1.3.0,1.2.0"))}, want: "1.3.0 1 1 0, 1.2.0 0 1 0", from: "1.3.0 1 1 0"},
		{name: "a version twice in a made-up list", nodes: []*fleet.Node{runs("1.2.0", lists("1.3.0,1.2.0,1.3.0"))}, want: "1.3.0 0 1 0, 1.2.0 1 1 0"},
		{name: "a list that was cut", nodes: []*fleet.Node{runs("1.2.0", lists("1.3.0,more"), chooses("1.3.0"))}, want: "1.3.0 0 1 1, 1.2.0 1 0 0"},
		{name: "annotations that can't be read", nodes: []*fleet.Node{runs("1.2.0", chooses("1.3.0"), lists("1.3.0"), func(n *fleet.Node) {
			n.Problems = []marker.Problem{{}}
		})}, want: "1.2.0 1 0 0"},
		{name: "no Bottlerocket by its kubelet", nodes: []*fleet.Node{runs("", chooses("1.3.0"))}, want: "1.3.0 0 1 1"},
		{name: "nodes of plans", nodes: []*fleet.Node{runs("1.2.0", func(n *fleet.Node) { n.Interface = fleet.InterfacePlan }),
			runs("k3s/v1.36.3#00", func(n *fleet.Node) { n.Marks.Plan = &marker.Plan{} })}, want: ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, leftOut := plan.VersionsOf(tc.nodes, nil, monday)
			assert.Equal(t, table(got), tc.want)
			assert.Assert(t, got != nil && leftOut == 0)
			if tc.from == "" {
				tc.from = tc.want
			}
			assert.Equal(t, table(plan.FromLowestRun(got)), tc.from)
		})
	}
}

// Hosts that make versions up push nothing out that runs, or that more nodes name.
func TestVersionsOfIsBounded(t *testing.T) {
	nodes := []*fleet.Node{runs("1.2.0"), runs("1.2.0", lists("1.3.0,1.2.0")), runs("1.1.0", lists("1.3.0,1.1.0"))}
	// Two go to what they don't list.
	nodes = append(nodes, runs("1.2.0", lists("1.2.0"), chooses("1.4.0")), runs("1.2.0", lists("1.2.0"), chooses("1.4.0")))
	for i := range 20 {
		var made []string
		for j := range 20 {
			made = append(made, fmt.Sprintf("9.%d.%d", i, j))
		}
		nodes = append(nodes, runs("1.2.0", lists(strings.Join(made, ","))))
	}
	got, leftOut := plan.VersionsOf(nodes, nil, monday)
	assert.Equal(t, len(got), 50)
	assert.Equal(t, leftOut, 404-50)
	assert.Equal(t, table(got[46:]), "1.4.0 0 0 2, 1.3.0 0 2 0, 1.2.0 24 3 0, 1.1.0 1 1 0")
}

// Each version is known since it was first seen.
func TestVersionsOfSince(t *testing.T) {
	got, _ := plan.VersionsOf([]*fleet.Node{runs("1.2.0", chooses("1.3.0"))}, map[string]time.Time{"1.3.0": monday}, monday)
	assert.Equal(t, got[0].Since, monday)
	assert.Assert(t, got[1].Since.IsZero())
}

// Programs read the same as numbers.
func TestVersionsOfUnlisted(t *testing.T) {
	got, _ := plan.VersionsOf([]*fleet.Node{runs("1.2.0", lists("1.3.0"), seed(10), lock("1.2.0")), runs("1.2.0", lists("1.2.0"), seed(1500)), runs("1.2.0", lists("1.2.0"), seed(500))},
		map[string]time.Time{"1.3.0": monday}, monday)
	assert.Equal(t, got[0].Unlisted, 2)
	assert.Equal(t, got[0].WavesOpenBy, monday.Add(144*time.Hour-150*time.Minute))
	assert.Equal(t, got[0].Locked, 1)
	assert.Equal(t, len(got[0].Notes), 2)
}

// What is said of 1.3.0, which was first seen so many hours ago, where some hosts list it and others don't.
func TestVersionsOfNotes(t *testing.T) {
	with, without := lists("1.3.0,1.2.0"), lists("1.2.0")
	const ifDefault = " if the release has the default waves"
	const late = " list it, although the default waves are open by now: another repository, a variant that has no such release, or a release with other waves"
	for _, tc := range []struct {
		name  string
		hours float64
		nodes []*fleet.Node
		want  string
	}{
		{"all list it", 1, []*fleet.Node{runs("1.2.0", with), runs("1.2.0", with)}, ""},
		{"none lists it", 1, []*fleet.Node{runs("1.3.0"), runs("1.2.0", without, seed(9))}, ""},
		// Seed 10 saw it 2.5 hours after its start, 1500 sees it after 144.
		{"from the first one that saw it", 0, []*fleet.Node{runs("1.2.0", with, seed(10)), runs("1.2.0", without, seed(500)), runs("1.2.0", without, seed(1500))},
			"1 of 3 nodes is offered 1.3.0; the others' waves open by Sun 2026-11-29 11:30 UTC" + ifDefault},
		{"the lowest seed that lists it counts", 24, []*fleet.Node{runs("1.2.0", with, seed(102)), runs("1.2.0", with, seed(10)), runs("1.2.0", with, seed(307)), runs("1.2.0", without, seed(1228))},
			"3 of 4 nodes are offered 1.3.0; the other's wave opens by Fri 2026-11-27 11:30 UTC" + ifDefault},
		{"never seen, so the host that lists it sees it at least now", -1, []*fleet.Node{runs("1.2.0", with, seed(20)), runs("1.2.0", without, seed(1228))},
			"1 of 2 nodes is offered 1.3.0; the other's wave opens by Sat 2026-11-28 10:00 UTC" + ifDefault},
		{"first seen in the future by another clock", -5, []*fleet.Node{runs("1.2.0", with, seed(20)), runs("1.2.0", without, seed(1228))},
			"1 of 2 nodes is offered 1.3.0; the other's wave opens by Sat 2026-11-28 10:00 UTC" + ifDefault},
		{"a node may have been launched with it before any wave was open", 2, []*fleet.Node{runs("1.3.0"), runs("1.2.0", with, seed(500)), runs("1.2.0", without, seed(1500))},
			// Not two hours later than 95 before first seen, which would have been three days ago.
			"1 of 2 nodes is offered 1.3.0; the other's wave opens by Wed 2026-11-25 15:08 UTC" + ifDefault},
		{"a node that was updated to something else, too", 2, []*fleet.Node{runs("", updatedTo("1.2.0"), runsNow("1.3.0")), runs("1.2.0", with, seed(10)), runs("1.2.0", without, seed(1500))},
			"1 of 2 nodes is offered 1.3.0; the other's wave opens by Sun 2026-11-29 11:30 UTC" + ifDefault},
		{"no Bottlerocket by its kubelet", 0, []*fleet.Node{runs("", with, seed(10)), runs("", without, seed(10)), runs("1.2.0", without, seed(1500))},
			"1 of 2 nodes is offered 1.3.0; the other's wave opens by Sun 2026-11-29 11:30 UTC" + ifDefault},
		{"a node that was updated to it wasn't", 2, []*fleet.Node{runs("1.2.0", updatedTo("1.3.0"), with, seed(10)), runs("1.2.0", without, seed(1500))},
			"1 of 2 nodes is offered 1.3.0; the other's wave opens by Sun 2026-11-29 09:30 UTC" + ifDefault},
		{"the place of one that lists it isn't known", 2, []*fleet.Node{runs("1.2.0", with), runs("1.2.0", with, seed(1)), runs("1.2.0", without, seed(1500))},
			"2 of 3 nodes are offered 1.3.0; the other's wave opens by Sun 2026-11-29 12:00 UTC" + ifDefault},
		{"no place is known", 2, []*fleet.Node{runs("1.2.0", with), runs("1.2.0", without)},
			"1 of 2 nodes is offered 1.3.0; the other's host doesn't list it, and no seed is known"},
		{"the waves are open", 200, []*fleet.Node{runs("1.2.0", with, seed(10)), runs("1.2.0", without, seed(1500))},
			"1 of 2 nodes is offered 1.3.0; the other's host doesn't" + late},
		{"the waves have just opened, and the host has not looked since", 142, []*fleet.Node{runs("1.2.0", with, seed(10)), runs("1.2.0", without, seed(1500))},
			"1 of 2 nodes is offered 1.3.0; the other's wave opens by Mon 2026-11-23 13:30 UTC" + ifDefault},
		{"a lower place that doesn't list it", 1, []*fleet.Node{runs("1.2.0", with, seed(500)), runs("1.2.0", without, seed(10))},
			"1 of 2 nodes is offered 1.3.0; the other's host doesn't" + late},
		{"some of each", 30, []*fleet.Node{runs("1.2.0", with, seed(1)), runs("1.2.0", without, seed(30)), runs("1.2.0", without, seed(2047)), runs("1.2.0", without), runs("1.2.0")},
			"1 of 5 nodes is offered 1.3.0; 1 other's wave opens by Sat 2026-11-28 06:51 UTC" + ifDefault + "; 1 other's host doesn't" + late +
				"; 1 other's host doesn't list it, and no seed is known; of 1 it isn't known what their hosts list"},
		{"agents that report no list", 30, []*fleet.Node{runs("1.2.0", chooses("1.3.0")), runs("1.2.0", seed(1))}, ""},
		{"a cut list that may have it", 30, []*fleet.Node{runs("1.2.0", with, seed(1)), runs("1.2.0", lists("1.4.0,more"), seed(9))}, ""},
		{"a cut list that would have it", 30, []*fleet.Node{runs("1.2.0", with, seed(1)), runs("1.1.0", lists("1.2.0,more"), seed(2047))},
			"1 of 2 nodes is offered 1.3.0; the other's wave opens by Sat 2026-11-28 06:51 UTC" + ifDefault},
		{"those that run it, or a higher one, wait for nothing", 30, []*fleet.Node{runs("1.2.0", with, seed(1)), runs("1.3.0", without, seed(9)), runs("1.4.0", without, seed(9))}, ""},
		{"annotations that can't be read", 30, []*fleet.Node{runs("1.2.0", with, seed(1)), runs("1.2.0", without, seed(2047), func(n *fleet.Node) {
			n.Problems = []marker.Problem{{}}
		})}, ""},
		{"a lock", 30, []*fleet.Node{runs("1.2.0", with, lock("1.2.0")), runs("1.2.0", with, lock("v1.1.0")), runs("1.2.0", with, lock("latest")), runs("1.2.0", with, lock("v1.3.0")),
			runs("1.3.0", with, lock("1.2.0"))}, "2 hosts list 1.3.0 and do not go to it: their version-locks name others"},
		{"locks, and fewer of them for a higher version", 30, []*fleet.Node{runs("1.2.0", lists("1.4.0,1.3.0"), lock("1.2.0")), runs("1.2.0", with, lock("1.2.0"))},
			"2 hosts list 1.3.0 and do not go to it: their version-locks name others"},
		{"a lock, and the same for a higher version", 30, []*fleet.Node{runs("1.2.0", lists("1.4.0,1.3.0"), lock("1.2.0"))}, ""},
		{"one lock", 30, []*fleet.Node{runs("1.2.0", with, lock("1.2.0"))}, "1 host lists 1.3.0 and does not go to it: its version-lock names another version"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			seen := map[string]time.Time{}
			if tc.hours != -1 {
				seen["1.3.0"] = monday.Add(-time.Duration(tc.hours * float64(time.Hour)))
			}
			got, _ := plan.VersionsOf(tc.nodes, seen, monday)
			var notes []string
			for _, v := range got {
				if v.Version != "1.3.0" {
					assert.Assert(t, v.Version == "1.4.0" || len(v.Notes) == 0, "%s: %v", v.Version, v.Notes)
					continue
				}
				for _, n := range v.Notes {
					notes = append(notes, n.String())
				}
			}
			assert.Equal(t, strings.Join(notes, "\n"), tc.want)
		})
	}
}
