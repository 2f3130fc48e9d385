package manifest

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"gotest.tools/v3/assert"
	"gotest.tools/v3/golden"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/authorizer"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/controller"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/runner"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

// The pages that hold what the code says too.
const (
	readmePage      = "README.md"
	flagsPage       = "docs/reference/flags.md"
	annotationsPage = "docs/reference/annotations.md"
	reasonsPage     = "docs/reference/reasons.md"
	metricsPage     = "docs/reference/metrics.md"
	designPage      = "docs/design.md"
	operationsPage  = "docs/operations.md"
	monitoringPage  = "docs/monitoring.md"
	uninstallPage   = "docs/uninstall.md"
)

// inRepository is where a file of this checkout is.
func inRepository(name string) string { return filepath.Join(filepath.Dir(must(Path())), name) }

// page returns the text of a page.
func page(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(inRepository(name))
	assert.NilError(t, err)
	return string(content)
}

// between returns what stands between the markers of a table.
func between(t *testing.T, of, name string) string {
	t.Helper()
	_, rest, ok := strings.Cut(page(t, of), "<!-- "+name+":begin -->\n")
	assert.Assert(t, ok, "%s has no begin of %s", of, name)
	table, _, ok := strings.Cut(rest, "<!-- "+name+":end -->")
	assert.Assert(t, ok, "%s has no end of %s", of, name)
	return table
}

// same compares a table that the code can write itself, or writes it with -update.
func same(t *testing.T, of, name, want string) {
	t.Helper()
	got := between(t, of, name)
	if got != want && golden.FlagUpdate() {
		begin := "<!-- " + name + ":begin -->\n"
		assert.NilError(t, os.WriteFile(inRepository(of), []byte(strings.Replace(page(t, of), begin+got, begin+want, 1)), 0o644))
		return
	}
	assert.Equal(t, got, want, "run go test ./dev/manifest -run TestDocs -update: the table %s in %s is old", name, of)
}

func TestDocsAnnotations(t *testing.T) {
	var b strings.Builder
	b.WriteString("| key | kind | writer | meaning |\n|---|---|---|---|\n")
	for _, e := range marker.Table() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", e.Key, e.Kind, e.Writer, e.Meaning)
	}
	same(t, annotationsPage, "keys", b.String())
}

func TestDocsFlags(t *testing.T) {
	c, p, a, r := controller.DefaultOptions(), authorizer.DefaultOptions(), agent.DefaultOptions(), runner.DefaultOptions()
	for name, add := range map[string]func(*flag.FlagSet){Controller: c.AddFlags, Proxy: p.AddFlags, Agent: a.AddFlags, "runner": r.AddFlags} {
		t.Run(name, func(t *testing.T) {
			fs := flag.NewFlagSet(name, flag.ContinueOnError)
			add(fs)
			var b strings.Builder
			b.WriteString("| flag | variable | default | meaning |\n|---|---|---|---|\n")
			fs.VisitAll(func(f *flag.Flag) {
				value := plain(f.DefValue)
				if value != "" {
					value = "`" + value + "`"
				}
				fmt.Fprintf(&b, "| `-%s` | `%s` | %s | %s |\n", f.Name, telemetry.Variable(f.Name), value, f.Usage)
			})
			same(t, flagsPage, "flags:"+name, b.String())
		})
	}
}

var zeroes = regexp.MustCompile(`^(\d+h)?(\d+m)?0s$`)

// plain writes 45m for 45m0s and 24h for 24h0m0s.
func plain(duration string) string {
	if !zeroes.MatchString(duration) || duration == "0s" {
		return duration
	}
	duration = strings.TrimSuffix(duration, "0s")
	if strings.HasSuffix(duration, "h0m") {
		duration = strings.TrimSuffix(duration, "0m")
	}
	return duration
}

// described is a registry that only notes what each metric says of itself.
type described struct {
	prometheus.Registerer
	text []string
}

func (d *described) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		descriptions := make(chan *prometheus.Desc)
		go func() {
			c.Describe(descriptions)
			close(descriptions)
		}()
		for desc := range descriptions {
			d.text = append(d.text, desc.String())
		}
	}
}

var description = regexp.MustCompile(`^Desc{fqName: "(.*)", help: "(.*)", unit: "", constLabels: {(.*)}, variableLabels: {(.*)}}$`)

func TestDocsMetrics(t *testing.T) {
	for name, register := range map[string]func(prometheus.Registerer){
		Controller: func(r prometheus.Registerer) { controller.NewMetrics(r, true) },
		Proxy:      func(r prometheus.Registerer) { authorizer.NewMetrics(r) },
		Agent:      func(r prometheus.Registerer) { agent.NewMetrics().Register(r) },
		"runner":   func(r prometheus.Registerer) { runner.NewMetrics(r) },
		"all":      func(r prometheus.Registerer) { telemetry.RegisterBuildInfo(r, "") },
	} {
		t.Run(name, func(t *testing.T) {
			var all described
			register(&all)
			var b strings.Builder
			b.WriteString("| metric | labels | meaning |\n|---|---|---|\n")
			for _, text := range all.text {
				part := description.FindStringSubmatch(text)
				assert.Assert(t, part != nil, text)
				var labels []string
				for _, l := range strings.FieldsFunc(part[3]+","+part[4], func(r rune) bool { return r == ',' }) {
					labels = append(labels, "`"+strings.Split(l, "=")[0]+"`")
				}
				fmt.Fprintf(&b, "| `%s` | %s | %s |\n", part[1], strings.Join(labels, ", "), part[2])
			}
			same(t, metricsPage, "metrics:"+name, b.String())
		})
	}
}

// firsts returns what the rows of a table have in their first column.
func firsts(t *testing.T, of, name string) []string {
	t.Helper()
	var out []string
	for i, row := range strings.Split(strings.TrimSpace(between(t, of, name)), "\n") {
		if i < 2 {
			continue
		}
		cells := strings.Split(row, "|")
		assert.Assert(t, len(cells) > 3 && strings.TrimSpace(cells[2]) != "", row)
		out = append(out, strings.Trim(strings.TrimSpace(cells[1]), "`"))
	}
	return out
}

// Every reason is explained, where it belongs, and no other one.
func TestDocsReasons(t *testing.T) {
	var waits, steps []string
	for _, r := range plan.Reasons() {
		if r.Waits() || r == plan.ReasonUpToDate {
			waits = append(waits, string(r))
		} else {
			steps = append(steps, string(r))
		}
	}
	assert.DeepEqual(t, firsts(t, reasonsPage, "waits"), waits)
	assert.DeepEqual(t, firsts(t, reasonsPage, "steps"), steps)
}

func TestDocsPhases(t *testing.T) {
	var want []string
	for _, p := range intent.Phases() {
		want = append(want, string(p))
	}
	assert.DeepEqual(t, firsts(t, operationsPage, "phases"), want)
}

func TestDocsActs(t *testing.T) {
	var b strings.Builder
	b.WriteString("| act | in the phases | new intent | next phase |\n|---|---|---|---|\n")
	for _, t := range intent.Transitions() {
		var from []string
		for _, p := range t.From {
			from = append(from, string(p))
		}
		action := string(t.Issues)
		if action != "" {
			action = "`" + action + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", t.Act, strings.Join(from, ", "), action, t.To)
	}
	same(t, designPage, "acts", b.String())
}

// pages are all documents of this repository.
func pages(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(inRepository(pattern))
		assert.NilError(t, err)
		for _, f := range found {
			name, err := filepath.Rel(inRepository(""), f)
			assert.NilError(t, err)
			all = append(all, name)
		}
	}
	assert.Assert(t, len(all) > 10)
	return all
}

var (
	fenced  = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	link    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	shown   = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	// cited is how code names a page.
	cited = regexp.MustCompile(`\bdocs/[a-z/-]+\.(?:md|yaml|json)(?:#[a-z0-9-]+)?`)
)

// leadsNowhere says what is wrong with a link to a file of this repository, to a heading of it if it names one.
func leadsNowhere(t *testing.T, target string) string {
	t.Helper()
	file, anchor, _ := strings.Cut(target, "#")
	if _, err := os.Stat(inRepository(file)); err != nil {
		return "no such file"
	}
	if anchor == "" {
		return ""
	}
	for _, h := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(page(t, file), ""), -1) {
		if strings.ReplaceAll(shown.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-") == anchor {
			return ""
		}
	}
	return "no such heading"
}

// Every link of a page to another one, and every page that the code names, is there.
func TestDocsLinks(t *testing.T) {
	for _, of := range pages(t) {
		for _, l := range link.FindAllStringSubmatch(fenced.ReplaceAllString(page(t, of), ""), -1) {
			target := l[1]
			switch {
			case strings.Contains(target, "://"):
				continue
			case strings.HasPrefix(target, "#"):
				target = of + target
			default:
				target = filepath.Join(filepath.Dir(of), target)
			}
			assert.Check(t, leadsNowhere(t, target) == "", "%s: %s: %s", of, l[1], leadsNowhere(t, target))
		}
	}
	assert.NilError(t, filepath.WalkDir(inRepository(""), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == ".git" || d.Name() == "bin" || d.Name() == "dist") {
			return filepath.SkipDir
		}
		if ext := filepath.Ext(path); err != nil || ext != ".go" && ext != ".yaml" && ext != ".sh" {
			return err
		}
		content, err := os.ReadFile(path)
		for _, target := range cited.FindAllString(string(content), -1) {
			assert.Check(t, leadsNowhere(t, target) == "", "%s: %s: %s", path, target, leadsNowhere(t, target))
		}
		return err
	}))
}

// What a newcomer reads first is read in some minutes.
func TestReadmeIsShort(t *testing.T) {
	assert.Assert(t, strings.Count(page(t, readmePage), "\n") <= 150)
}

// Every target of make that a page or a script names is there, and the lanes take as long as the Makefile says.
func TestDocsTargets(t *testing.T) {
	targets := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`).FindAllStringSubmatch(page(t, "Makefile"), -1) {
		targets[m[1]] = true
	}
	for lane, time := range map[string]string{"make check": "in a minute", "make test": "in 10 minutes", "make evidence": "for hours", ".ci/run": "30 minutes"} {
		says := page(t, ".ci/run")
		if target, ok := strings.CutPrefix(lane, "make "); ok {
			says = regexp.MustCompile("(?m)^" + target + ":.*$").FindString(page(t, "Makefile"))
		}
		assert.Check(t, strings.Contains(says, time), "%s: %s", lane, says)
		row := regexp.MustCompile("(?m)^\\| `" + regexp.QuoteMeta(lane) + "`.*$").FindString(page(t, filepath.Join("docs", "development.md")))
		assert.Check(t, strings.Contains(row, time), "%s: %s", lane, row)
	}
	for _, of := range append(pages(t), ".ci/run", "dev/evidence.sh") {
		for _, m := range regexp.MustCompile(`go (?:test|run)[^\n]*? \./([a-z][a-z0-9/-]*)`).FindAllStringSubmatch(page(t, of), -1) {
			_, err := os.Stat(inRepository(m[1]))
			assert.Check(t, err, "%s: go test or run ./%s", of, m[1])
		}
		for _, m := range regexp.MustCompile("(?m)(?:^|`|step |' )make((?: [a-z][a-z0-9-]*)+)").FindAllStringSubmatch(page(t, of), -1) {
			for _, target := range strings.Fields(m[1]) {
				assert.Check(t, targets[target], "%s: make %s", of, target)
			}
		}
	}
}
