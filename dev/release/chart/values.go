package chart

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pkg/errors"
	"go.yaml.in/yaml/v3"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
)

// value is one of values.yaml.
type value struct {
	path    string
	comment string
	node    *yaml.Node
	// fields are those of a map that is there to be filled in by name; a map that is empty takes any.
	fields []value
}

// readValues reads values.yaml in its order, with its comments. A value without a comment is an error, but for a map that
// holds others: a user must know what it does.
func readValues() ([]value, error) {
	dir, err := Dir()
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(filepath.Join(dir, "values.yaml"))
	if err != nil {
		return nil, errors.Wrap(err, "reading the chart's values")
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(content, &doc); err != nil {
		return nil, errors.Wrap(err, "reading the chart's values")
	}
	return fieldsOf("", doc.Content[0])
}

// whole are maps whose fields are Kubernetes' own, by their last name.
var whole = map[string]bool{"resources": true}

func fieldsOf(prefix string, of *yaml.Node) ([]value, error) {
	var out []value
	for i := 0; i < len(of.Content); i += 2 {
		name, node := of.Content[i], of.Content[i+1]
		v := value{path: prefix + name.Value, node: node}
		for line := range strings.Lines(name.HeadComment) {
			v.comment = strings.TrimSpace(v.comment + " " + strings.TrimSpace(strings.TrimPrefix(line, "#")))
		}
		if node.Kind == yaml.MappingNode && len(node.Content) > 0 && !whole[name.Value] {
			var err error
			if v.fields, err = fieldsOf(v.path+".", node); err != nil {
				return nil, err
			}
		} else if v.comment == "" {
			return nil, errors.Errorf("values.yaml doesn't say what %s means", v.path)
		}
		out = append(out, v)
	}
	return out, nil
}

// further is what the schema says of some values beside their types, by the end of their paths.
var further = map[string]map[string]any{
	"image.digest":         {"pattern": "^(sha256:[0-9a-f]{64})?$"},
	"image.pullPolicy":     {"enum": []string{"Always", "IfNotPresent", "Never"}},
	"image.registry":       {"minLength": 1},
	"image.repository":     {"minLength": 1},
	"replicas":             {"minimum": 1},
	"imagePullSecrets":     {"items": map[string]any{"type": "object", "required": []string{"name"}}},
	"tolerations":          {"items": map[string]any{"type": "object"}},
	"controllerIngress":    {"items": map[string]any{"type": "object"}},
	"controllerEgress":     {"items": map[string]any{"type": "object"}},
	"extraArgs":            {"items": map[string]any{"type": "string", "pattern": "^-"}},
	"agent.maxUnavailable": {"type": []string{"string", "integer"}},
	// GOMEMLIMIT is computed from it.
	"resources": {"properties": map[string]any{"limits": map[string]any{"type": "object", "properties": map[string]any{
		"memory": map[string]any{"type": "string", "pattern": "^[0-9]+(Mi|Gi)$"}}}}},
}

// Schema returns values.schema.json: what may stand in a file of values, the policy included.
func Schema() (string, error) {
	values, err := readValues()
	if err != nil {
		return "", err
	}
	root, err := controlplane.Root()
	if err != nil {
		return "", err
	}
	content, err := os.ReadFile(filepath.Join(root, "docs", "policy.schema.json"))
	if err != nil {
		return "", errors.Wrap(err, "reading the policy's schema")
	}
	var policy map[string]any
	if err := json.Unmarshal(content, &policy); err != nil {
		return "", errors.Wrap(err, "reading the policy's schema")
	}
	delete(policy, "$schema")
	all := schemaOf(values)
	all["$schema"] = "http://json-schema.org/draft-07/schema#"
	properties := all["properties"].(map[string]any)
	// What a chart that depends on this one gives to all of its parts.
	properties["global"] = map[string]any{"type": "object"}
	policy["description"] = properties["policy"].(map[string]any)["description"]
	// None, or a whole one.
	properties["policy"] = map[string]any{"anyOf": []any{map[string]any{"type": "object", "maxProperties": 0}, policy}}
	out, err := json.MarshalIndent(all, "", "  ")
	return string(out) + "\n", errors.Wrap(err, "encoding the schema")
}

func schemaOf(values []value) map[string]any {
	properties := map[string]any{}
	for _, v := range values {
		name := v.path[strings.LastIndex(v.path, ".")+1:]
		var s map[string]any
		if v.fields != nil {
			s = schemaOf(v.fields)
		} else {
			s = map[string]any{"type": map[string]string{"!!str": "string", "!!int": "integer", "!!bool": "boolean", "!!seq": "array", "!!map": "object"}[v.node.Tag]}
		}
		if v.comment != "" {
			s["description"] = v.comment
		}
		for _, of := range []string{name, v.path} {
			for k, what := range further[of] {
				s[k] = what
			}
		}
		properties[name] = s
	}
	return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
}

// Table returns the table of all values, for the chart's README.
func Table() (string, error) {
	values, err := readValues()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("| value | default | meaning |\n|---|---|---|\n")
	err = rows(&b, values)
	return b.String(), err
}

func rows(b *strings.Builder, values []value) error {
	for _, v := range values {
		if v.fields != nil {
			if err := rows(b, v.fields); err != nil {
				return err
			}
			continue
		}
		var plain any
		if err := v.node.Decode(&plain); err != nil {
			return errors.Wrapf(err, "decoding %s", v.path)
		}
		shown, err := json.Marshal(plain)
		if err != nil {
			return errors.Wrapf(err, "encoding %s", v.path)
		}
		fmt.Fprintf(b, "| `%s` | `%s` | %s |\n", v.path, shown, v.comment)
	}
	return nil
}
