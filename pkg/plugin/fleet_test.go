package plugin

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/file"
)

const testPolicy = `version: 1
maxUnavailable: 2
topology:
- {key: topology.kubernetes.io/zone, maxUnavailable: 2}
groups:
- name: canary
  nodeSelector: {matchLabels: {wave: canary}}
- name: workers
  nodeSelector: {matchLabels: {wave: workers}}
  after: [canary]
  afterSoak: 24h
  maxUnavailable: 50%
  windows: [{schedule: "0 22 * * *", duration: 4h}]
`

// fleet is one node of each kind that a plan speaks of.
func (c *cluster) fleet() {
	c.t.Helper()
	canary, worker := map[string]string{"wave": "canary"}, map[string]string{"wave": "workers"}
	zone := map[string]string{"topology.kubernetes.io/zone": "a"}

	m := at(marker.ActionStabilize, marker.StateReady, 2*time.Hour, v2, v2)
	m.History = []marker.Attempt{
		{Version: v2, Outcome: marker.OutcomeFailed, Reason: "DrainDeadline", Started: ago(26 * time.Hour), Ended: ago(25*time.Hour + 30*time.Minute)},
		{Version: v2, Outcome: marker.OutcomeUpdated, Reason: "Updated", Started: ago(2*time.Hour + 7*time.Minute + 5*time.Second), Ended: ago(2 * time.Hour), From: v1},
	}
	c.node(host{name: "canary-1", labels: canary, marks: m})
	c.node(host{name: "worker-1", labels: worker, marks: at(marker.ActionPrepareUpdate, marker.StateReady, time.Hour, v1, v2)})
	c.node(host{name: "worker-2", labels: worker, marks: at(marker.ActionStabilize, marker.StateReady, time.Hour, v1, v2)})
	c.node(host{name: "idle", labels: zone, marks: at(marker.ActionStabilize, marker.StateReady, time.Hour, v1, v2)})

	m = at(marker.ActionStabilize, marker.StateReady, time.Hour, v1, v2)
	m.Failure = &marker.Failure{Versions: []string{v2}, Count: 2, Reason: "RolledBack", Message: "booted 1.50.0", At: ago(time.Hour), RetryAfter: noon.Add(3 * time.Hour)}
	c.node(host{name: "failed", marks: m})

	m = at(marker.ActionPrepareUpdate, marker.StateReady, time.Hour, v1, v2)
	m.Intent.RebootFrom = m.Report.BootID
	m.Disruption = &marker.Disruption{Since: ago(10 * time.Minute)}
	m.Waiting = &marker.Waiting{Reason: "EvictionBlocked", Message: "pod default/db-0: its PodDisruptionBudget db allows none"}
	c.node(host{name: "draining", labels: zone, marks: m, cordoned: true})

	c.node(host{name: "paused", marks: at(marker.ActionStabilize, marker.StateReady, time.Hour, v1, v2),
		annotations: map[marker.Key]string{marker.KeyPaused: "Ann debugs \x1b[31mhere"}})

	m = at(marker.ActionRebootUpdate, marker.StateBusy, 40*time.Minute, v1, v2)
	m.Intent.RebootFrom = m.Report.BootID
	m.Disruption = &marker.Disruption{Since: ago(50 * time.Minute)}
	m.Waiting = &marker.Waiting{Reason: "Lost", Message: "lost has not come back from its reboot"}
	c.node(host{name: "lost", marks: m, cordoned: true, notReady: true})

	c.node(host{name: "staged-1", labels: zone, marks: at(marker.ActionPrepareUpdate, marker.StateReady, time.Hour, v1, v2)})
	m = at(marker.ActionPrepareUpdate, marker.StateReady, time.Hour, v1, v2)
	m.Waiting = &marker.Waiting{Reason: "UnavailableLimit", Message: "staged; of the fleet at most 2 may be unavailable, and 2 are: draining, staged-1 (at 2026-01-05 11:50:00 UTC)"}
	c.node(host{name: "staged-2", marks: m})
	c.node(host{name: "staged-last", marks: at(marker.ActionPrepareUpdate, marker.StateReady, time.Hour, "1.49.0", v2)})
	c.node(host{name: "new", noAgent: true})
	c.node(host{name: "unlabelled", notLabelled: true})
	c.node(host{name: "unreadable", annotations: map[marker.Key]string{marker.KeyIntentID: "8", marker.KeyActionWanted: "dance"}})
	c.slots()
	c.configMap(kube.PolicyConfigMap, kube.PolicyKey, testPolicy)
	c.leads("staged-last")
	c.leader = atNoon{c: c, node: "staged-last"}
}

// atNoon plans at noon, by what stands in the cluster, as a leader would that runs on a node.
type atNoon struct {
	c    *cluster
	node string
	// seen is since when it knows versions.
	seen map[string]time.Time
	// rollouts is what it remembers of them.
	rollouts []plan.Rollout
}

func (a atNoon) Plan(ctx context.Context) (plan.Plan, error) {
	config, err := a.c.client.CoreV1().ConfigMaps(a.c.namespace).Get(ctx, kube.PolicyConfigMap, metav1.GetOptions{})
	if err != nil {
		return plan.Plan{}, err
	}
	out, err := a.PlanBy(ctx, []byte(config.Data[kube.PolicyKey]))
	out.Policy, out.Rollouts = "ConfigMap update-policy", a.rollouts
	return out, err
}

func (a atNoon) PlanBy(ctx context.Context, content []byte) (plan.Plan, error) {
	set, err := file.Decode(content, policy.DefaultSettings(), time.LoadLocation)
	if err != nil {
		return plan.Plan{}, err
	}
	objects, err := kube.ReadObjects(ctx, a.c.client, a.c.namespace, kube.AgentSelector)
	if err != nil {
		return plan.Plan{}, err
	}
	s := fleet.Snapshot{Now: noon, Nodes: objects.Views(), Slots: map[string]string{}, FirstSeen: a.seen}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		n.PassedOver, n.ControllerHere, n.Forecast = true, n.Name == a.node, &fleet.Forecast{At: noon}
		if n.Disrupted() {
			s.Slots[n.UID] = n.Name
		}
	}
	return planner.Show(s, set), nil
}
