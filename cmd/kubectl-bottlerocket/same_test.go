package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"gotest.tools/v3/assert"
	"gotest.tools/v3/poll"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/controller"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// What the plugin says of each node is what a controller at work says, word for word.
func TestPlanIsTheControllers(t *testing.T) {
	c := newCluster(t)
	worker := map[string]string{"wave": "workers"}
	prepared := at(marker.ActionPrepareUpdate, marker.StateReady, time.Hour, v1, v2)
	c.node(idleHost("agentless"))
	c.node(host{name: "idle", marks: at(marker.ActionStabilize, marker.StateReady, time.Hour, v1, v2)})
	c.node(host{name: "staged", marks: prepared})
	c.node(host{name: "worker", labels: worker, marks: prepared})
	c.node(host{name: "current", labels: map[string]string{"wave": "canary"}, marks: at(marker.ActionStabilize, marker.StateReady, time.Hour, v2, v2)})
	c.node(host{name: "cordoned", cordoned: true, marks: at(marker.ActionStabilize, marker.StateReady, time.Hour, v1, v2)})
	c.node(host{name: "unreadable", annotations: map[marker.Key]string{marker.KeyIntentID: "8", marker.KeyActionWanted: "dance"}})
	c.node(host{name: "new", noAgent: true})
	failed := at(marker.ActionStabilize, marker.StateReady, time.Hour, v1, v2)
	failed.Failure = &marker.Failure{Versions: []string{v2}, Count: 1, Reason: "RolledBack", At: time.Now(), RetryAfter: time.Now().Add(time.Hour)}
	c.node(host{name: "failed", marks: failed})
	c.slots()
	c.configMap(kube.PolicyConfigMap, kube.PolicyKey, testPolicy+"pause: {reason: stocktaking}\nversions: {minAge: 1h}\n")
	c.pod("controller-1", "staged", corev1.Container{Name: "controller", Image: "controller", Args: []string{"-controller", "-max-unavailable=2"}}, "controller")

	o := controller.DefaultOptions()
	o.Namespace, o.PodName, o.NodeName = c.namespace, "controller-1", "staged"
	o.Policy.MaxUnavailable = policy.Count(2)
	log := logrus.New()
	log.SetOutput(io.Discard)
	at, err := controller.New(o, c.client, prometheus.NewRegistry(), log)
	assert.NilError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- at.Run(ctx) }()
	t.Cleanup(func() { stop(); assert.NilError(t, <-done) })

	type word struct {
		Node    string        `json:"node"`
		Reason  policy.Reason `json:"reason"`
		Message string        `json:"message"`
	}
	var says, plugin []word
	poll.WaitOn(t, func(poll.LogT) poll.Result {
		out, err := at.Plan(ctx)
		if err != nil || len(out.Steps) > 0 || len(out.Saw) > 0 {
			return poll.Continue("the controller is at work: %v, %v", out.Steps, err)
		}
		says = nil
		for _, s := range out.Nodes {
			says = append(says, word{s.Node, s.Reason, s.Sentence.String()})
		}
		return poll.Success()
	}, poll.WithTimeout(time.Minute))

	var out, errs bytes.Buffer
	p := newPlugin(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &errs})
	assert.Equal(t, p.run(ctx, []string{"--kubeconfig", c.kubeconfig, "-n", c.namespace, "plan", "-o", "json"}), 0, errs.String())
	var made struct {
		Warnings, Starts []any
		Waits            []word
	}
	assert.NilError(t, json.Unmarshal(out.Bytes(), &made))
	plugin = made.Waits
	assert.DeepEqual(t, plugin, says)
	assert.Equal(t, len(made.Starts), 0)
	assert.Equal(t, len(made.Warnings), 0, "%v", made.Warnings)
	assert.Equal(t, len(says), 9)
}
