package simcluster_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/nodesim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/simcluster"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// The fleet of the test: 12 nodes, the first two of them canaries, four in each of three zones.
const (
	stagesFleet = 12
	canaries    = 2
	stageLabel  = "example.com/stage"
)

// stagesPolicy is a canary group, then zone after zone.
const stagesPolicy = `version: 1
maxUnavailable: 3
maxFailed: 1
soak: 1s
retry: {base: 1s, max: 2s}
topology:
- key: topology.kubernetes.io/zone
  maxUnavailable: 2
groups:
- name: canary
  nodeSelector: {matchLabels: {example.com/stage: canary}}
  maxUnavailable: 1
- name: zone-a
  nodeSelector: {matchLabels: {topology.kubernetes.io/zone: zone-a}}
  after: [canary]
  afterSoak: 1s
- name: zone-b
  nodeSelector: {matchLabels: {topology.kubernetes.io/zone: zone-b}}
  after: [zone-a]
- name: zone-c
  nodeSelector: {matchLabels: {topology.kubernetes.io/zone: zone-c}}
  after: [zone-b]
`

// What the policy lets be out of service at once: everywhere, in a zone, and in the group of the canaries.
const stagesEverywhere, stagesInZone, stagesInCanary = 3, 2, 1

// heard is how long after a policy was written a start may still be one by the policy before.
const heard = 5 * time.Second

// stages is a fleet in groups, and the times in which the policy lets nothing start.
type stages struct {
	*world
	t     *testing.T
	quiet []outage
}

// TestPolicyOnAFleetInZones leads a fleet through a version that fails on the canaries, a pause, a file that can't
// be read and a freeze, and judges all of it by the API server's audit log.
func TestPolicyOnAFleetInZones(t *testing.T) {
	s := newStages(t)
	bad, good := version(1), version(2)
	s.setPolicy(t, stagesPolicy)

	for _, m := range s.Fleet.Machines()[:canaries] {
		assert.NilError(t, m.Host().AddFault(hostsim.Fault{ID: hostsim.F17, Version: bad}))
	}
	assert.NilError(t, s.Release(bad))
	s.await("people are told that the version is stopped", func() bool {
		return s.noticed(plan.ReasonVersionStopped, bad)
	})
	s.await("nothing is under way any more", func() bool { return s.out() == 0 })

	assert.NilError(t, s.Release(good))
	s.await("the first stage has begun", func() bool { return s.outIn("zone-a") > 0 })
	s.setPolicy(t, stagesPolicy+"pause: {reason: the test wants it}\n")
	pause := outage{from: time.Now().Add(heard)}
	s.await("what was under way has ended, and some time has passed", func() bool { return s.out() == 0 && time.Since(pause.from) > heard })
	pause.to = time.Now()
	s.quiet = append(s.quiet, pause)

	s.setPolicy(t, stagesPolicy)
	s.await("the second stage has begun", func() bool { return s.outIn("zone-b") > 0 })
	s.setPolicy(t, stagesPolicy+"maxUnavailble: 12\n")
	s.await("people are told what is wrong with the file", func() bool {
		return s.noticed(plan.ReasonPolicyUnreadable, "there is no field maxUnavailble")
	})
	s.await("the last stage has begun by the last good policy", func() bool { return s.outIn("zone-c") > 0 })

	freeze := outage{from: time.Now().Add(heard), to: time.Now().Add(3 * heard)}
	s.setPolicy(t, stagesPolicy+fmt.Sprintf("freezes: [{from: %s, to: %s, reason: holidays}]\nwhenWindowCloses: finish\n",
		time.Now().Add(-time.Minute).Format(time.RFC3339), freeze.to.Format(time.RFC3339)))
	freeze.to = freeze.to.Truncate(time.Second)
	s.quiet = append(s.quiet, freeze)
	s.await("all nodes are at rest on "+good, func() bool { return s.restOn(good) })
	assert.Assert(t, time.Now().After(freeze.to), "the freeze was over before it held anything up")

	s.judge(bad, good)
}

func newStages(t *testing.T) *stages {
	t.Helper()
	controlplane.SkipIfShort(t)
	ctx := t.Context()
	c, err := simcluster.Start(ctx, simcluster.Config{
		Nodes: stagesFleet, Version: version(0), Progress: os.Stderr, AuditPolicy: stagesAudit,
		Args: map[string][]string{
			controller: {"-lease-duration=3s", "-lease-renew-deadline=2s", "-lease-retry-period=" + renewal.String()},
			agent:      {"-refresh-interval=1s"},
		},
		Reboot:  nodesim.Reboot{Mode: nodesim.RebootStale, Down: 300 * time.Millisecond},
		PodStop: 100 * time.Millisecond,
	})
	assert.NilError(t, err)
	t.Cleanup(c.Stop)
	s := &stages{world: &world{Cluster: c}, t: t}
	t.Cleanup(func() {
		if t.Failed() {
			s.dump(t)
		}
	})
	for i, m := range c.Fleet.Machines() {
		labels := map[string]string{corev1.LabelTopologyZone: "zone-" + string(rune('a'+i/4))}
		if i < canaries {
			labels[stageLabel] = "canary"
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels}})
		assert.NilError(t, err)
		_, err = c.Client.CoreV1().Nodes().Patch(ctx, m.Name(), types.MergePatchType, patch, metav1.PatchOptions{})
		assert.NilError(t, err)
	}
	assert.NilError(t, s.Install(ctx))
	// Its node must not go down while the file can't be read: the controller that comes up then knows no good one.
	for _, args := range [][]string{
		{"patch", "deployment/update-operator-controller", "-p", `{"spec":{"template":{"spec":{"nodeSelector":{"` + corev1.LabelTopologyZone + `":"zone-a"}}}}}`},
		{"rollout", "status", "deployment/update-operator-controller", "--timeout=" + bound.String()},
	} {
		_, err := c.Kubectl(ctx, append([]string{"-n", simcluster.Namespace}, args...)...)
		assert.NilError(t, err)
	}
	assert.NilError(t, s.Label(ctx))
	assert.NilError(t, s.AwaitOperator(ctx, bound, true))
	s.await("all nodes are managed", func() bool { return s.restOn(version(0)) })
	return s
}

func (s *stages) await(what string, ok func() bool) {
	s.t.Helper()
	assert.NilError(s.t, simcluster.Await(s.t.Context(), what, bound, func() (bool, error) { return ok(), nil }))
}

func (s *stages) nodes() []corev1.Node {
	s.t.Helper()
	list, err := s.Client.CoreV1().Nodes().List(context.Background(), metav1.ListOptions{})
	assert.NilError(s.t, err)
	return list.Items
}

// outIn counts the nodes of a group that are out of service, and out those of the fleet.
func (s *stages) outIn(group string) int {
	n := 0
	for _, node := range s.nodes() {
		if node.Annotations[string(marker.KeyDisruption)] != "" && (group == "" || groupOf(node.Labels) == group) {
			n++
		}
	}
	return n
}

func (s *stages) out() int { return s.outIn("") }

func (s *stages) restOn(version string) bool {
	all := s.nodes()
	return len(all) == stagesFleet && !slices.ContainsFunc(all, func(n corev1.Node) bool { return !atRest(&n, version) })
}

// noticed tells if an Event of the operator has these words.
func (s *stages) noticed(reason plan.Reason, words string) bool {
	s.t.Helper()
	list, err := s.Client.CoreV1().Events(simcluster.Namespace).List(s.t.Context(), metav1.ListOptions{FieldSelector: "reason=" + string(reason)})
	assert.NilError(s.t, err)
	return slices.ContainsFunc(list.Items, func(e corev1.Event) bool {
		return e.Type == corev1.EventTypeWarning && strings.Contains(e.Message, words)
	})
}

func groupOf(labels map[string]string) string {
	return cmp.Or(labels[stageLabel], labels[corev1.LabelTopologyZone])
}

// stagesAudit has every write to a node with what came of it.
const stagesAudit = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: RequestResponse
  verbs: [create, update, patch]
  resources:
  - group: ""
    resources: [nodes]
- level: Metadata
`

// stored is a node as a write left it.
type stored struct {
	at      time.Time
	version uint64
	name    string
	marks   marker.Marks
}

// stored are the writes to nodes in the order in which the store took them.
func (s *stages) stored() []stored {
	s.t.Helper()
	var list []stored
	for _, r := range s.requests(s.t, time.Time{}) {
		var n metav1.PartialObjectMetadata
		if r.resource() != "nodes" || !r.writes() || !r.succeeded() || json.Unmarshal(r.Response, &n) != nil || n.Name == "" {
			continue
		}
		v, err := strconv.ParseUint(n.ResourceVersion, 10, 64)
		assert.NilError(s.t, err)
		marks, problems := marker.Decode(n.Annotations)
		assert.Equal(s.t, len(problems), 0, "%v", problems)
		list = append(list, stored{r.Received.Time, v, n.Name, marks})
	}
	slices.SortFunc(list, func(a, b stored) int { return cmp.Compare(a.version, b.version) })
	return list
}

// judge goes through all that was ever written to nodes.
func (s *stages) judge(bad, good string) {
	s.t.Helper()
	labels := map[string]map[string]string{}
	for _, n := range s.nodes() {
		labels[n.Name] = n.Labels
	}
	zone := func(name string) string { return labels[name][corev1.LabelTopologyZone] }
	now := map[string]marker.Marks{}
	count := func(counts func(name string) bool) int {
		n := 0
		for name, m := range now {
			if m.Disruption != nil && counts(name) {
				n++
			}
		}
		return n
	}
	touched, starts, most := map[string]bool{}, 0, 0
	for _, w := range s.stored() {
		before := now[w.name]
		now[w.name] = w.marks
		group := groupOf(labels[w.name])
		if w.marks.Intent.Target == bad {
			assert.Check(s.t, group == "canary", "%s, in %s, was sent to %s", w.name, group, bad)
		}
		if before.Disruption != nil || w.marks.Disruption == nil {
			continue
		}
		starts++
		what := fmt.Sprintf("%s, in %s, was taken out of service for %s at %s", w.name, group, w.marks.Intent.Target, w.at.Format(time.RFC3339Nano))
		s.t.Log(what)
		if w.marks.Intent.Target == bad {
			touched[w.name] = true
		}
		most = max(most, count(func(string) bool { return true }))
		assert.Check(s.t, count(func(string) bool { return true }) <= stagesEverywhere, what)
		assert.Check(s.t, count(func(n string) bool { return zone(n) == zone(w.name) }) <= stagesInZone, what)
		assert.Check(s.t, group != "canary" || count(func(n string) bool { return groupOf(labels[n]) == group }) <= stagesInCanary, what)
		for _, q := range s.quiet {
			assert.Check(s.t, !q.covers(w.at), "%s, when nothing may start", what)
		}
		if w.marks.Intent.Target == good {
			for name, m := range now {
				if groupOf(labels[name]) == comesAfter[group] {
					assert.Check(s.t, m.Report.Current == good && m.Disruption == nil, "%s, and %s runs %s yet", what, name, m.Report.Current)
				}
			}
		}
	}
	// One failure is the threshold, and no second canary was under way.
	assert.Check(s.t, len(touched) == 1, "%d canaries were taken out of service for %s", len(touched), bad)
	assert.Check(s.t, starts == 1+stagesFleet, "%d starts", starts)
	s.t.Logf("%d starts, at most %d nodes out of service at once", starts, most)
}

// comesAfter is the group that a group comes after.
var comesAfter = map[string]string{"zone-a": "canary", "zone-b": "zone-a", "zone-c": "zone-b"}
