package manifest

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gotest.tools/v3/assert"
)

// dashboard is what these tests read of a dashboard of Grafana.
type dashboard struct {
	UID           string `json:"uid"`
	Title         string `json:"title"`
	SchemaVersion int    `json:"schemaVersion"`
	Templating    struct {
		List []struct{ Name, Type, Query string } `json:"list"`
	} `json:"templating"`
	Panels []panel `json:"panels"`
}

type panel struct {
	ID          int    `json:"id"`
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	GridPos     struct{ X, Y, W, H int }
	Targets     []struct {
		Expr    string
		Instant bool
	}
	FieldConfig struct{ Defaults struct{ Unit string } }
}

// dashboards are those in monitoring, by their files' names, with the files' texts.
func dashboards(t *testing.T) (all map[string]dashboard, texts map[string]string) {
	t.Helper()
	files, err := filepath.Glob(inRepository("monitoring/dashboard-*.json"))
	assert.NilError(t, err)
	assert.Assert(t, len(files) >= 2)
	all, texts = map[string]dashboard{}, map[string]string{}
	for _, f := range files {
		name := filepath.Base(f)
		texts[name] = page(t, filepath.Join("monitoring", name))
		var d dashboard
		assert.NilError(t, json.Unmarshal([]byte(texts[name]), &d), name)
		all[name] = d
	}
	return all, texts
}

// Each panel of a dashboard asks for something, says what that means and in which unit, and has a place of its own.
func TestDashboardPanels(t *testing.T) {
	all, texts := dashboards(t)
	uids := map[string]bool{}
	for name, d := range all {
		assert.Assert(t, d.Title != "" && d.UID != "" && len(d.UID) <= 40 && !uids[d.UID], name)
		uids[d.UID] = true
		assert.Assert(t, d.SchemaVersion >= 39, name)
		assert.Equal(t, d.Templating.List[0].Name+" "+d.Templating.List[0].Type, "datasource datasource", name)
		own := strings.Count(texts[name], `"datasource": {"type": "prometheus", "uid": "${datasource}"}`)
		assert.Equal(t, strings.Count(texts[name], `"datasource":`), own, "%s: a Grafana has data sources of its own", name)
		for i, p := range d.Panels {
			g := p.GridPos
			assert.Check(t, g.W > 0 && g.H > 0 && g.X >= 0 && g.Y >= 0 && g.X+g.W <= 24, "%s: %q: %+v", name, p.Title, g)
			for _, o := range d.Panels[:i] {
				h := o.GridPos
				apart := g.X+g.W <= h.X || h.X+h.W <= g.X || g.Y+g.H <= h.Y || h.Y+h.H <= g.Y
				assert.Check(t, apart && p.ID != o.ID && p.Title != o.Title, "%s: %q and %q", name, o.Title, p.Title)
			}
			assert.Check(t, p.ID > 0 && p.Title != "", "%s: %d", name, p.ID)
			if p.Type == "row" {
				continue
			}
			assert.Check(t, strings.HasSuffix(p.Description, "."), "%s: %q says what it means", name, p.Title)
			assert.Check(t, p.FieldConfig.Defaults.Unit != "", "%s: %q has no unit", name, p.Title)
			assert.Check(t, len(p.Targets) > 0, "%s: %q asks for nothing", name, p.Title)
			for _, target := range p.Targets {
				assert.Check(t, target.Instant == (p.Type == "stat" || p.Type == "table"), "%s: %q shows a moment, or a time", name, p.Title)
			}
		}
	}
}

// What a panel names of this repository is there, and the fleet's dashboard leads to every runbook.
func TestDashboardLinks(t *testing.T) {
	_, texts := dashboards(t)
	runbooks, err := filepath.Glob(inRepository("docs/runbooks/*.md"))
	assert.NilError(t, err)
	assert.Assert(t, len(runbooks) > 0)
	for _, r := range runbooks {
		assert.Check(t, strings.Contains(texts["dashboard-fleet.json"], "/docs/runbooks/"+filepath.Base(r)+`"`), r)
	}
	for name, text := range texts {
		links := regexp.MustCompile(`/blob/main/([^"]+)`).FindAllStringSubmatch(text, -1)
		assert.Assert(t, len(links) > 0, name)
		for _, m := range links {
			assert.Check(t, leadsNowhere(t, m[1]) == "", "%s: %s: %s", name, m[1], leadsNowhere(t, m[1]))
		}
	}
}

// documentedMetrics are the metrics of docs/reference/metrics.md with their labels, and the one of alerts.
func documentedMetrics(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	row := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([^|]*) \\|")
	for _, table := range []string{Controller, Proxy, Runner, Agent, "all"} {
		for _, m := range row.FindAllStringSubmatch(between(t, metricsPage, "metrics:"+table), -1) {
			all[m[1]] = strings.FieldsFunc(m[2], func(r rune) bool { return strings.ContainsRune("`, ", r) })
		}
	}
	assert.Assert(t, len(all) > 30)
	// Prometheus has this one of its own.
	all["ALERTS"] = []string{"alertname", "alertstate", "severity"}
	return all
}

// scraped are the labels that the scraping Prometheus puts on, whatever the pod; see docs/monitoring.md.
var scraped = []string{"node", "pod"}

var (
	quoted = regexp.MustCompile(`"[^"]*"`)
	// asked is a metric's name, with what is asked of its labels.
	asked   = regexp.MustCompile(`\b((?:bottlerocket|brupop)_[a-z_]+|ALERTS)(?:\{([^}]*)\})?`)
	grouped = regexp.MustCompile(`\b(?:by|on|without|ignoring|group_left|group_right) ?\(([^)]*)\)`)
	matched = regexp.MustCompile(`([a-z_]+) *(?:=~|!=|!~|=)`)
	ranged  = regexp.MustCompile(`\[[^\]]*\]`)
	word    = regexp.MustCompile(`[A-Za-z_]\w*\b(\s*\()?`)
	// variable is one of Grafana's.
	variable = regexp.MustCompile(`\$\{?([A-Za-z_]+)`)
)

// strangers are the names in an expression that no metric has, or no label of the metrics in it.
func strangers(expr string, metrics map[string][]string) []string {
	var out []string
	expr = quoted.ReplaceAllString(expr, `""`)
	labels := slices.Clone(scraped)
	for _, m := range asked.FindAllStringSubmatch(expr, -1) {
		of, known := metrics[m[1]]
		for _, suffix := range []string{"_bucket", "_count", "_sum"} {
			if base, is := strings.CutSuffix(m[1], suffix); is && !known && strings.HasSuffix(base, "_seconds") {
				of, known = metrics[base]
				of = append(slices.Clone(of), "le")
			}
		}
		if !known {
			out = append(out, m[1])
		}
		for _, l := range matched.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(of, l[1]) && !slices.Contains(scraped, l[1]) {
				out = append(out, m[1]+"{"+l[1]+"}")
			}
		}
		labels = append(labels, of...)
	}
	for _, m := range grouped.FindAllStringSubmatch(expr, -1) {
		for _, l := range strings.FieldsFunc(m[1], func(r rune) bool { return r == ',' || r == ' ' }) {
			if !slices.Contains(labels, l) {
				out = append(out, l)
			}
		}
	}
	// What is left are functions, operators and numbers.
	for _, p := range []*regexp.Regexp{asked, grouped, ranged} {
		expr = p.ReplaceAllString(expr, " ")
	}
	for _, m := range word.FindAllStringSubmatch(expr, -1) {
		if m[1] == "" && !slices.Contains([]string{"and", "or", "unless", "bool", "offset"}, m[0]) {
			out = append(out, m[0])
		}
	}
	return out
}

// A dashboard asks for nothing but metrics and labels that docs/reference/metrics.md has, and with few variables of
// Grafana's.
func TestDashboardQueries(t *testing.T) {
	metrics := documentedMetrics(t)
	for expr, want := range map[string]string{
		`sum by (phase) (max by (phase, pod) (bottlerocket_update_controller_nodes{phase=~"A|B", node="$node"}[5m])) or on() vector(1)`: "",
		"histogram_quantile(0.5, sum by (le) (rate(bottlerocket_update_controller_phase_duration_seconds_bucket[$__range])))":           "",
		"bottlerocket_update_controller_node":                "bottlerocket_update_controller_node",
		"bottlerocket_update_controller_nodes_count":         "bottlerocket_update_controller_nodes_count",
		`brupop_hosts_state{version="1"}`:                    "brupop_hosts_state{version}",
		"sum by (version, zone) (brupop_hosts_state)":        "version zone",
		"up - brupop_hosts_state":                            "up",
		"max by (le) (bottlerocket_update_controller_nodes)": "le",
	} {
		assert.Equal(t, strings.Join(strangers(expr, metrics), " "), want, expr)
	}
	all, _ := dashboards(t)
	for name, d := range all {
		known := []string{"__rate_interval", "__range"}
		ask := func(of, expr string) {
			assert.Check(t, len(strangers(expr, metrics)) == 0, "%s: %q: %s: %s", name, of, expr, strangers(expr, metrics))
			for _, v := range variable.FindAllStringSubmatch(expr, -1) {
				assert.Check(t, slices.Contains(known, v[1]), "%s: %q: $%s", name, of, v[1])
			}
		}
		for _, v := range d.Templating.List[1:] {
			inner := regexp.MustCompile(`^label_values\((.*), ([a-z_]+)\)$`).FindStringSubmatch(v.Query)
			assert.Assert(t, v.Type == "query" && inner != nil, "%s: %s", name, v.Query)
			ask(v.Name, "max by ("+inner[2]+") ("+inner[1]+")")
			known = append(known, v.Name)
		}
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				ask(p.Title, target.Expr)
			}
		}
	}
}
