package authorizer

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/authorizer/rule"
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
	// fieldManager is the field manager of reports.
	fieldManager = "bottlerocket-update-agent"
	// watchTime bounds a watch. client-go's own watches last 5 to 10 minutes.
	watchTime = 10 * time.Minute
)

// passed are the query parameters that a list or a watch may have; WatchList needs most of them.
var passed = map[string]bool{"watch": true, "allowWatchBookmarks": true, "sendInitialEvents": true, "resourceVersion": true,
	"resourceVersionMatch": true, "timeoutSeconds": true, "timeout": true, "limit": true, "continue": true, "fieldSelector": true}

// call is a request in an allowed form, with the query and the Accept header for the API server.
type call struct {
	verb  verb
	node  string
	query url.Values
	// accept asks for metadata alone.
	accept string
}

// path returns the path at the API server. A field selector limits lists and watches to the node.
func (c call) path() string {
	if c.verb == verbList || c.verb == verbWatch {
		return nodesPath
	}
	return nodesPath + "/" + c.node
}

// parse checks a request's path, method, query and Accept header, but not whether the node is the agent's own.
func parse(r *http.Request) (call, *Refusal) {
	c, refusal := parseURL(r)
	if refusal != nil {
		return call{}, refusal
	}
	if c.accept = metadataOnly(r.Header.Values("Accept")); c.accept == "" {
		return call{}, rule.Refuse(rule.ReasonAccept, "only metadata is served: ask for PartialObjectMetadata of meta.k8s.io/v1")
	}
	return c, nil
}

func parseURL(r *http.Request) (call, *Refusal) {
	// A path with escapes can be read in two ways.
	if r.URL.RawPath != "" || r.URL.Opaque != "" {
		return call{}, rule.Refuse(rule.ReasonVerb, "path %.80q is not served here", r.URL.Path)
	}
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return call{}, rule.Refuse(rule.ReasonQuery, "the query can't be read")
	}
	for k, v := range q {
		if len(v) != 1 {
			return call{}, rule.Refuse(rule.ReasonQuery, "query parameter %.40q is given %d times", k, len(v))
		}
	}
	if r.URL.Path == nodesPath {
		return parseList(r.Method, q)
	}
	name, ok := strings.CutPrefix(r.URL.Path, nodesPath+"/")
	if !ok || name == "" || strings.Contains(name, "/") {
		return call{}, rule.Refuse(rule.ReasonVerb, "path %.80q is not served here", r.URL.Path)
	}
	switch r.Method {
	case http.MethodGet:
		for k := range q {
			if k != "resourceVersion" {
				return call{}, rule.Refuse(rule.ReasonQuery, "query parameter %.40q is not allowed", k)
			}
		}
		return call{verb: verbGet, node: name, query: q}, nil
	case http.MethodPatch:
		for k := range q {
			if k != "fieldManager" && k != "fieldValidation" {
				return call{}, rule.Refuse(rule.ReasonQuery, "query parameter %.40q is not allowed", k)
			}
		}
		return call{verb: verbPatch, node: name, query: url.Values{"fieldManager": {fieldManager}}}, nil
	}
	return call{}, rule.Refuse(rule.ReasonVerb, "method %.20q is not allowed on a node", r.Method)
}

func parseList(method string, q url.Values) (call, *Refusal) {
	if method != http.MethodGet {
		return call{}, rule.Refuse(rule.ReasonVerb, "method %.20q is not allowed on nodes", method)
	}
	for k := range q {
		if !passed[k] {
			return call{}, rule.Refuse(rule.ReasonQuery, "query parameter %.40q is not allowed", k)
		}
	}
	name, ok := strings.CutPrefix(q.Get("fieldSelector"), "metadata.name=")
	if !ok || name == "" || strings.ContainsAny(name, ",=!\\") {
		return call{}, rule.Refuse(rule.ReasonQuery, "all nodes can't be listed: give the field selector metadata.name=NODE")
	}
	// The selector is composed anew, so that it holds only what was judged.
	q.Set("fieldSelector", "metadata.name="+name)
	c := call{verb: verbList, node: name, query: q}
	if !q.Has("watch") {
		return c, nil
	}
	// The API server takes other values than true and 1 as true, too. It gets only what both read the same way.
	on, err := strconv.ParseBool(q.Get("watch"))
	if err != nil {
		return call{}, rule.Refuse(rule.ReasonQuery, "query parameter watch is neither true nor false")
	}
	q.Set("watch", strconv.FormatBool(on))
	if on {
		c.verb = verbWatch
		most := int(watchTime / time.Second)
		if n, err := strconv.Atoi(q.Get("timeoutSeconds")); err != nil || n < 1 || n > most {
			q.Set("timeoutSeconds", strconv.Itoa(most))
		}
	}
	return c, nil
}

// mediaTypes are the ones that both the API server and client-go know.
var mediaTypes = []string{"application/vnd.kubernetes.protobuf", "application/json"}

// metadataOnly returns an Accept header with the clauses that ask for metadata alone; empty if there are none.
func metadataOnly(headers []string) string {
	var out []string
	for clause := range strings.SplitSeq(strings.Join(headers, ","), ",") {
		kind, params, _ := strings.Cut(clause, ";")
		for _, m := range mediaTypes {
			if as := transformed(params); strings.TrimSpace(kind) == m && as != "" {
				out = append(out, m+";as="+as+";g=meta.k8s.io;v=v1")
			}
		}
	}
	return strings.Join(out, ",")
}

// transformed returns the form of metadata that a clause's parameters ask for; empty if they ask for anything else.
func transformed(params string) string {
	as, group, version := "", false, false
	for p := range strings.SplitSeq(params, ";") {
		switch p = strings.TrimSpace(p); p {
		case "as=PartialObjectMetadata", "as=PartialObjectMetadataList":
			if as != "" {
				return ""
			}
			as = strings.TrimPrefix(p, "as=")
		case "g=meta.k8s.io":
			group = true
		case "v=v1":
			version = true
		default:
			// A quality value is a preference; the order of the clauses is used instead.
			if !strings.HasPrefix(p, "q=") {
				return ""
			}
		}
	}
	if !group || !version {
		return ""
	}
	return as
}
