package plugin

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// leftOut stands where a value was. It has no blank, which would end an address.
const leftOut = "(left-out)"

// scrubs replace what may be a secret in a text, in this order. They rather take too much than too little.
var scrubs = []struct {
	what *regexp.Regexp
	by   string
}{
	// A key that is cut off has no end. Its lines may be one, with \n for their ends.
	{regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)`),
		leftOut},
	// The end of one whose beginning is cut off.
	{regexp.MustCompile(`([A-Za-z0-9+/=]{8,}\s+)*-----END [A-Z0-9 ]*PRIVATE KEY-----`), leftOut},
	// A JSON web token, also one that is cut off.
	{regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}(\.[A-Za-z0-9_-]*){0,2}`), leftOut},
	{regexp.MustCompile(`(?i)(authorization\\?["']?\s*[:=]\s*\\?["'\[]?)((bearer|basic|digest|negotiate|token|aws4-hmac-sha256)\s+)?[^\s"'\\;\]]+`), "${1}" + leftOut},
	{regexp.MustCompile(`(?i)\b(bearer\s+)[A-Za-z0-9._~+/=-]{6,}`), "${1}" + leftOut},
	{regexp.MustCompile(`(?i)\b(basic\s+)[A-Za-z0-9+/=_-]{16,}`), "${1}" + leftOut},
	{regexp.MustCompile(`(?i)((?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|credentials?|private[_-]?key)\\?["']?\s*[:=]\s*)(\\"[^"]*"|"[^"]*"|'[^']*'|[^\s"',;}&]+)`),
		"${1}" + leftOut},
	// What may stand in an address before the host, where a password may hold anything, and after the path.
	{regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)[^\s"'<>]*@`), "${1}" + leftOut + "@"},
	{regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://[^\s"'?#<>]*)[?#][^\s"'<>]+`), "${1}?" + leftOut},
	// The key of the policy that is not to hold an address, and may by mistake.
	{regexp.MustCompile(`(?i)(urlKey\\?["']?\s*[:=]?\s*(?:is\s+)?\\?["']?[A-Za-z][A-Za-z0-9+.-]*://[^/\s"']*/)[^\s"'\\]+`), "${1}" + leftOut},
	{regexp.MustCompile(`\b(AKIA|ASIA)[A-Z0-9]{16}\b`), leftOut},
	{regexp.MustCompile(`\bgh[a-z]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bxox[a-z]-[A-Za-z0-9-]{10,}`),
		leftOut},
	// A token to join nodes.
	{regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`), leftOut},
}

// address finds URLs, and telling a part of a path that is no name: addresses of chat services hold their key there.
var (
	address = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>]*`)
	telling = regexp.MustCompile(`^([A-Za-z0-9_]{20,}|[A-Za-z0-9_-]{40,})$`)
)

// scrub returns a text without what may be a secret.
func scrub(text string) string {
	for _, s := range scrubs {
		text = s.what.ReplaceAllString(text, s.by)
	}
	return address.ReplaceAllStringFunc(text, func(url string) string {
		parts := strings.Split(url, "/")
		for i, p := range parts {
			if i > 2 && telling.MatchString(p) {
				parts[i] = leftOut
			}
		}
		return strings.Join(parts, "/")
	})
}

// scrubbed returns any object as JSON, for people to read, without what may be a secret and without what others wrote
// beside it.
func scrubbed(object any) ([]byte, error) {
	body, err := json.Marshal(object)
	if err != nil {
		return nil, errors.Wrap(err, "writing an object as JSON")
	}
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		return nil, errors.Wrap(err, "reading an object as JSON")
	}
	body, err = json.MarshalIndent(walked(value), "", " ")
	return append(body, '\n'), errors.Wrap(err, "writing an object as JSON")
}

// walked scrubs each text of a value.
func walked(value any) any {
	switch v := value.(type) {
	case string:
		return scrub(v)
	case []any:
		for i := range v {
			v[i] = walked(v[i])
		}
	case map[string]any:
		delete(v, "managedFields")
		for k, in := range v {
			switch in, isMap := in.(map[string]any); {
			case isMap && k == "annotations":
				v[k] = ownAnnotations(in)
			default:
				v[k] = walked(v[k])
			}
		}
		withoutForeign(v)
	}
	return value
}

// ownAnnotations keeps the operator's and the autoscalers', and of all others the name alone.
func ownAnnotations(all map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range all {
		if strings.HasPrefix(k, marker.Prefix) || slices.Contains(marker.AutoscalerMarks(), k) {
			out[k] = walked(v)
		} else {
			out[k] = leftOut
		}
	}
	return out
}

// ownContainers and ownVariables are those of the manifest.
var (
	ownContainers = []string{"controller", "proxy", "agent", "runner"}
	ownVariables  = []string{"GOMEMLIMIT", "NODE_NAME", "POD_NAME", "POD_NAMESPACE", "MAX_CONCURRENT_UPDATE"}
)

// withoutForeign leaves out of a container what is not the operator's: values of variables, and the command line of a
// container that others put in.
func withoutForeign(v map[string]any) {
	if _, is := v["image"].(string); !is {
		return
	}
	name, _ := v["name"].(string)
	own := slices.Contains(ownContainers, name)
	if !own {
		for _, k := range []string{"args", "command", "lifecycle", "livenessProbe", "readinessProbe", "startupProbe"} {
			if v[k] != nil {
				v[k] = leftOut
			}
		}
	}
	env, _ := v["env"].([]any)
	for _, e := range env {
		if e, is := e.(map[string]any); is {
			if name, _ := e["name"].(string); e["value"] != nil && !(own && slices.Contains(ownVariables, name)) {
				e["value"] = leftOut
			}
		}
	}
}
