package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	"gotest.tools/v3/poll"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/controller"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// lately puts an intent and its answer on a host, by the real clock: a controller is at work.
func lately(action marker.Action, answer marker.State, ago time.Duration) marker.Marks {
	m := at(action, answer, ago, v1, v2)
	m.Intent.Time = time.Now().Add(-ago)
	m.Intent.Until = m.Intent.Time.Add(45 * time.Minute)
	return m
}

// out is a host that was cordoned for an update as long ago as its intent is old.
func out(m marker.Marks) marker.Marks {
	m.Intent.RebootFrom = m.Report.BootID
	m.Disruption = &marker.Disruption{Since: m.Intent.Time}
	return m
}

// back is a host that came back with the target, and whose kubelet says so in boot as well.
func back(m marker.Marks) marker.Marks {
	m.Intent.RebootFrom, m.Report.Current, m.Report.Available = "0a0a0a0a-boot", v2, ""
	return m
}

// troubled are fleets in which something is wrong, each with its policy.
var troubled = []struct {
	name, policy string
	hosts        func(c *cluster) []host
	// troubles are among what is wrong for the whole fleet, else the test would compare nothing.
	troubles []string
	// broken is the policy's text after the controller has read the first: only the controller knows that one then.
	broken string
}{
	{name: "a pause", policy: testPolicy + "pause: {reason: stocktaking}\nversions: {minAge: 1h}\n", hosts: func(*cluster) []host {
		prepared := lately(marker.ActionPrepareUpdate, marker.StateReady, time.Hour)
		failed := lately(marker.ActionStabilize, marker.StateReady, time.Hour)
		failed.Failure = &marker.Failure{Versions: []string{v2}, Count: 1, Reason: "RolledBack", At: time.Now(), RetryAfter: time.Now().Add(time.Hour)}
		current := at(marker.ActionStabilize, marker.StateReady, time.Hour, v2, v2)
		return []host{idleHost("agentless"), {name: "idle", marks: lately(marker.ActionStabilize, marker.StateReady, time.Hour)},
			{name: "staged", marks: prepared}, {name: "worker", labels: map[string]string{"wave": "workers"}, marks: prepared},
			{name: "current", labels: map[string]string{"wave": "canary"}, marks: current},
			{name: "cordoned", cordoned: true, marks: lately(marker.ActionStabilize, marker.StateReady, time.Hour)},
			{name: "unreadable", annotations: map[marker.Key]string{marker.KeyIntentID: "8", marker.KeyActionWanted: "dance"}},
			{name: "new", noAgent: true}, {name: "failed", marks: failed}}
	}},
	{name: "Lost nodes, a version that is stopped, and warnings", hosts: func(*cluster) []host {
		lost := out(lately(marker.ActionRebootUpdate, marker.StateBusy, 2*time.Hour))
		staged := lately(marker.ActionPrepareUpdate, marker.StateReady, time.Hour)
		// They name nodes that held the places long ago, and blame a person.
		staged.Waiting = &marker.Waiting{Reason: string(plan.ReasonHandsOff), Message: "staged; somebody took the operator's cordon away"}
		return []host{{name: "lost-1", marks: lost, cordoned: true, notReady: true}, {name: "lost-2", marks: lost, cordoned: true, notReady: true},
			{name: "staged", marks: staged}, {name: "idle", marks: lately(marker.ActionStabilize, marker.StateReady, time.Hour)}}
	}, troubles: []string{"2 Lost", "warning: the reboot deadline is shorter", "warning: group canary has no node", "1.51.0 failed on 2 nodes"},
		policy: "version: 1\nmaxUnavailable: 3\nmaxFailed: 2\ndeadlines: {reboot: 5m, prepare: 20m}\n" +
			"groups:\n- {name: canary, nodeSelector: {matchLabels: {wave: canary}}}\n"},
	{name: "places that are taken", policy: "version: 1\nmaxUnavailable: 1\n", hosts: func(c *cluster) []host {
		c.blocked("draining")
		staged := lately(marker.ActionPrepareUpdate, marker.StateReady, time.Hour)
		staged.Waiting = &marker.Waiting{Reason: string(plan.ReasonUnavailableLimit), Message: "staged; 1 of 1 nodes of the fleet that may be unavailable are: long-gone"}
		draining := out(lately(marker.ActionPrepareUpdate, marker.StateReady, time.Minute))
		return []host{{name: "draining", marks: draining, cordoned: true}, {name: "staged", marks: staged},
			{name: "cordoned", cordoned: true, marks: lately(marker.ActionStabilize, marker.StateReady, time.Hour)}}
	}},
	{name: "a limit that was lowered", policy: "version: 1\nmaxUnavailable: 1\nmaxLost: 0\n", troubles: []string{"1 Lost", "unavailable in the fleet: 4, and 1 may be"}, hosts: func(*cluster) []host {
		rebooting := out(lately(marker.ActionRebootUpdate, marker.StateBusy, time.Minute))
		returning := back(out(lately(marker.ActionRebootUpdate, marker.StateReady, 20*time.Minute)))
		returning.Waiting = &marker.Waiting{Reason: string(plan.ReasonLost), Message: "returning has not come back from its reboot"}
		soaking := back(out(lately(marker.ActionStabilize, marker.StateReady, time.Minute)))
		soaking.Disruption.Returned = &soaking.Intent.Time
		lost := out(lately(marker.ActionRebootUpdate, marker.StateBusy, 2*time.Hour))
		return []host{{name: "lost", marks: lost, cordoned: true, notReady: true}, {name: "rebooting", marks: rebooting, cordoned: true},
			{name: "returning", marks: returning, cordoned: true, notReady: true}, {name: "soaking", marks: soaking, notReady: true},
			{name: "staged", marks: lately(marker.ActionPrepareUpdate, marker.StateReady, time.Hour)}}
	}},
	{name: "no policy that can be read", policy: "version: 2\n", troubles: []string{"the policy is not in force"}, hosts: func(*cluster) []host {
		return []host{{name: "staged", marks: lately(marker.ActionPrepareUpdate, marker.StateReady, time.Hour)},
			{name: "draining", marks: out(lately(marker.ActionPrepareUpdate, marker.StateReady, time.Minute)), cordoned: true},
			{name: "idle", marks: lately(marker.ActionStabilize, marker.StateReady, time.Hour)}}
	}},
	{name: "a mistake in a policy that was good", policy: testPolicy + "pause: {reason: stocktaking}\n", broken: "maxUnavailable: 4\npause: {reason: moving}\n", hosts: func(*cluster) []host {
		return []host{{name: "staged", marks: lately(marker.ActionPrepareUpdate, marker.StateReady, time.Hour)},
			{name: "worker", labels: map[string]string{"wave": "workers"}, marks: lately(marker.ActionPrepareUpdate, marker.StateReady, time.Hour)},
			{name: "rebooting", marks: out(lately(marker.ActionRebootUpdate, marker.StateBusy, time.Minute)), cordoned: true}}
	}},
}

// blocked puts a pod on a node that a PodDisruptionBudget lets nobody evict.
func (c *cluster) blocked(node string) {
	c.t.Helper()
	zero, ctx := int64(0), c.t.Context()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{NodeName: node, TerminationGracePeriodSeconds: &zero, Containers: []corev1.Container{{Name: "web", Image: "web"}}}}
	pod, err := c.client.CoreV1().Pods(c.namespace).Create(ctx, pod, metav1.CreateOptions{})
	assert.NilError(c.t, err)
	pod.Status.Phase, pod.Status.Conditions = corev1.PodRunning, []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	_, err = c.client.CoreV1().Pods(c.namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	assert.NilError(c.t, err)
	_, err = c.client.PolicyV1().PodDisruptionBudgets(c.namespace).Create(ctx, &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(0)), Selector: &metav1.LabelSelector{MatchLabels: pod.Labels}}}, metav1.CreateOptions{})
	assert.NilError(c.t, err)
}

// told is what is said of a node.
type told struct {
	Node    string      `json:"node"`
	Phase   string      `json:"phase"`
	Reason  plan.Reason `json:"reason"`
	Message string      `json:"message"`
}

// about are words without the second in which a controller first looked, which only it knows, and without when it wrote
// what stands on a node.
func about(words []told) []told {
	words = slices.Clone(words)
	for i := range words {
		words[i].Message = written.ReplaceAllString(firstLook.ReplaceAllString(words[i].Message, "in service, or LATER)"), "")
	}
	return words
}

var (
	firstLook = regexp.MustCompile(`in service, or 20[^)]*\)`)
	written   = regexp.MustCompile(` \(at 20[^)]*\)$`)
)

// settled is the plan of a controller that takes no step any more but to look.
func settled(t *testing.T, at *controller.Controller, is func(plan.Plan) bool) (out plan.Plan) {
	t.Helper()
	poll.WaitOn(t, func(poll.LogT) (r poll.Result) {
		var err error
		if out, err = at.Plan(t.Context()); err != nil || len(out.Steps) > 0 || len(out.Saw) > 0 || !is(out) {
			return poll.Continue("the controller is at work: %v, %v", out.Steps, err)
		}
		return poll.Success()
	}, poll.WithTimeout(time.Minute))
	return out
}

// What the plugin says is what a controller at work says, node by node and word for word, while things fail too: its
// own words where it answers, and the same ones where the plugin has to find them by itself.
func TestPlanIsTheControllers(t *testing.T) {
	for _, tc := range troubled {
		t.Run(tc.name, func(t *testing.T) {
			c := newCluster(t)
			hosts := tc.hosts(c)
			for _, h := range hosts {
				c.node(h)
			}
			c.slots()
			c.configMap(kube.PolicyConfigMap, kube.PolicyKey, tc.policy)
			c.pod("controller-1", "staged", corev1.Container{Name: "controller", Image: "controller", Args: []string{"-controller", "-max-unavailable=2"}}, "controller")
			leads := c.controls("staged")
			says := settled(t, leads, func(plan.Plan) bool { return true })
			if tc.broken != "" {
				body, err := json.Marshal(map[string]any{"data": map[string]string{kube.PolicyKey: tc.broken}})
				assert.NilError(t, err)
				_, err = c.client.CoreV1().ConfigMaps(c.namespace).Patch(t.Context(), kube.PolicyConfigMap, types.MergePatchType, body, metav1.PatchOptions{})
				assert.NilError(t, err)
				says = settled(t, leads, func(o plan.Plan) bool { return o.PolicyProblem != "" })
			}
			assert.Equal(t, len(says.Nodes), len(hosts))
			for _, trouble := range tc.troubles {
				assert.Assert(t, strings.Contains(says.String(), trouble), says)
			}
			var words []told
			for _, s := range says.Nodes {
				words = append(words, told{s.Node, string(s.Phase), s.Reason, s.Message.String()})
			}
			head := strings.Join(append(says.Counts(), says.Troubles()...), "\n") + "\n"

			t.Run("its own plan", func(t *testing.T) {
				got := c.asks(t, leads, "plan", "-o", "json")
				assert.Assert(t, got.Live)
				assert.DeepEqual(t, got.Budgets, says.Budgets)
				assert.DeepEqual(t, got.Waits, words)
				assert.DeepEqual(t, got.Stopped, append([]map[string]any{}, stopped(says)...))
				assert.Equal(t, got.Lost, says.Phases()["Lost"])
				assert.Assert(t, strings.Contains(c.asked(t, leads, "plan").out, head), "%s", head)
				assert.Assert(t, strings.HasSuffix(c.asked(t, leads, "status").errs, head), "%s", head)
			})
			if tc.broken != "" {
				return
			}
			t.Run("made here", func(t *testing.T) {
				got := c.asks(t, nil, "plan", "-o", "json")
				assert.Assert(t, !got.Live)
				assert.DeepEqual(t, about(got.Waits), about(words))
				if says.PolicyProblem == "" {
					assert.DeepEqual(t, got.Budgets, says.Budgets)
				}
				assert.DeepEqual(t, got.Stopped, append([]map[string]any{}, stopped(says)...))
				assert.Assert(t, strings.Contains(c.asked(t, nil, "plan").out, head), "%s", head)
				assert.Assert(t, strings.HasSuffix(c.asked(t, nil, "status").errs, head), "%s", head)
			})
		})
	}
}

func stopped(o plan.Plan) []map[string]any {
	var out []map[string]any
	for _, v := range o.Stopped {
		out = append(out, map[string]any{"version": v.Version, "message": v.Message.String()})
	}
	return out
}

// answer is what a plan in JSON says.
type answer struct {
	Live    bool
	Lost    int
	Budgets []plan.Usage
	Waits   []told
	Stopped []map[string]any
}

func (c *cluster) asks(t *testing.T, leads *controller.Controller, args ...string) (a answer) {
	t.Helper()
	assert.NilError(t, json.Unmarshal([]byte(c.asked(t, leads, args...).out), &a))
	return a
}

// serves is an API server that proxies to the leader, which serves this plan: the real one reaches nothing on loopback.
func (c *cluster) serves(plan func(context.Context) (plan.Plan, error)) func(*rest.Config) *rest.Config {
	path := fmt.Sprintf("/api/v1/namespaces/%s/pods/http:controller-1:8080/proxy/plan", c.namespace)
	return func(config *rest.Config) *rest.Config {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTrip(func(r *http.Request) (*http.Response, error) {
				if r.URL.Path != path {
					return next.RoundTrip(r)
				}
				w := httptest.NewRecorder()
				controller.PlanHandler(plan).ServeHTTP(w, r)
				return w.Result(), nil
			})
		})
		return config
	}
}

// asked runs the plugin now, where the controller serves its plan, if there is one.
func (c *cluster) asked(t *testing.T, leads *controller.Controller, args ...string) said {
	t.Helper()
	var stdout, stderr bytes.Buffer
	p := newPlugin(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &stdout, ErrOut: &stderr})
	if leads != nil {
		p.flags.WrapConfigFn = c.serves(leads.Plan)
	}
	status := p.run(t.Context(), append([]string{"--kubeconfig", c.kubeconfig, "-n", c.namespace}, args...))
	assert.Equal(t, status, 0, stderr.String())
	return said{out: stdout.String(), errs: stderr.String()}
}
