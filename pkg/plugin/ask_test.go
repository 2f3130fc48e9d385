package plugin

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/pkg/errors"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"gotest.tools/v3/assert"
	"gotest.tools/v3/poll"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/controller"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// Where the leader can't be asked, plan says in one line what is missing, and guesses nothing.
func TestPlanSaysWhatIsMissing(t *testing.T) {
	only := "only the leading controller can show its plan: "
	asking := func(c *cluster) string { return "asking pod " + c.namespace + "/controller-1 for its plan: " }
	for _, tc := range []struct {
		name string
		set  func(c *cluster)
		args []string
		says func(c *cluster) string
	}{
		{"no controller", func(*cluster) {}, nil, func(c *cluster) string {
			return only + `no controller has ever led in namespace "` + c.namespace + `": -n names the one that the operator runs in`
		}},
		{"one that has gone without a word", func(c *cluster) { c.holds("controller-1_x", noon.Add(-time.Hour)) }, nil, func(c *cluster) string {
			return only + "no controller leads now, and nothing happens until one does: see Deployment " + c.namespace + "/update-operator-controller"
		}},
		{"one that gave the lead up", func(c *cluster) { c.holds("", noon) }, nil, func(c *cluster) string {
			return only + "no controller leads now, and nothing happens until one does: see Deployment " + c.namespace + "/update-operator-controller"
		}},
		{"no right to see which controller leads", func(*cluster) {}, []string{"--as", "eve"}, func(c *cluster) string {
			return only + "reading Lease " + c.namespace + `/update-operator-controller: leases.coordination.k8s.io "update-operator-controller" is forbidden: `
		}},
		{"a pod that is gone", func(c *cluster) { c.holds("controller-1_x", noon) }, nil, func(c *cluster) string {
			return asking(c) + "it is gone; another controller leads as soon as its Lease has run out"
		}},
		{"no right to ask", func(c *cluster) {
			c.leads("a")
			c.grant(leaseRights, "eve-"+c.namespace)
		}, []string{"--as", "eve"}, func(c *cluster) string {
			return asking(c) + "you lack the right to get pods/proxy in namespace " + c.namespace
		}},
		{"no right to have it plan by a file", func(c *cluster) {
			c.leads("a")
			c.grant(leaseRights, "eve-"+c.namespace)
		}, []string{"--policy", "-", "--as", "eve"}, func(c *cluster) string {
			return asking(c) + "you lack the right to create pods/proxy in namespace " + c.namespace
		}},
		{"a pod that the API server can't reach", func(c *cluster) {
			c.leads("a")
			// Nothing answers there, and nothing says so: it is an address for documentation.
			c.runsAt("controller-1", "192.0.2.1")
		}, nil, func(c *cluster) string { return asking(c) }},
		{"one that doesn't lead any more", func(c *cluster) {
			c.leads("a")
			c.leader = refusing{errors.New("this process does not lead")}
		}, nil, func(c *cluster) string { return asking(c) + "this process does not lead\n" }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCluster(t)
			tc.set(c)
			args := append([]string{"plan"}, tc.args...)
			for i, a := range args {
				if a == "eve" {
					args[i] = "eve-" + c.namespace
				}
			}
			got := c.runWith("version: 1\n", args...)
			assert.Assert(t, strings.HasPrefix(got.errs, "error: "+tc.says(c)), got.errs)
			assert.Equal(t, strings.Count(got.errs, "\n"), 1)
			assert.Equal(t, got.out, "")
			assert.Equal(t, got.status, 1)
		})
	}
}

const leaseRights = `kind: Role
metadata:
  name: leases
  namespace: bottlerocket
rules:
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    verbs: [get]
`

type refusing struct{ err error }

func (r refusing) Plan(context.Context) (plan.Plan, error)           { return plan.Plan{}, r.err }
func (r refusing) PlanBy(context.Context, []byte) (plan.Plan, error) { return plan.Plan{}, r.err }

// runsAt gives a pod an address.
func (c *cluster) runsAt(pod, ip string) {
	c.t.Helper()
	p, err := c.client.CoreV1().Pods(c.namespace).Get(c.t.Context(), pod, metav1.GetOptions{})
	assert.NilError(c.t, err)
	p.Status.PodIP, p.Status.PodIPs = ip, []corev1.PodIP{{IP: ip}}
	_, err = c.client.CoreV1().Pods(c.namespace).UpdateStatus(c.t.Context(), p, metav1.UpdateOptions{})
	assert.NilError(c.t, err)
}

// What plan prints is what a controller at work says, all of it. Asked to plan by another policy, it writes nothing.
func TestPlanIsTheControllers(t *testing.T) {
	c := newCluster(t)
	c.node(idleHost("agentless"))
	c.configMap(kube.PolicyConfigMap, kube.PolicyKey, testPolicy+"pause: {reason: stocktaking}\n")
	leads := c.controls()
	c.leader = leads
	var says plan.Plan
	poll.WaitOn(t, func(poll.LogT) poll.Result {
		var err error
		if says, err = leads.Plan(t.Context()); err != nil || len(says.Steps) > 0 || len(says.Saw) > 0 || says.RecordPolicy {
			return poll.Continue("the controller is at work: %v, %v", says.Steps, err)
		}
		return poll.Success()
	}, poll.WithTimeout(time.Minute))

	type parts struct{ Policy, Nodes, Groups, Budgets, Warnings any }
	decoded := func(body []byte) (p parts) {
		assert.NilError(t, json.Unmarshal(body, &p))
		return p
	}
	body, err := json.Marshal(says)
	assert.NilError(t, err)
	assert.DeepEqual(t, decoded([]byte(c.run("plan", "-o", "json").out)), decoded(body))
	text := c.run("plan").out
	assert.Assert(t, strings.Contains(text, strings.Join(append(says.Counts(), says.Troubles()...), "\n")+"\n"), text)
	assert.Assert(t, strings.Contains(text, "stocktaking"), text)

	before := c.versions()
	got := c.runWith("version: 1\nmaxStaging: 7\n", "plan", "--policy", "-")
	assert.Assert(t, strings.Contains(got.out, " by standard input\n") && !strings.Contains(got.out, "stocktaking"), got.out+got.errs)
	assert.DeepEqual(t, c.versions(), before)
}

// controls runs a controller in this process, as the pod controller-1.
func (c *cluster) controls() *controller.Controller {
	c.t.Helper()
	o := controller.DefaultOptions()
	o.Namespace, o.PodName, o.NodeName = c.namespace, "controller-1", "elsewhere"
	log := logrus.New()
	log.SetOutput(io.Discard)
	leads, err := controller.New(o, c.client, prometheus.NewRegistry(), log)
	assert.NilError(c.t, err)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- leads.Run(ctx) }()
	c.t.Cleanup(func() { stop(); assert.NilError(c.t, <-done) })
	return leads
}

// versions are the resource versions of all that a controller writes but for its Lease.
func (c *cluster) versions() map[string]string {
	c.t.Helper()
	nodes, err := c.client.CoreV1().Nodes().List(c.t.Context(), metav1.ListOptions{})
	assert.NilError(c.t, err)
	config, err := c.client.CoreV1().ConfigMaps(c.namespace).List(c.t.Context(), metav1.ListOptions{})
	assert.NilError(c.t, err)
	all := map[string]string{}
	for _, n := range nodes.Items {
		all[n.Name] = n.ResourceVersion
	}
	for _, m := range config.Items {
		all["configmap/"+m.Name] = m.ResourceVersion
	}
	return all
}
