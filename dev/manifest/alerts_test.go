package manifest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"gotest.tools/v3/assert"
	"gotest.tools/v3/golden"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

const (
	rulesFile = "monitoring/rules.yaml"
	ruleFile  = "monitoring/prometheusrule.yaml"
	runbooks  = "docs/runbooks"
)

// alert is one of monitoring/rules.yaml.
type alert struct {
	Alert       string
	Expr        string
	Labels      struct{ Severity string }
	Annotations struct {
		Summary string
		Runbook string `yaml:"runbook_url"`
	}
}

// alerts are those of monitoring/rules.yaml.
func alerts(t *testing.T) []alert {
	t.Helper()
	var file struct{ Groups []struct{ Rules []alert } }
	assert.NilError(t, yaml.Unmarshal([]byte(page(t, rulesFile)), &file))
	assert.Assert(t, len(file.Groups) == 1 && len(file.Groups[0].Rules) >= 10)
	return file.Groups[0].Rules
}

// runbook is the page of an alert.
func (a alert) runbook() string {
	return strings.TrimPrefix(a.Annotations.Runbook, "https://github.com/bottlerocket-os/bottlerocket-update-operator/blob/main/")
}

// The rules for the Prometheus operator are those of the plain file.
func TestDocsPrometheusRule(t *testing.T) {
	const head = `# Optional, for clusters with the Prometheus operator: the rules of monitoring/rules.yaml, of which this file is made
# (go test ./dev/manifest -run TestDocs -update).
#
#   kubectl apply -f monitoring/prometheusrule.yaml
#
# A Prometheus object chooses its rules by their labels (ruleSelector) and their namespaces. If yours wants a label, such
# as release, add it below.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: bottlerocket-update-operator
  namespace: bottlerocket
  labels:
    app.kubernetes.io/name: bottlerocket-update-operator
spec:
`
	_, rules, ok := strings.Cut(page(t, rulesFile), "\ngroups:\n")
	assert.Assert(t, ok)
	want := head + regexp.MustCompile(`(?m)^(.)`).ReplaceAllString("groups:\n"+rules, "  $1")
	if golden.FlagUpdate() {
		assert.NilError(t, os.WriteFile(inRepository(ruleFile), []byte(want), 0o644))
	}
	assert.Equal(t, page(t, ruleFile), want, "run go test ./dev/manifest -run TestDocs -update")
}

// The table of alerts has all of them, with their pages.
func TestDocsAlerts(t *testing.T) {
	var b strings.Builder
	b.WriteString("| alert | severity | runbook |\n|---|---|---|\n")
	for _, a := range alerts(t) {
		title, _, _ := strings.Cut(strings.TrimPrefix(page(t, a.runbook()), "# "), "\n")
		fmt.Fprintf(&b, "| `%s` | %s | [%s](%s) |\n", a.Alert, a.Labels.Severity, title, strings.TrimPrefix(a.runbook(), "docs/"))
	}
	same(t, monitoringPage, "alerts", b.String())
}

// An alert asks for documented metrics and labels, and for reasons and phases that there are; one that asks for none
// that exist would never fire.
func TestAlertExpressions(t *testing.T) {
	metrics := documentedMetrics(t)
	known := map[string][]string{}
	for _, r := range plan.Reasons() {
		if r.Waits() {
			known["reason"] = append(known["reason"], string(r))
		}
	}
	for _, p := range intent.Phases() {
		known["phase"] = append(known["phase"], string(p))
	}
	value := regexp.MustCompile(`\b(reason|phase)[!=]~?"([^"]*)"`)
	values := 0
	for _, a := range alerts(t) {
		assert.Check(t, len(asked.FindAllString(a.Expr, -1)) > 0, "%s asks for no metric", a.Alert)
		assert.Check(t, len(strangers(a.Expr, metrics)) == 0, "%s: %s", a.Alert, strangers(a.Expr, metrics))
		for _, m := range value.FindAllStringSubmatch(a.Expr, -1) {
			for _, v := range strings.Split(m[2], "|") {
				values++
				assert.Check(t, slices.Contains(known[m[1]], v), "%s: %s %s", a.Alert, m[1], v)
			}
		}
	}
	assert.Assert(t, values > 30)
}

// Each alert says how urgent it is and has a page that says what it means, what it costs, what to look at and what to do;
// and each page belongs to an alert.
func TestRunbooks(t *testing.T) {
	of := map[string]string{}
	for _, a := range alerts(t) {
		assert.Check(t, strings.HasPrefix(a.Alert, "BottlerocketUpdate"), a.Alert)
		assert.Check(t, a.Labels.Severity == "critical" || a.Labels.Severity == "warning", a.Alert)
		assert.Check(t, strings.HasSuffix(a.Annotations.Summary, "."), a.Alert)
		assert.Check(t, of[a.runbook()] == "", "%s and %s", of[a.runbook()], a.Alert)
		of[a.runbook()] = a.Alert
		text := page(t, a.runbook())
		assert.Check(t, strings.Contains(text, "\nAlert `"+a.Alert+"`."), a.runbook())
		var sections []string
		for _, h := range regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(text, -1) {
			sections = append(sections, h[1])
		}
		assert.Check(t, slices.Equal(sections, []string{"Meaning", "Impact", "Diagnosis", "Mitigation"}), "%s: %q", a.runbook(), sections)
		diagnosis := text[strings.Index(text, "## Diagnosis"):]
		assert.Check(t, strings.Contains(diagnosis, "`kubectl ") || strings.Contains(diagnosis, "```sh\n"), "%s says nothing to type", a.runbook())
	}
	pages, err := filepath.Glob(inRepository(runbooks + "/*.md"))
	assert.NilError(t, err)
	for _, p := range pages {
		assert.Check(t, of[runbooks+"/"+filepath.Base(p)] != "", "%s belongs to no alert", p)
	}
	assert.Equal(t, len(pages), len(of))
}

// For each alert the unit tests, which promtool runs (dev/prometheus), have a case in which it fires and one in which it
// doesn't.
func TestAlertsAreTested(t *testing.T) {
	files, err := filepath.Glob(inRepository("monitoring/rules*_test.yaml"))
	assert.NilError(t, err)
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, f := range files {
		content, err := os.ReadFile(f)
		assert.NilError(t, err)
		var file struct {
			Tests []struct {
				Alerts []struct {
					Alert    string `yaml:"alertname"`
					Expected []any  `yaml:"exp_alerts"`
				} `yaml:"alert_rule_test"`
			}
		}
		assert.NilError(t, yaml.Unmarshal(content, &file))
		for _, test := range file.Tests {
			for _, a := range test.Alerts {
				fires[a.Alert] = fires[a.Alert] || len(a.Expected) > 0
				silent[a.Alert] = silent[a.Alert] || len(a.Expected) == 0
			}
		}
	}
	for _, a := range alerts(t) {
		assert.Check(t, fires[a.Alert] && silent[a.Alert], "%s: fires %v, doesn't fire %v", a.Alert, fires[a.Alert], silent[a.Alert])
	}
	assert.Equal(t, len(fires), len(alerts(t)), "an alert that there isn't is tested")
}
