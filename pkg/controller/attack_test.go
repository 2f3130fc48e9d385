package controller

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/pkg/errors"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostile"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// TestAttackPlanPage: what is served of a plan is shown by a terminal as it is, as text, as JSON and as metrics, of
// Nodes that say anything, and of sentences that an answer of the API server went into.
func TestAttackPlanPage(t *testing.T) {
	now := time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)
	for name, word := range hostile.Words() {
		t.Run(name, func(t *testing.T) {
			s := fleet.Snapshot{Now: now, PolicyProblem: word, AdmissionProblem: word}
			for i, readable := range []bool{false, true} {
				n := kube.View(hostile.Node(fmt.Sprint("n", i), word, readable))
				n.UID, n.PassedOver = n.Name, true
				s.Nodes = append(s.Nodes, n)
			}
			out := planner.Plan(s, policy.DefaultSettings())
			assert.Equal(t, len(out.Nodes), 2)
			out.Warnings = append(out.Warnings, plan.Warning{Message: plan.Text(word)})
			var sentence plan.Message
			assert.NilError(t, sentence.UnmarshalText([]byte(word)))
			out.Nodes = append(out.Nodes, plan.Decision{Node: "n3", UID: "n3", Reason: plan.ReasonBudgetBlocks, Message: sentence})
			out.Stopped = append(out.Stopped, plan.StoppedVersion{Version: word})
			s.Nodes = append(s.Nodes, fleet.Node{Name: "n3", UID: "n3", OSVersion: word, Zone: word})

			registry := prometheus.NewRegistry()
			set := policy.DefaultSettings()
			set.Groups = []policy.Group{{Name: word, Rules: set.Rules}}
			NewMetrics(registry, true).pass(seen{at: now, snapshot: s, settings: set, plan: out, clock: time.Now}, time.Second)
			served := func(h http.Handler, query string) string {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/"+query, nil))
				return w.Body.String()
			}
			assert.NilError(t, hostile.Obeyed(served(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), "")))

			page := PlanHandler(fixed{out, nil})
			assert.NilError(t, hostile.Obeyed(served(page, "")))
			body := served(page, "?format=json")
			var back plan.Plan
			assert.NilError(t, json.Unmarshal([]byte(body), &back))
			if name != "no UTF-8" {
				assert.Equal(t, back.PolicyProblem, word, "a program reads what was said")
			}
			if name != "very long" && name != "a very long number" {
				assert.NilError(t, hostile.Obeyed(body))
			}

			ill := PlanHandler(fixed{plan.Plan{}, errors.New(word)})
			assert.NilError(t, hostile.Obeyed(served(ill, "")))
		})
	}
}
