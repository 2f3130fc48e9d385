package authorizer

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// verb is what a request asks for.
type verb string

const (
	verbGet   verb = "get"
	verbList  verb = "list"
	verbWatch verb = "watch"
	verbPatch verb = "patch"
)

const (
	nodesPath = "/api/v1/nodes"
	patchType = "application/merge-patch+json"
	// watchTime bounds a watch, and with it how long a token that was revoked can still see its Node's
	// metadata. client-go's own watches last 5 to 10 minutes.
	watchTime = 10 * 60
)

// passed are the query parameters that a read may have; WatchList needs most of them.
var passed = map[string]bool{"watch": true, "allowWatchBookmarks": true, "sendInitialEvents": true, "resourceVersion": true,
	"resourceVersionMatch": true, "timeoutSeconds": true, "limit": true, "continue": true, "fieldSelector": true}

// call is a request that is in form, with the query as it goes on.
type call struct {
	verb  verb
	node  string
	query url.Values
}

// parse decides on the form of a request: its path, its method, its query. Whose node it is comes later.
func parse(r *http.Request) (call, *Refusal) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return call{}, refuse(ReasonQuery, "the query can't be read")
	}
	if r.URL.Path == nodesPath {
		return parseList(r, q)
	}
	name, ok := strings.CutPrefix(r.URL.Path, nodesPath+"/")
	if !ok || name == "" || strings.Contains(name, "/") || r.URL.RawPath != "" {
		return call{}, refuse(ReasonVerb, "path %.80q is not served here", r.URL.Path)
	}
	switch r.Method {
	case http.MethodGet:
		if len(q) > 0 && (len(q) > 1 || !q.Has("resourceVersion")) {
			return call{}, refuse(ReasonQuery, "a get has no query")
		}
		return call{verb: verbGet, node: name, query: q}, nil
	case http.MethodPatch:
		for k := range q {
			if k != "fieldManager" && k != "fieldValidation" {
				return call{}, refuse(ReasonQuery, "query parameter %.40q is not allowed", k)
			}
		}
		return call{verb: verbPatch, node: name, query: url.Values{"fieldManager": {fieldManager}}}, nil
	}
	return call{}, refuse(ReasonVerb, "method %.20s is not allowed on a node", r.Method)
}

// fieldManager is the name that reports are written under.
const fieldManager = "bottlerocket-update-agent"

func parseList(r *http.Request, q url.Values) (call, *Refusal) {
	if r.Method != http.MethodGet {
		return call{}, refuse(ReasonVerb, "method %.20s is not allowed on nodes", r.Method)
	}
	for k, v := range q {
		if !passed[k] || len(v) != 1 {
			return call{}, refuse(ReasonQuery, "query parameter %.40q is not allowed", k)
		}
	}
	name, ok := strings.CutPrefix(q.Get("fieldSelector"), "metadata.name=")
	if !ok || name == "" || strings.ContainsAny(name, ",=!\\") {
		return call{}, refuse(ReasonQuery, "nodes are only shown by the field selector metadata.name=NODE")
	}
	c := call{verb: verbList, node: name, query: q}
	if on, _ := strconv.ParseBool(q.Get("watch")); on {
		c.verb = verbWatch
		if n, err := strconv.Atoi(q.Get("timeoutSeconds")); err != nil || n < 1 || n > watchTime {
			q.Set("timeoutSeconds", strconv.Itoa(watchTime))
		}
	}
	return c, nil
}

// metadataOnly keeps of an Accept header what asks for metadata alone. Empty: nothing did.
func metadataOnly(accept string) string {
	var kept []string
	for clause := range strings.SplitSeq(accept, ",") {
		c := strings.ReplaceAll(strings.TrimSpace(clause), " ", "")
		parts := strings.Split(c, ";")
		partial, group, version := false, false, false
		for _, p := range parts[1:] {
			partial = partial || p == "as=PartialObjectMetadata" || p == "as=PartialObjectMetadataList"
			group = group || p == "g=meta.k8s.io"
			version = version || p == "v=v1"
		}
		if partial && group && version {
			kept = append(kept, c)
		}
	}
	return strings.Join(kept, ",")
}
