package authorizer

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/authorizer/rule"
)

// acceptOfClients is what client-go's metadata client sends.
const (
	acceptOfGets  = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
	acceptOfLists = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
)

func TestParseRequest(t *testing.T) {
	for _, tc := range []struct {
		name, method, url string
		want              Reason
		verb              verb
		node, query       string
	}{
		{name: "a get", url: "/api/v1/nodes/node-1", verb: verbGet, node: "node-1"},
		{name: "a get from the cache", url: "/api/v1/nodes/node-1?resourceVersion=0", verb: verbGet, node: "node-1", query: "resourceVersion=0"},
		{name: "a pretty get", url: "/api/v1/nodes/node-1?pretty=true", want: rule.ReasonQuery},
		{name: "a list", url: "/api/v1/nodes?fieldSelector=metadata.name%3Dnode-1&limit=500", verb: verbList, node: "node-1", query: "fieldSelector=metadata.name%3Dnode-1&limit=500"},
		{name: "a list that isn't a watch", url: "/api/v1/nodes?fieldSelector=metadata.name%3Dnode-1&watch=0", verb: verbList, node: "node-1", query: "fieldSelector=metadata.name%3Dnode-1&watch=false"},
		{name: "a watch", url: "/api/v1/nodes?fieldSelector=metadata.name%3Dnode-1&watch=true&timeoutSeconds=301", verb: verbWatch, node: "node-1",
			query: "fieldSelector=metadata.name%3Dnode-1&timeoutSeconds=301&watch=true"},
		{name: "a watch without end", url: "/api/v1/nodes?fieldSelector=metadata.name%3Dnode-1&watch=1", verb: verbWatch, node: "node-1",
			query: "fieldSelector=metadata.name%3Dnode-1&timeoutSeconds=600&watch=true"},
		{name: "a watch of a day", url: "/api/v1/nodes?fieldSelector=metadata.name%3Dnode-1&watch=true&timeoutSeconds=86400", verb: verbWatch, node: "node-1",
			query: "fieldSelector=metadata.name%3Dnode-1&timeoutSeconds=600&watch=true"},
		{name: "a WatchList", url: "/api/v1/nodes?allowWatchBookmarks=true&fieldSelector=metadata.name%3Dnode-1&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&timeoutSeconds=400&watch=true",
			verb: verbWatch, node: "node-1",
			query: "allowWatchBookmarks=true&fieldSelector=metadata.name%3Dnode-1&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&timeoutSeconds=400&watch=true"},
		{name: "watch by an odd yes", url: "/api/v1/nodes?fieldSelector=metadata.name%3Dnode-1&watch=yes", want: rule.ReasonQuery},
		{name: "watch by its name alone", url: "/api/v1/nodes?fieldSelector=metadata.name%3Dnode-1&watch", want: rule.ReasonQuery},
		{name: "all nodes", url: "/api/v1/nodes", want: rule.ReasonQuery},
		{name: "all nodes watched", url: "/api/v1/nodes?watch=true", want: rule.ReasonQuery},
		{name: "nodes by another field", url: "/api/v1/nodes?fieldSelector=spec.unschedulable%3Dtrue", want: rule.ReasonQuery},
		{name: "nodes by two fields", url: "/api/v1/nodes?fieldSelector=metadata.name%3Dnode-1,spec.unschedulable%3Dtrue", want: rule.ReasonQuery},
		{name: "nodes by not being one", url: "/api/v1/nodes?fieldSelector=metadata.name%21%3Dnode-1", want: rule.ReasonQuery},
		{name: "nodes by the other equals", url: "/api/v1/nodes?fieldSelector=metadata.name%3D%3Dnode-1", want: rule.ReasonQuery},
		{name: "two field selectors", url: "/api/v1/nodes?fieldSelector=metadata.name%3Dnode-1&fieldSelector=metadata.name%3Dnode-2", want: rule.ReasonQuery},
		{name: "a label selector", url: "/api/v1/nodes?fieldSelector=metadata.name%3Dnode-1&labelSelector=a", want: rule.ReasonQuery},
		{name: "a shard selector", url: "/api/v1/nodes?fieldSelector=metadata.name%3Dnode-1&shardSelector=a", want: rule.ReasonQuery},
		{name: "a query with a semicolon", url: "/api/v1/nodes?fieldSelector=metadata.name%3Dnode-1;watch=true", want: rule.ReasonQuery},
		{name: "a patch", method: http.MethodPatch, url: "/api/v1/nodes/node-1?fieldManager=me", verb: verbPatch, node: "node-1", query: "fieldManager=bottlerocket-update-agent"},
		{name: "a forced patch", method: http.MethodPatch, url: "/api/v1/nodes/node-1?force=true", want: rule.ReasonQuery},
		{name: "a dry patch", method: http.MethodPatch, url: "/api/v1/nodes/node-1?dryRun=All", want: rule.ReasonQuery},
		{name: "a patch of the status", method: http.MethodPatch, url: "/api/v1/nodes/node-1/status", want: rule.ReasonVerb},
		{name: "the status", url: "/api/v1/nodes/node-1/status", want: rule.ReasonVerb},
		{name: "the node's proxy", url: "/api/v1/nodes/node-1/proxy/pods", want: rule.ReasonVerb},
		{name: "the old watch path", url: "/api/v1/watch/nodes/node-1", want: rule.ReasonVerb},
		{name: "pods", url: "/api/v1/pods", want: rule.ReasonVerb},
		{name: "exec", method: http.MethodPost, url: "/api/v1/namespaces/a/pods/b/exec?command=sh", want: rule.ReasonVerb},
		{name: "the root", url: "/", want: rule.ReasonVerb},
		{name: "metrics", url: "/metrics", want: rule.ReasonVerb},
		{name: "versions", url: "/api", want: rule.ReasonVerb},
		{name: "an encoded slash", url: "/api/v1/nodes/..%2Fpods", want: rule.ReasonVerb},
		{name: "an encoded slash for a real one", url: "/api/v1/nodes%2Fnode-1", want: rule.ReasonVerb},
		{name: "a name in code", url: "/api/v1/nodes/node%2D1", want: rule.ReasonVerb},
		{name: "dots", url: "/api/v1/nodes/../pods", want: rule.ReasonVerb},
		{name: "a slash at the end", url: "/api/v1/nodes/node-1/", want: rule.ReasonVerb},
		{name: "two slashes", url: "//api/v1/nodes/node-1", want: rule.ReasonVerb},
		{name: "a slash and nothing", url: "/api/v1/nodes/", want: rule.ReasonVerb},
		{name: "a put", method: http.MethodPut, url: "/api/v1/nodes/node-1", want: rule.ReasonVerb},
		{name: "a delete", method: http.MethodDelete, url: "/api/v1/nodes/node-1", want: rule.ReasonVerb},
		{name: "a delete of all", method: http.MethodDelete, url: "/api/v1/nodes?fieldSelector=metadata.name%3Dnode-1", want: rule.ReasonVerb},
		{name: "a create", method: http.MethodPost, url: "/api/v1/nodes", want: rule.ReasonVerb},
		{name: "a head", method: http.MethodHead, url: "/api/v1/nodes/node-1", want: rule.ReasonVerb},
		{name: "a method of its own", method: "PATCHY", url: "/api/v1/nodes/node-1", want: rule.ReasonVerb},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.method == "" {
				tc.method = http.MethodGet
			}
			r := httptest.NewRequest(tc.method, tc.url, nil)
			r.Header.Set("Accept", acceptOfGets)
			c, refusal := parse(r)
			assert.Equal(t, verdict(refusal), orAllowed(tc.want))
			if refusal == nil {
				assert.Equal(t, c.verb, tc.verb)
				assert.Equal(t, c.node, tc.node)
				assert.Equal(t, c.query.Encode(), tc.query)
			}
		})
	}
}

func TestMetadataOnly(t *testing.T) {
	const json = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	for _, tc := range []struct{ name, accept, want string }{
		{"client-go's get", acceptOfGets, "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"},
		{"client-go's list", acceptOfLists, "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"},
		{"with spaces and a quality", "application/json ; as=PartialObjectMetadata; g=meta.k8s.io ;v=v1;q=0.9", json},
		{"the whole object", "application/json", ""},
		{"anything", "*/*", ""},
		{"nothing", "", ""},
		{"a table", "application/json;as=Table;g=meta.k8s.io;v=v1", ""},
		{"a table too", "application/json;as=PartialObjectMetadata;as=Table;g=meta.k8s.io;v=v1", ""},
		{"another version", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1beta1", ""},
		{"another group", "application/json;as=PartialObjectMetadata;g=v1;v=v1", ""},
		{"in YAML", "application/yaml;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", ""},
		{"anything as metadata", "*/*;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", ""},
	} {
		t.Run(tc.name, func(t *testing.T) { assert.Equal(t, metadataOnly([]string{tc.accept}), tc.want) })
	}
}
