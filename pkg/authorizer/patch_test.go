package authorizer

import (
	"encoding/json"
	"strings"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/authorizer/rule"
)

func TestParsePatch(t *testing.T) {
	const key = "bottlerocket.aws/boot-id"
	for _, tc := range []struct {
		name, body string
		want       Reason
		says       string
	}{
		{name: "an agent's", body: `{"metadata":{"resourceVersion":"1","annotations":{"bottlerocket.aws/boot-id":"b","bottlerocket.aws/message":null}}}`},
		{name: "with its type", body: `{"apiVersion":"v1","kind":"Node","metadata":{"resourceVersion":"1","annotations":{}}}`},
		{name: "without annotations", body: `{"metadata":{"resourceVersion":"1"}}`},
		{name: "nothing", body: ``, want: rule.ReasonPatch},
		{name: "null", body: `null`, want: rule.ReasonPatch},
		{name: "a JSON patch", body: `[{"op":"add","path":"/metadata/annotations/x","value":"y"}]`, want: rule.ReasonPatch},
		{name: "a string", body: `"{}"`, want: rule.ReasonPatch},
		{name: "no JSON", body: `metadata: {}`, want: rule.ReasonPatch},
		{name: "half of it", body: `{"metadata":{"resourceVersion":"1"`, want: rule.ReasonPatch},
		{name: "twice", body: `{"metadata":{}}{"spec":{}}`, want: rule.ReasonPatch, says: "after the patch"},
		{name: "one brace more", body: `{"metadata":{}}}`, want: rule.ReasonPatch},
		{name: "another kind", body: `{"kind":"Pod","metadata":{}}`, want: rule.ReasonPatch, says: "Pod"},
		{name: "another version", body: `{"apiVersion":"v2","metadata":{}}`, want: rule.ReasonPatch},
		{name: "labels", body: `{"metadata":{"labels":{"a":"b"}}}`, want: rule.ReasonField, says: "metadata.labels"},
		{name: "a finalizer", body: `{"metadata":{"finalizers":["x"]}}`, want: rule.ReasonField},
		{name: "owners", body: `{"metadata":{"ownerReferences":[]}}`, want: rule.ReasonField},
		{name: "a name", body: `{"metadata":{"name":"node-2"}}`, want: rule.ReasonField},
		{name: "a UID", body: `{"metadata":{"uid":"u"}}`, want: rule.ReasonField},
		{name: "spec", body: `{"metadata":{"resourceVersion":"1"},"spec":{"unschedulable":false}}`, want: rule.ReasonField, says: `"spec"`},
		{name: "status", body: `{"status":{}}`, want: rule.ReasonField},
		{name: "a strategic merge directive", body: `{"metadata":{"annotations":{"$patch":"delete"}}}`},
		{name: "a directive above", body: `{"$patch":"replace","metadata":{}}`, want: rule.ReasonField},
		{name: "a directive in metadata", body: `{"metadata":{"$retainKeys":["a"]}}`, want: rule.ReasonField},
		{name: "all annotations deleted", body: `{"metadata":{"resourceVersion":"1","annotations":null}}`, want: rule.ReasonPatch},
		{name: "all metadata deleted", body: `{"metadata":null}`, want: rule.ReasonPatch},
		{name: "a resourceVersion that is a number", body: `{"metadata":{"resourceVersion":1}}`, want: rule.ReasonPatch},
		{name: "a resourceVersion that is null", body: `{"metadata":{"resourceVersion":null}}`, want: rule.ReasonPatch},
		{name: "another case", body: `{"Metadata":{}}`, want: rule.ReasonField},
		{name: "another case below", body: `{"metadata":{"Annotations":{}}}`, want: rule.ReasonField},
		{name: "a field twice", body: `{"metadata":{"annotations":{}},"metadata":{}}`, want: rule.ReasonPatch, says: "twice"},
		{name: "a key twice", body: `{"metadata":{"annotations":{"a":"1","a":"2"}}}`, want: rule.ReasonPatch, says: "twice"},
		{name: "a key twice, written differently", body: `{"metadata":{"annotations":{"a":"1","\u0061":"2"}}}`, want: rule.ReasonPatch},
		{name: "a value that is an object", body: `{"metadata":{"annotations":{"a":{"b":"c"}}}}`, want: rule.ReasonPatch},
		{name: "a value that is a number", body: `{"metadata":{"annotations":{"a":1}}}`, want: rule.ReasonPatch},
		{name: "a value too long", body: `{"metadata":{"annotations":{"a":"` + strings.Repeat("x", maxValue+1) + `"}}}`, want: rule.ReasonValue},
		{name: "too many keys", body: `{"metadata":{"annotations":{` + manyKeys(maxAnnotations+1) + `}}}`, want: rule.ReasonPatch},
		{name: "as many keys as may be", body: `{"metadata":{"annotations":{` + manyKeys(maxAnnotations) + `}}}`},
		{name: "not UTF-8", body: "{\"metadata\":{\"annotations\":{\"a\":\"\xff\"}}}", want: rule.ReasonPatch},
		{name: "deep", body: strings.Repeat(`{"metadata":`, 20000) + strings.Repeat(`}`, 20000), want: rule.ReasonField},
		{name: "deep arrays", body: strings.Repeat(`[`, 60000), want: rule.ReasonPatch},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, refusal := ParsePatch([]byte(tc.body))
			assert.Equal(t, verdict(refusal), orAllowed(tc.want), "%v", refusal)
			if tc.says != "" {
				assert.Assert(t, strings.Contains(refusal.Message, tc.says), refusal.Message)
			}
		})
	}
	p, refusal := ParsePatch([]byte(`{"metadata":{"resourceVersion":"1","annotations":{"` + key + `":"b","x":null}}}`))
	assert.Assert(t, refusal == nil)
	assert.Equal(t, p.ResourceVersion, "1")
	assert.Equal(t, *p.Annotations[key], "b")
	body, err := p.Body()
	assert.NilError(t, err)
	assert.Equal(t, string(body), `{"metadata":{"resourceVersion":"1","annotations":{"`+key+`":"b","x":null}}}`)
}

func manyKeys(n int) string {
	var pairs []string
	for i := range n {
		pairs = append(pairs, `"k`+strings.Repeat("x", i)+`":"v"`)
	}
	return strings.Join(pairs, ",")
}

// FuzzParsePatch holds that no body is more than annotations and a resourceVersion, and that what goes on
// says the same as what came in to a reader that takes JSON as it comes.
func FuzzParsePatch(f *testing.F) {
	for _, s := range []string{`{"metadata":{"resourceVersion":"1","annotations":{"a":"b","c":null}}}`, `{"apiVersion":"v1","kind":"Node","metadata":{}}`,
		`{"metadata":{"annotations":{"a":"1","A":"2"}}}`, `[]`, `null`, `{"metadata":{"labels":{}}}`, `{"metadata":null}`, "{\"metadata\":{\"annotations\":{\"\\ud800\":\"\"}}}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		p, refusal := ParsePatch(body)
		if refusal != nil {
			assert.Assert(t, refusal.Message != "" && len(refusal.Message) < 1000)
			return
		}
		assert.Assert(t, len(p.Annotations) <= 32 && len(p.ResourceVersion) <= 1024)
		for _, v := range p.Annotations {
			assert.Assert(t, v == nil || len(*v) <= 1024)
		}
		var loose map[string]any
		assert.NilError(t, json.Unmarshal(body, &loose))
		delete(loose, "apiVersion")
		delete(loose, "kind")
		metadata, _ := loose["metadata"].(map[string]any)
		delete(loose, "metadata")
		assert.Equal(t, len(loose), 0)
		annotations, _ := metadata["annotations"].(map[string]any)
		assert.Equal(t, len(annotations), len(p.Annotations))
		for k, v := range annotations {
			got, ok := p.Annotations[k]
			assert.Assert(t, ok)
			if s, is := v.(string); is {
				assert.Equal(t, *got, s)
			} else {
				assert.Assert(t, got == nil && v == nil)
			}
		}
		again, err := p.Body()
		assert.NilError(t, err)
		if p.ResourceVersion != "" {
			back, refusal := ParsePatch(again)
			assert.Assert(t, refusal == nil, "%v", refusal)
			assert.Equal(t, back.ResourceVersion, p.ResourceVersion)
		}
	})
}
