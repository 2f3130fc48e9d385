package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// A rollback goes to what the nodes ran before, as their histories tell, and asks where they don't agree.
func TestRollbackOf(t *testing.T) {
	const v0, v1, v2, v3 = "1.0.0", "1.1.0", "1.2.0", "1.3.0"
	const updated, failed = marker.OutcomeUpdated, marker.OutcomeFailed
	// went is an attempt, written as from>to.
	went := func(way string, o marker.Outcome) marker.Attempt {
		from, to, _ := strings.Cut(way, ">")
		return marker.Attempt{Version: to, From: from, Outcome: o}
	}
	type history = []marker.Attempt
	once := history{went(v1+">"+v2, updated)}
	type node struct {
		runs string
		history
	}
	for _, tc := range []struct {
		name  string
		nodes []node
		want  string
	}{
		{"one", []node{{v2, once}}, v1},
		{"all alike", []node{{v2, once}, {v2, once}}, v1},
		{"one joined with it", []node{{v2, once}, {v2, nil}}, v1},
		{"in the middle of a rollout", []node{{v2, once}, {v1, history{went(v0+">"+v1, updated)}}}, v1},
		{"one skipped a version", []node{{v2, once}, {v2, history{went(v0+">"+v2, updated)}}},
			"the nodes don't agree on which version ran before (1.1.0 on n0, 1.0.0 on n1): give one with --to"},
		{"most have another", []node{{v2, history{went(v0+">"+v2, updated)}}, {v2, once}, {v2, once}},
			"the nodes don't agree on which version ran before (1.1.0 on n1 n2, 1.0.0 on n0): give one with --to"},
		{"back, and back again", []node{{v1, history{went(v1+">"+v2, updated), went(v2+">"+v1, updated)}}}, v2},
		{"in the middle of a rollback", []node{{v2, once}, {v1, history{went(v1+">"+v2, updated), went(v2+">"+v1, updated)}}},
			"the nodes don't agree on which version ran before (1.2.0 on n1, 1.1.0 on n0): give one with --to"},
		{"a failure since", []node{{v2, append(once[:1:1], went(v2+">"+v3, failed))}}, v1},
		{"an older controller's history", []node{{v2, history{went(">"+v1, updated), went(">"+v3, failed), went(">"+v2, updated)}}}, v1},
		{"an older controller's only entry", []node{{v2, history{went(">"+v2, updated)}}}, "of none of 1 node is known which version it ran before: give one with --to"},
		{"changed by hand", []node{{v3, once}}, "of none of 1 node is known which version it ran before: give one with --to"},
		{"nonsense", []node{{v2, history{went("latest>"+v2, updated)}}}, "of none of 1 node is known which version it ran before: give one with --to"},
		{"no nodes", nil, "of none of 0 nodes is known which version it ran before: give one with --to"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var nodes []*fleet.Node
			for i, n := range tc.nodes {
				nodes = append(nodes, &fleet.Node{Name: fmt.Sprintf("n%d", i), OSVersion: n.runs, Marks: marker.Marks{History: n.history}})
			}
			got, err := plan.RollbackOf(nodes)
			if err != nil {
				got = err.Error()
			}
			assert.Equal(t, got, tc.want)
		})
	}
	assert.Equal(t, plan.Some(strings.Fields("a b c d e f g")), "a b c d e and 2 more")
}
