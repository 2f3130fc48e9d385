package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"gotest.tools/v3/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostile"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/file"
)

// hostile makes Nodes, two of each word, on which a kubelet has written it wherever it may; it returns their names.
func (c *cluster) hostile() []string {
	c.t.Helper()
	nodes := c.client.CoreV1().Nodes()
	var names []string
	for i, what := range slices.Sorted(maps.Keys(hostile.Words())) {
		for _, readable := range []bool{false, true} {
			n := hostile.Node(fmt.Sprintf("hostile-%d-%v", i, readable), hostile.Words()[what], readable)
			made, err := nodes.Create(c.t.Context(), n, metav1.CreateOptions{})
			assert.NilError(c.t, err, what)
			c.t.Cleanup(func() {
				assert.NilError(c.t, nodes.Delete(context.Background(), n.Name, metav1.DeleteOptions{}))
			})
			made.Status = n.Status
			_, err = nodes.UpdateStatus(c.t.Context(), made, metav1.UpdateOptions{})
			assert.NilError(c.t, err, what)
			names = append(names, n.Name)
		}
	}
	return names
}

// TestAttackTerminal: no subcommand prints what a terminal obeys, whatever stands on the Nodes.
func TestAttackTerminal(t *testing.T) {
	c := newCluster(t)
	names := c.hostile()
	lines := []string{"check", "check -o json", "check -o yaml", "status", "status -o wide", "status -o json", "status -o yaml", "plan", "plan -o wide", "plan -o json", "plan -o yaml", "versions", "versions --all -o json", "versions --all -o yaml",
		"clean --all --dry-run", "clean --all --dry-run --force unreadable", "acknowledge 9.9.9", "__complete acknowledge ", "__complete history ", "__complete status "}
	for _, n := range names {
		lines = append(lines, "history "+n, "history -o yaml "+n, "pause --reason x "+n, "retry --dry-run "+n, "resume --dry-run "+n)
	}
	c.leads(names[0])
	c.configMap(kube.PolicyConfigMap, kube.PolicyKey, "version: 1\n")
	c.leader = atNoon{c: c, node: names[0]}
	for _, args := range lines {
		got := c.run(strings.Split(args, " ")...)
		assert.NilError(t, hostile.Obeyed(got.out), "%s", args)
		assert.NilError(t, hostile.Obeyed(got.errs), "%s", args)
		if strings.HasSuffix(args, "-o json") {
			assert.Assert(t, json.Valid([]byte(got.out)), "%s", args)
		}
		if strings.HasPrefix(args, "check") {
			assert.Assert(t, strings.Contains(got.out, "Annotations"), "%s", args)
		}
		if strings.HasPrefix(args, "status") || strings.HasPrefix(args, "plan") {
			for _, n := range names {
				assert.Assert(t, strings.Contains(got.out, n), "%s", args)
			}
		}
	}
	next := c.watching(t, "-o", "wide")
	for range 1 + len(names) {
		assert.NilError(t, hostile.Obeyed(next()))
	}
}

// TestAttackAnswers: nor what the API server says: that a request fails, with the value at which it does, a warning,
// and the plan of a controller that was told anything.
func TestAttackAnswers(t *testing.T) {
	c := newCluster(t)
	c.node(idleHost("a"))
	c.leads("a")
	for name, word := range hostile.Words() {
		t.Run(name, func(t *testing.T) {
			var sentence plan.Message
			assert.NilError(t, sentence.UnmarshalText([]byte(word)))
			leads := fixed{plan.Plan{Policy: word, PolicyProblem: word, Warnings: []plan.Warning{{Message: sentence}}, AdmissionProblem: word, Stopped: []plan.StoppedVersion{{Version: word, Message: sentence}},
				Nodes:   []plan.Decision{{Node: "a", Phase: intent.Phase(word), Version: word, Target: word, Reason: plan.Reason(word), Message: sentence}},
				Steps:   []plan.Step{{Node: "a", Act: intent.ActCordon, Message: word, Reason: plan.Reason(word)}},
				Groups:  []plan.Group{{Name: word, After: []string{word}, Paused: &word, Window: plan.Window{Frozen: &word}}},
				Budgets: []plan.Usage{{Of: word, Rule: word}}}}
			refuses := roundTrip(func(r *http.Request) (*http.Response, error) {
				body, err := json.Marshal(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: 422, Message: word})
				if r.URL.Path == "/version" {
					return &http.Response{StatusCode: 200, Header: http.Header{"Warning": {`299 - "` + word + `"`}}, Body: io.NopCloser(strings.NewReader("{}")), Request: r}, nil
				}
				return &http.Response{StatusCode: 422, Header: http.Header{"Content-Type": {"application/json"}, "Warning": {`299 - "` + word + `"`}},
					Body: io.NopCloser(bytes.NewReader(body)), Request: r}, err
			})
			for _, args := range [][]string{{"check"}, {"check", "-o", "json"}, {"check", "-o", "yaml"}, {"status"}, {"status", "-o", "wide"}, {"status", "-o", "json"}, {"status", "-o", "yaml"}, {"plan"}, {"plan", "-o", "wide"}, {"plan", "-o", "json"},
				{"plan", "-o", "yaml"}, {"plan", "--policy", "-"}, {"history", "a"}, {"history", word}, {"pause", "a", "--reason", "x"}, {"pause", "--reason", "x", "--dry-run"}, {"clean", "a"}, {"clean", "a", "--force", "controller", "--dry-run"},
				{"retry", "a"}, {"acknowledge", "9.9.9"}, {"status", word}, {word}} {
				c.leader = leads
				for i, through := range []func(http.RoundTripper) http.RoundTripper{c.proxied, func(http.RoundTripper) http.RoundTripper { return refuses }} {
					if i == 0 && args[0] == "check" {
						// It makes many requests, and asks no leader.
						continue
					}
					got := command(t.Context(), through, "", append([]string{"--kubeconfig", c.kubeconfig, "-n", c.namespace}, args...)...)
					assert.NilError(t, hostile.Obeyed(got.errs), "%.60q", args)
					if slices.Contains(args, "json") || slices.Contains(args, "yaml") {
						// A program reads all of it, in YAML with lines of its own.
						got.out = strings.ReplaceAll(strings.ReplaceAll(got.out, word, ""), " FORGED", "")
					}
					assert.NilError(t, hostile.Obeyed(got.out), "%.60q", args)
				}
			}
		})
	}
}

// fixed is a leader that says the same to everybody.
type fixed struct{ out plan.Plan }

func (f fixed) Plan(context.Context) (plan.Plan, error) { return f.out, nil }

// PlanBy finds as many mistakes in a policy as it has words.
func (f fixed) PlanBy(context.Context, []byte) (plan.Plan, error) {
	return plan.Plan{}, file.Mistakes{{Line: 1, Says: f.out.Policy}, {Line: 2, Says: f.out.Policy}}
}
