package manifest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/authorizer"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/controller"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

func readme(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(filepath.Dir(must(Path())), "README.md"))
	assert.NilError(t, err)
	return string(content)
}

// between returns what stands between the markers of a table.
func between(t *testing.T, text, name string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, "<!-- "+name+":begin -->\n")
	assert.Assert(t, ok, "README.md has no begin of %s", name)
	table, _, ok := strings.Cut(rest, "<!-- "+name+":end -->")
	assert.Assert(t, ok, "README.md has no end of %s", name)
	return table
}

var update = flag.Bool("update-readme", false, "write the tables that the code can write into README.md")

// same compares a table that the code can write itself.
func same(t *testing.T, name, want string) {
	t.Helper()
	text := readme(t)
	got := between(t, text, name)
	if got == want {
		return
	}
	if !*update {
		t.Errorf("run go test ./dev/manifest -update-readme: the table %s in README.md should be:\n%s", name, want)
		return
	}
	begin := "<!-- " + name + ":begin -->\n"
	path := filepath.Join(filepath.Dir(must(Path())), "README.md")
	assert.NilError(t, os.WriteFile(path, []byte(strings.Replace(text, begin+got, begin+want, 1)), 0o644))
}

func TestReadmeKeys(t *testing.T) {
	var b strings.Builder
	b.WriteString("| key | kind | writer | meaning |\n|---|---|---|---|\n")
	for _, e := range marker.Table() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", e.Key, e.Kind, e.Writer, e.Meaning)
	}
	same(t, "keys", b.String())
}

func TestReadmeFlags(t *testing.T) {
	c, p, a := controller.DefaultOptions(), authorizer.DefaultOptions(), agent.DefaultOptions()
	for name, add := range map[string]func(*flag.FlagSet){Controller: c.AddFlags, Proxy: p.AddFlags, Agent: a.AddFlags} {
		t.Run(name, func(t *testing.T) {
			fs := flag.NewFlagSet(name, flag.ContinueOnError)
			add(fs)
			var b strings.Builder
			b.WriteString("| flag | default | meaning |\n|---|---|---|\n")
			fs.VisitAll(func(f *flag.Flag) {
				value := plain(f.DefValue)
				if value != "" {
					value = "`" + value + "`"
				}
				fmt.Fprintf(&b, "| `-%s` | %s | %s |\n", f.Name, value, f.Usage)
			})
			same(t, "flags:"+name, b.String())
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

// firsts returns what the rows of a table have in their first column.
func firsts(t *testing.T, name string) []string {
	t.Helper()
	var out []string
	for i, row := range strings.Split(strings.TrimSpace(between(t, readme(t), name)), "\n") {
		if i < 2 {
			continue
		}
		cells := strings.Split(row, "|")
		assert.Assert(t, len(cells) > 3 && strings.TrimSpace(cells[2]) != "", row)
		out = append(out, strings.Trim(strings.TrimSpace(cells[1]), "`"))
	}
	return out
}

func TestReadmeReasons(t *testing.T) {
	var want []string
	for _, r := range plan.Reasons() {
		want = append(want, string(r))
	}
	assert.DeepEqual(t, firsts(t, "reasons"), want)
}

func TestReadmePhases(t *testing.T) {
	var want []string
	for _, p := range intent.Phases() {
		want = append(want, string(p))
	}
	assert.DeepEqual(t, firsts(t, "phases"), want)
}

// Every target of make that the README names is there.
func TestReadmeTargets(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(filepath.Dir(must(Path())), "Makefile"))
	assert.NilError(t, err)
	targets := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`).FindAllStringSubmatch(string(makefile), -1) {
		targets[m[1]] = true
	}
	named := regexp.MustCompile("(?m)(?:^|`)make((?: [a-z][a-z0-9-]*)+)").FindAllStringSubmatch(readme(t), -1)
	assert.Assert(t, len(named) > 3)
	for _, m := range named {
		for _, target := range strings.Fields(m[1]) {
			assert.Check(t, targets[target], "make %s", target)
		}
	}
}
