package bench

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/controller"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/drain"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/file"
)

// planSize is how many nodes a plan is measured over.
const planSize = 15000

// snapshot is a fleet at rest: every node is managed, up to date, and has its agent.
func snapshot(b *testing.B, size int, set policy.Settings) fleet.Snapshot {
	b.Helper()
	s := fleet.Snapshot{Now: time.Now(), Slots: map[string]string{}, FirstSeen: map[string]time.Time{osNow: {}, osNext: {}}}
	for i := range size {
		n := bigNode(i)
		managed(n, set)
		v := kube.View(n)
		v.UID, v.ResourceVersion = fmt.Sprintf("uid-%d", i), "1"
		v.AgentPod, v.AgentReady = true, true
		s.Nodes = append(s.Nodes, v)
	}
	assert.Equal(b, len(s.Nodes[0].Problems), 0)
	// As pkg/kube has them.
	slices.SortFunc(s.Nodes, func(a, b fleet.Node) int { return cmp.Compare(a.Name, b.Name) })
	return s
}

// noted is a snapshot whose nodes say already what they wait for.
func noted(s fleet.Snapshot, set policy.Settings) fleet.Snapshot {
	s.Nodes = slices.Clone(s.Nodes)
	notes := map[string]*plan.Change{}
	for _, step := range planner.Plan(s, set).Steps {
		if step.Act == intent.ActNote {
			notes[step.Node] = step.Change
		}
	}
	for i := range s.Nodes {
		if c := notes[s.Nodes[i].Name]; c != nil {
			s.Nodes[i].Marks.Waiting = c.Marks.Waiting
		}
	}
	return s
}

// osBefore is what every third node runs that knows of an update.
const osBefore, osNext = "1.49.0", "1.51.0"

// release has a part of the fleet know of an update; stage has it staged, and waiting for a place.
func release(s fleet.Snapshot, every int, staged bool) fleet.Snapshot {
	s.Nodes = slices.Clone(s.Nodes)
	for i := range s.Nodes {
		if i%every != 0 {
			continue
		}
		m := &s.Nodes[i].Marks
		m.Report.Available = osNext
		if i%3 == 0 {
			m.Report.Current = osBefore
		}
		if staged {
			m.Intent.Action, m.Intent.Target = marker.ActionPrepareUpdate, osNext
		}
	}
	return s
}

// grouped is a policy that uses what policies can: shares, zones, windows, and groups one after the other.
func grouped(b *testing.B) policy.Settings {
	b.Helper()
	set, err := file.Decode([]byte(`version: 1
maxUnavailable: 2%
topology: [{key: topology.kubernetes.io/zone, maxUnavailable: 100, maxDomains: 2}]
windows: [{schedule: 0 0 * * *, duration: 24h, timeZone: Europe/Berlin}, {schedule: 0 12 * * 6, duration: 30h, timeZone: America/New_York}]
versions: {deny: <1.20.0, minAge: 1m}
groups:
- {name: canary, nodeSelector: {matchLabels: {example.com/stage: canary}}}
- {name: zone a, nodeSelector: {matchLabels: {topology.kubernetes.io/zone: eu-central-1a}}, maxUnavailable: 10%}
- {name: others, nodeSelector: {matchExpressions: [{key: topology.kubernetes.io/zone, operator: Exists}]}, maxUnavailable: 10%, after: [zone a], afterSoak: 1h}
`), policy.DefaultSettings(), time.LoadLocation)
	assert.NilError(b, err)
	return set
}

// byHost is a policy with as many budgets as nodes.
func byHost() policy.Settings {
	set := policy.DefaultSettings()
	set.MaxUnavailable = policy.Count(3)
	set.Topology = []policy.Topology{{Key: corev1.LabelHostname, MaxUnavailable: policy.Count(1), MaxDomains: 2}}
	return set
}

// BenchmarkPlan measures one decision over 15,000 nodes: at rest, when half of them know of a release, and when
// all have it staged and wait.
func BenchmarkPlan(b *testing.B) {
	plain := policy.DefaultSettings()
	rest := snapshot(b, planSize, plain)
	for name, set := range map[string]policy.Settings{"Default": plain, "Grouped": grouped(b), "ByHost": byHost()} {
		for what, s := range map[string]fleet.Snapshot{"AtRest": rest, "AtRelease": release(rest, 2, false), "AllStaged": release(rest, 1, true)} {
			b.Run(name+"/"+what, func(b *testing.B) {
				s := noted(s, set)
				b.ReportAllocs()
				steps := 0
				for b.Loop() {
					out := planner.Plan(s, set)
					assert.Equal(b, len(out.Nodes), planSize)
					steps = len(out.Steps)
				}
				b.ReportMetric(float64(steps), "steps")
			})
		}
	}
}

// BenchmarkPass measures a controller's whole pass over 5,000 nodes at rest, from the cached views to the
// metrics; it writes nothing.
func BenchmarkPass(b *testing.B) {
	set := policy.DefaultSettings()
	log := logrus.New()
	log.SetOutput(io.Discard)
	term := controller.NewTerm(controller.TermConfig{
		Cluster: &still{nodes: snapshot(b, fleetSize, set).Nodes}, Drainer: still{}, Events: still{}, Policies: still{}, Now: time.Now,
		Metrics: controller.NewMetrics(nil, true), Log: log,
	})
	b.ReportAllocs()
	for b.Loop() {
		_, err := term.Pass(b.Context())
		assert.NilError(b, err)
	}
}

// still is a cluster in which nothing changes and nothing may be changed.
type still struct{ nodes []fleet.Node }

func (s still) Nodes(context.Context) ([]fleet.Node, error) { return slices.Clone(s.nodes), nil }
func (still) State(context.Context) (kube.State, error) {
	return kube.State{Slots: map[string]string{}, FirstSeen: map[string]time.Time{osNow: {}}}, nil
}
func (still) ForgetSlots()                                           {}
func (still) Live(context.Context, string) (fleet.Node, bool, error) { panic("looked live") }
func (still) Check(context.Context, string, plan.LiveCheck) (fleet.Checked, error) {
	panic("looked live")
}
func (still) Alone(context.Context, string) (bool, error)                    { panic("looked live") }
func (still) Exists(context.Context, string, string) (bool, error)           { panic("looked live") }
func (still) Write(context.Context, string, *plan.Change) error              { panic("wrote to a node") }
func (still) ChangeSlots(context.Context, map[string]string, []string) error { panic("wrote slots") }
func (still) Pass(context.Context, string, policy.Eviction, bool, int) (drain.Result, error) {
	panic("drained")
}
func (still) Pods(context.Context, string, policy.Eviction) ([]corev1.Pod, error) {
	panic("looked for pods")
}
func (still) Forecast(context.Context, string, policy.Eviction) (fleet.Obstacle, string, error) {
	panic("looked ahead")
}
func (still) RecordVersions(_ context.Context, _, _ []string, _ time.Time) error {
	panic("recorded versions")
}
func (still) RecordNotices(context.Context, string, string) error { return nil }
func (still) RecordRollouts(context.Context, string) error        { panic("recorded rollouts") }
func (still) RecordPolicy(context.Context, time.Time) error       { panic("recorded that there is a policy") }
func (still) Current() kube.PolicyState                           { return kube.PolicyState{Settings: policy.DefaultSettings()} }
func (still) Notice(bool, string, string)                         { panic("unexpected Event") }
func (still) Event(string, string, bool, string, string)          { panic("unexpected Event") }
func (still) Once(string, string, string, bool, string, string)   { panic("unexpected Event") }
