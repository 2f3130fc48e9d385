package file

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"gotest.tools/v3/assert"
)

// What anchors multiply comes to an end, also where the YAML decoder doesn't look, because a field is there twice.
func TestAnchorsThatMultiply(t *testing.T) {
	text := "version: 1\nversion: 1\ngroups:\n- &g {name: a, nodeSelector: {}, after: [" + strings.Repeat("b,", 10000) + "]}\n" + strings.Repeat("- *g\n", 1000)
	var root yaml.Node
	assert.NilError(t, yaml.Unmarshal([]byte(text), &root))
	r := newReader()
	r.document(&root)
	assert.Assert(t, slices.ContainsFunc(r.mistakes, func(m Mistake) bool { return strings.Contains(m.Says, "write it out") }))
}

// FuzzReader holds that the reader finds a mistake where the YAML decoder would refuse a field or a value, and none but
// that something is missing elsewhere, and that both read the same.
func FuzzReader(f *testing.F) {
	f.Add(string(byDefault))
	for _, text := range []string{"", "~", "[]", "version", "version: 1\nversion: 1", "? [a]\n: 1", "~: 1", "true: 1\n1: 2",
		"a: &a {soak: 1m}\n<<: *a", "pause: &p {reason: x}\ngroups: [{name: a, nodeSelector: {matchLabels: {a: ~, b: 1}}, pause: *p}, ~]",
		"drain: &d {timeout: 1h, leave: [~, {namespace: a}]}\ngroups:\n- &g {name: a, drain: {<<: *d, timeout: 2h}}\n- {<<: [*g, *d], name: b}",
		"groups: &g\n- {name: a, <<: *g}", "version: 1\nversion: 1\ngroups: [&g {name: a, <<: *g}]", "version: 1\nversion: 1\ngroups: &g\n- {<<: *g}", "soak: !!null 1m", "maxStaging: 1.0\nfitWindow: yes\nsoak: 0", "windows: null\nfreezes: []\ntopology: [{maxDomains: 0x1}]",
		"verify: {pods: [{podSelector: {matchExpressions: [{key: a, operator: In, values: [1, ~, b]}]}}]}", "alerts: {ignore: ['a', b]}\nversions: {allow: '', deny: 1.x}",
		"freezes: [{from: 2026-01-02T00:00:00Z, to: 2026-01-01}]\nsingleNode: allow", "hooks: {afterDrain: [{name: a, onTimeout: stop}]}"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var root yaml.Node
		if yaml.Unmarshal([]byte(text), &root) != nil || root.Kind == 0 {
			// What is no YAML has no nodes to read.
			return
		}
		r := newReader()
		got := r.document(&root)
		var strict document
		decoder := yaml.NewDecoder(bytes.NewReader([]byte(text)))
		decoder.KnownFields(true)
		if refused := decoder.Decode(&strict); refused != nil {
			assert.Assert(t, len(r.mistakes) > 0, "it reads what the decoder refuses: %s", refused)
			return
		}
		for _, m := range r.mistakes {
			assert.Assert(t, strings.Contains(m.Says, " is missing: "), "the decoder takes it: %s", m)
		}
		assert.DeepEqual(t, *got, strict, cmp.Exporter(func(reflect.Type) bool { return true }),
			cmp.Comparer(func(a, b versionRange) bool { return a.text == b.text && (a.set == nil) == (b.set == nil) }))
	})
}
