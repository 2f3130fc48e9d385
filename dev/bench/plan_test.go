package bench

import (
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
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// snapshot is a fleet at rest: every node is managed, up to date, and has its agent.
func snapshot(b *testing.B, set policy.Settings) fleet.Snapshot {
	b.Helper()
	s := fleet.Snapshot{Now: time.Now(), Slots: map[string]string{}}
	for i := range fleetSize {
		n := bigNode(i)
		managed(n, set)
		v := kube.View(n)
		v.UID, v.ResourceVersion = fmt.Sprintf("uid-%d", i), "1"
		v.AgentPod, v.AgentReady = true, true
		s.Nodes = append(s.Nodes, v)
	}
	assert.Equal(b, len(s.Nodes[0].Problems), 0)
	return s
}

// BenchmarkPlan measures one decision over 5,000 nodes: at rest, and at a release that half of them know of.
func BenchmarkPlan(b *testing.B) {
	set := policy.DefaultSettings()
	b.Run("AtRest", func(b *testing.B) {
		s := snapshot(b, set)
		b.ReportAllocs()
		for b.Loop() {
			out := policy.Plan(s, set)
			assert.Equal(b, len(out.Nodes), fleetSize)
			assert.Equal(b, len(out.Steps), 0)
			assert.Equal(b, out.Nodes[0].Reason, policy.ReasonUpToDate)
		}
	})
	b.Run("AtRelease", func(b *testing.B) {
		s := snapshot(b, set)
		for i := range s.Nodes[:fleetSize/2] {
			s.Nodes[i].Marks.Report.Available = "1.51.0"
		}
		b.ReportAllocs()
		for b.Loop() {
			out := policy.Plan(s, set)
			assert.Equal(b, len(out.Nodes), fleetSize)
			assert.Equal(b, len(out.Steps), set.MaxStaging)
		}
	})
}

// BenchmarkPass measures a controller's whole pass over 5,000 nodes at rest, from the cached views to the
// metrics; it writes nothing.
func BenchmarkPass(b *testing.B) {
	set := policy.DefaultSettings()
	log := logrus.New()
	log.SetOutput(io.Discard)
	term := controller.NewTerm(controller.TermConfig{
		Cluster: &still{nodes: snapshot(b, set).Nodes}, Drainer: still{}, Events: still{}, Settings: set, Now: time.Now,
		Metrics: controller.NewMetrics(nil), Log: log,
	})
	b.ReportAllocs()
	for b.Loop() {
		_, err := term.Pass(b.Context())
		assert.NilError(b, err)
	}
}

// still is a cluster in which nothing changes and nothing may be changed.
type still struct{ nodes []fleet.Node }

func (s still) Nodes(context.Context) ([]fleet.Node, error)                  { return slices.Clone(s.nodes), nil }
func (still) Slots(context.Context) (map[string]string, error)               { return map[string]string{}, nil }
func (still) ForgetSlots()                                                   {}
func (still) Live(context.Context, string) (fleet.Node, bool, error)         { panic("looked live") }
func (still) Exists(context.Context, string, string) (bool, error)           { panic("looked live") }
func (still) Write(context.Context, string, *policy.Change) error            { panic("wrote to a node") }
func (still) ChangeSlots(context.Context, map[string]string, []string) error { panic("wrote slots") }
func (still) Pass(context.Context, string) (drain.Result, error)             { panic("drained") }
func (still) Pods(context.Context, string) ([]corev1.Pod, error)             { panic("looked for pods") }
func (still) Event(string, string, bool, string, string)                     { panic("told of something") }
