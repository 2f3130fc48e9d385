package file

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"go.yaml.in/yaml/v3"
	"gotest.tools/v3/assert"
	"gotest.tools/v3/golden"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

const schemaFile = "../../../docs/policy.schema.json"

// docs/policy.schema.json has the fields, types and words of the decoder, and of each field what docs/policy.md says of
// it. With -update it is written anew.
func TestSchemaIsTheDecoders(t *testing.T) {
	s := schema{documented: documented(t)}
	assert.NilError(t, yaml.Unmarshal(byDefault, &s.example))
	root := s.of(reflect.TypeFor[document](), nil, "")
	root["type"] = "object"
	root["$schema"] = "http://json-schema.org/draft-07/schema#"
	root["title"] = "Policy of the Bottlerocket update operator"
	place, err := filepath.Abs(schemaFile)
	assert.NilError(t, err)
	golden.Assert(t, printed(t, root, "\n")+"\n", place)
}

// printed has a line for each field of the policy.
func printed(t *testing.T, v any, newline string) string {
	t.Helper()
	o, is := v.(object)
	if is && slices.ContainsFunc(slices.Collect(maps.Values(o)), func(v any) bool { _, nested := v.(object); return nested }) {
		var members []string
		for _, name := range slices.Sorted(maps.Keys(o)) {
			members = append(members, fmt.Sprintf("%s %q: %s", newline, name, printed(t, o[name], newline+" ")))
		}
		return "{" + strings.Join(members, ",") + newline + "}"
	}
	line, err := json.Marshal(v)
	assert.NilError(t, err)
	return string(line)
}

// schema is made from the types that the decoder reads into.
type schema struct {
	documented map[string][2]string
	example    map[string]any
}

type object = map[string]any

func (s *schema) of(t reflect.Type, words []string, at string) object {
	_, isValue := newValues(nil)[t]
	switch {
	case t == reflect.TypeFor[policy.Selector]():
		t = reflect.TypeFor[selector]()
	case t.Kind() == reflect.Pointer && !isValue:
		t = t.Elem()
	}
	// What is null isn't there, so every field may be; its type is the last one.
	made := object{}
	switch {
	case len(words) > 0 && t.Kind() != reflect.Slice:
		var known []any
		for _, w := range words {
			word, _, _ := strings.Cut(w, "=")
			known = append(known, word)
			if word == "true" || word == "false" {
				// An editor takes the word for a truth.
				known = append(known, word == "true")
			}
		}
		made["anyOf"] = []any{object{"enum": known}, object{"type": "null"}}
	case t == reflect.TypeFor[policy.Limit]():
		made["type"], made["minimum"] = []any{"integer", "string", "null"}, 0
		made["pattern"] = `^(unlimited|[0-9]+|0*(100|[0-9]{1,2})%)$`
	case t == reflect.TypeFor[time.Duration]():
		// The one number that is a duration is 0.
		made["type"], made["minimum"], made["maximum"] = []any{"string", "integer", "null"}, 0, 0
		made["pattern"] = `^[-+]?(0|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$`
	case t == reflect.TypeFor[time.Time]():
		made["type"], made["pattern"] = []any{"string", "null"}, `^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{1,2}:[0-9]{2}:[0-9]{2}([.,][0-9]+)?(Z|[-+][0-9]{2}:[0-9]{2})$`
	case isValue, t.Kind() == reflect.String:
		made["type"] = []any{"string", "number", "boolean", "null"}
	case t.Kind() == reflect.Bool:
		made["type"] = []any{"boolean", "null"}
	case t.Kind() == reflect.Int:
		made["type"] = []any{"integer", "null"}
	case t.Kind() == reflect.Slice:
		made["type"], made["items"] = []any{"array", "null"}, s.of(t.Elem(), words, at+"[]")
	case t.Kind() == reflect.Map:
		made["type"], made["additionalProperties"] = []any{"object", "null"}, s.of(t.Elem(), nil, at+".*")
	default:
		s.mapping(made, t, at)
	}
	if at == "version" {
		made["enum"] = []any{Version}
	}
	field := at
	if _, has := s.documented[at]; !has {
		field = strings.TrimPrefix(at, "groups[].")
	}
	if says, has := s.documented[field]; has {
		made["description"] = strings.ReplaceAll(says[1], "`", "")
	}
	if value, has := byPath(s.example, at); has {
		made["default"] = value
	}
	return made
}

func (s *schema) mapping(made object, t reflect.Type, at string) {
	properties, needed := object{}, []any{}
	for _, f := range fieldsOf(t) {
		p := s.of(t.FieldByIndex(f.index).Type, f.words, below(at, f.name))
		if f.need != "" {
			needed = append(needed, f.name)
			if types, several := p["type"].([]any); several {
				p["type"] = types[:len(types)-1]
			}
			if of, several := p["anyOf"].([]any); several {
				p["anyOf"] = of[:1]
			}
			if types, ok := p["type"].([]any); ok && types[0] == "string" && p["pattern"] == nil {
				p["minLength"] = 1
			}
		}
		properties[f.name] = p
	}
	made["type"], made["properties"], made["additionalProperties"] = []any{"object", "null"}, properties, false
	if len(needed) > 0 {
		made["required"] = needed
	}
}

// byPath finds the default of a field that is one value.
func byPath(tree map[string]any, field string) (any, bool) {
	first, rest, deeper := strings.Cut(field, ".")
	if below, is := tree[first].(map[string]any); is && deeper {
		return byPath(below, rest)
	}
	value, has := tree[first]
	_, list := value.([]any)
	_, mapping := value.(map[string]any)
	return value, has && !deeper && !list && !mapping && value != nil && first != "version"
}

// validator is of the schema as it stands in docs.
func validator(t *testing.T) *validate.SchemaValidator {
	t.Helper()
	content, err := os.ReadFile(schemaFile)
	assert.NilError(t, err)
	var s spec.Schema
	assert.NilError(t, json.Unmarshal(content, &s))
	return validate.NewSchemaValidator(&s, nil, "policy", strfmt.Default)
}

// seen is a policy as an editor sees it: a time is a text.
func seen(t *testing.T, text string) any {
	t.Helper()
	var root yaml.Node
	assert.NilError(t, yaml.Unmarshal([]byte(text), &root))
	var times func(n *yaml.Node)
	times = func(n *yaml.Node) {
		if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!timestamp" {
			n.Tag = "!!str"
		}
		for _, c := range n.Content {
			times(c)
		}
	}
	times(&root)
	var value any
	assert.NilError(t, root.Decode(&value))
	asJSON, err := json.Marshal(value)
	assert.NilError(t, err)
	assert.NilError(t, json.Unmarshal(asJSON, &value))
	return value
}

// What the decoder takes the schema takes: the example, what is in comments there, and what each field may be.
func TestSchemaTakesWhatIsGood(t *testing.T) {
	v := validator(t)
	for name, text := range map[string]string{
		"the example": string(byDefault), "the examples in its comments": uncommented(), "no more than a version": "version: 1\n",
		"budgets":   "version: 1\nmaxUnavailable: 25%\nmaxLost: 0\nmaxFailed: unlimited\ntopology: [{key: zone, maxUnavailable: 100%}, {key: rack, maxDomains: 2}]\n",
		"durations": "version: 1\nsoak: 0\nignoreAfter: 1h30m\npauseAfterUncordon: 1.5h\nretry: {base: 500ms}\n",
		"nothing":   "version: 1\nmaxUnavailable: null\nsoak: null\nwindows: null\ndrain: null\nsingleNode: null\ngroups: null\nversions: {allow: null, hold: null}\n",
		"texts":     "version: 1\nversions: {allow: 1.27}\ngroups: [{name: 1, nodeSelector: {matchLabels: {gpu: true, rack: 4}}, autoscalers: ignore}]\n",
		"selectors": "version: 1\nverify: {pods: [{podSelector: {matchExpressions: [{key: a, operator: NotIn, values: [b]}, {key: c, operator: Exists}]}}]}\n",
		"plans": "version: 1\nplans:\n- {name: a, nodeSelector: {}, apply: a, target: {version: 1.30}, proof: osImage, effect: none, drain: false, deadline: 90s}\n" +
			"- {name: b, nodeSelector: {}, apply: b, target: {content: true}, proof: content, effect: reboot, drain: true}\n" +
			"- {name: c, nodeSelector: {}, apply: c, target: {content: true}, proof: content, effect: reboot, drain: 'true'}\n" +
			"- {name: d, nodeSelector: {}, apply: d, target: {channel: https://a}, proof: kubeletVersion, effect: restart, drain: cordon, maxMinorSkip: 1}\n",
		"the example of README.md": written(t, "../../../README.md"), "the example of docs/policy.md": written(t, "../../../docs/policy.md"),
	} {
		_, err := Decode([]byte(text), policy.DefaultSettings(), time.LoadLocation)
		assert.Check(t, err == nil, "%s: the decoder refuses it: %v", name, err)
		for _, e := range v.Validate(seen(t, text)).Errors {
			t.Errorf("%s: %v", name, e)
		}
	}
}

// written is the policy that a page shows.
func written(t *testing.T, page string) string {
	t.Helper()
	content, err := os.ReadFile(page)
	assert.NilError(t, err)
	for _, block := range strings.Split(string(content), "```yaml\n")[1:] {
		if text, _, _ := strings.Cut(block, "```"); strings.Contains(text, "version: 1\n") {
			return text
		}
	}
	t.Fatalf("%s shows no policy", page)
	return ""
}

var (
	commented = regexp.MustCompile(`^( *)#   (.*)`)
	isEmpty   = regexp.MustCompile(`^( *\w+:) (\[\]|null)$`)
)

// uncommented is the example with what its comments give as examples of single fields.
func uncommented() string {
	var out, pending []string
	for line := range strings.Lines(string(byDefault)) {
		line = strings.TrimRight(line, "\n")
		example, empty := commented.FindStringSubmatch(line), isEmpty.FindStringSubmatch(line)
		switch {
		case example != nil:
			pending = append(pending, example[1]+"  "+example[2])
		case strings.HasPrefix(strings.TrimSpace(line), "#"):
		case empty != nil && len(pending) > 0:
			out, pending = append(append(out, empty[1]), pending...), nil
		default:
			out, pending = append(out, line), nil
		}
	}
	return strings.Join(out, "\n")
}

// What the decoder refuses for a field, a type or a word the schema refuses, so an editor shows it.
func TestSchemaRefusesWhatIsWrong(t *testing.T) {
	v := validator(t)
	for _, text := range []string{
		"maxUnavailabel: 1", "groups: [{name: a, nodeSelecter: {}}]", "drain: {timeuot: 1m}", "versions: {holt: 1.27.0}", "groups: [{name: a, nodeSelector: {}, maxLost: 1}]",
		"version: 2", "version: null", "maxUnavailable: many", "maxUnavailable: -1", "maxUnavailable: 120%", "maxLost: [1]", "maxStaging: many", "maxStaging: {}",
		"soak: 5", "soak: soon", "soak: [1m]", "fitWindow: 3", "windows: 5", "windows: [5]", "windows: [{schedule: '@daily'}]", "windows: [{duration: 1h, schedule: ''}]",
		"freezes: [{from: tomorrow, to: 2026-01-01T00:00:00Z}]", "freezes: [{to: 2026-01-01T00:00:00Z}]", "pause: {inFlight: return}", "pause: {reason: x, inFlight: stop}",
		"whenWindowCloses: stop", "autoscalers: 'off'", "singleNode: maybe", "ungrouped: stay", "drain: {emptyDirData: keep}", "drain: {unmanagedPods: keep}", "drain: {atDeadline: reboot}",
		"volumes: {onTimeout: fail}", "verify: {onWorkloads: wait}", "hooks: {afterDrain: [{name: a, annotation: e.com/a, timeout: 1m, onTimeout: fail}]}",
		"hooks: {beforeUncordon: [{name: a, annotation: e.com/a}]}", "topology: [{maxDomains: 1}]", "groups: [{name: a}]", "groups: [{nodeSelector: {}}]",
		"plans: [{name: a}]", "plans: {name: a}", "plans: [{name: a, nodeSelector: {}, apply: a, target: {content: true}, proof: content, effect: boot}]",
		"plans: [{name: a, nodeSelector: {}, apply: a, target: {content: true}, proof: content, effect: none, drain: maybe}]",
		"plans: [{name: a, nodeSelector: {}, apply: a, target: {contents: true}, proof: content, effect: none}]",
		"plans: [{name: a, nodeSelector: {}, apply: a, target: {content: true}, proof: content, effect: none, maxMinorSkip: some}]",
		"drain: {waitFor: [{podSelector: {matchExpressions: [{key: a, operator: Is}]}}]}", "alerts: {ignore: Watchdog}", "drain: {leave: [{podSelector: {matchLabels: [a]}}]}",
	} {
		if !strings.HasPrefix(text, "version:") {
			text = "version: 1\n" + text
		}
		_, err := Decode([]byte(text), policy.DefaultSettings(), time.LoadLocation)
		assert.Check(t, err != nil, "the decoder takes %s", text)
		assert.Check(t, !v.Validate(seen(t, text)).IsValid(), "the schema takes %s", text)
	}
}
