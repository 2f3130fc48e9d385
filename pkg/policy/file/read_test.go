package file

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.yaml.in/yaml/v3"
	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// What anchors multiply comes to an end, also where the YAML decoder doesn't look, because a field is there twice.
func TestAnchorsThatMultiply(t *testing.T) {
	_, err := Decode([]byte("version: 1\nversion: 1\ngroups:\n- &g {name: a, nodeSelector: {}, after: ["+strings.Repeat("b,", 10000)+"]}\n"+strings.Repeat("- *g\n", 1000)),
		policy.DefaultSettings(), time.LoadLocation)
	assert.DeepEqual(t, Lines(err), []string{"the policy can't be read as YAML: document contains excessive aliasing",
		"line 2: version is there already, in line 1: keep one of them"})
}

// all has every kind of value that the reader leaves to the YAML decoder.
type all struct {
	Number int               `yaml:"number"`
	Truth  bool              `yaml:"truth"`
	Text   string            `yaml:"text"`
	Texts  []string          `yaml:"texts"`
	Labels map[string]string `yaml:"labels"`
	Part   *inner            `yaml:"part"`
	Parts  []inner           `yaml:"parts"`
	inner  `yaml:",inline"`
}

type inner struct {
	Count int      `yaml:"count"`
	Names []string `yaml:"names"`
	Below *struct {
		Name  string `yaml:"name"`
		Names []int  `yaml:"names"`
	} `yaml:"below"`
}

// FuzzReader holds that the reader finds a mistake where the YAML decoder would refuse a field or a value, and none
// elsewhere, and that both read the same.
func FuzzReader(f *testing.F) {
	f.Add(string(byDefault))
	for _, text := range []string{"", "~", "[]", "number", "number: 1\nnumber: 1", "? [a]\n: 1", "~: 1", "true: 1\n1: 2",
		"a: &a {text: 1m}\n<<: *a", "part: &p {count: 1}\nparts: [{below: {names: [1, ~, 2], name: b}}, *p, ~]\nlabels: {a: ~, b: 1}",
		"below: &d {name: 1h, names: [~, 7]}\nparts:\n- &g {count: 1, below: {<<: *d, name: 2h}}\n- {<<: [*g, *d], count: 3}",
		"parts: &g\n- {count: 1, <<: *g}", "parts: [&g {count: 1}, &h {count: 2}, {<<: [*g, *h]}]", "count: 1\ncount: 1\nparts: [&g {count: 1, <<: *g}]", "count: 1\ncount: 1\nparts: &g\n- {<<: *g}", "text: !!null 1m",
		"number: 1.0\ntruth: yes\ntext: 0", "part: null\nparts: []\nnames: [a, 1, ~]\ncount: 0x1", "number: !!int many", "&a text: x\n*a : y", "text: !!binary aGk=",
		"text: 2026-01-02T00:00:00Z\nlabels: {<<: {a: b}, c: d}", "labels: [a]\ntexts: {a: b}\npart: 5\nparts: [7]\ntruth: maybe\nnumber: [1]"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var root yaml.Node
		if yaml.Unmarshal([]byte(text), &root) != nil || root.Kind == 0 {
			// What is no YAML has no nodes to read.
			return
		}
		var got, strict all
		r := newReader(&policy.Settings{}, nil)
		if r.tidy(root.Content[0], ""); r.whole(&root) {
			r.read(root.Content[0], reflect.ValueOf(&got).Elem(), nil, "")
		}
		decoder := yaml.NewDecoder(bytes.NewReader([]byte(text)))
		decoder.KnownFields(true)
		if refused := decoder.Decode(&strict); refused != nil {
			assert.Assert(t, len(r.mistakes) > 0, "it reads what the decoder refuses: %s", refused)
			return
		}
		for _, m := range r.mistakes {
			assert.Assert(t, strings.Contains(m.Says, "has a key that is no text"), "the decoder takes it: %s", m)
		}
		if len(r.mistakes) > 0 {
			// An alias as a key.
			return
		}
		assert.DeepEqual(t, got, strict, cmp.AllowUnexported(all{}), cmpopts.EquateEmpty())
	})
}
