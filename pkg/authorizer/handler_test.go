package authorizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pkg/errors"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"
	"gotest.tools/v3/assert"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/authorizer/rule"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// store is an API server with one node that applies merge patches as the real one does, and keeps what
// was asked of it.
type store struct {
	mu       sync.Mutex
	node     map[string]any
	requests []*http.Request
	bodies   []string
	// before is called before each request is answered; instead answers in the server's place.
	before  func(s *store, r *http.Request)
	instead func(r *http.Request) (*http.Response, error)
}

func newStore(annotations map[string]string) *store {
	set := map[string]any{}
	for k, v := range annotations {
		set[k] = v
	}
	return &store{node: map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": agent.NodeName, "uid": agent.NodeUID,
		"resourceVersion": "10", "annotations": set, "labels": map[string]any{"a": "b"}}, "spec": map[string]any{"unschedulable": true}}}
}

func (s *store) metadata() map[string]any { return s.node["metadata"].(map[string]any) }

func (s *store) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body := ""
	if r.Body != nil {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		body = string(b)
	}
	s.requests, s.bodies = append(s.requests, r), append(s.bodies, body)
	if s.before != nil {
		s.before(s, r)
	}
	if s.instead != nil {
		return s.instead(r)
	}
	if r.Method != http.MethodPatch {
		return respond(http.StatusOK, s.node), nil
	}
	var patch map[string]any
	if err := json.Unmarshal([]byte(body), &patch); err != nil {
		return nil, err
	}
	if m, ok := patch["metadata"].(map[string]any); ok {
		if m["resourceVersion"] != s.metadata()["resourceVersion"] {
			return respond(http.StatusConflict, metav1.Status{Status: metav1.StatusFailure, Code: http.StatusConflict, Reason: metav1.StatusReasonConflict}), nil
		}
	}
	merge(s.node, patch)
	s.metadata()["resourceVersion"] = fmt.Sprint(10 + len(s.requests))
	return respond(http.StatusOK, s.node), nil
}

// merge is RFC 7386.
func merge(into, patch map[string]any) {
	for k, v := range patch {
		inner, is := v.(map[string]any)
		was, had := into[k].(map[string]any)
		switch {
		case v == nil:
			delete(into, k)
		case is && had:
			merge(was, inner)
		default:
			into[k] = v
		}
	}
}

func respond(code int, v any) *http.Response {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return &http.Response{StatusCode: code, Status: fmt.Sprint(code), Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(body))}
}

// goodToken is the agent's that handlerOf serves.
var goodToken = madeUp("good")

// handlerOf serves one agent in front of s.
func handlerOf(t testing.TB, s *store) (*handler, *test.Hook, *prometheus.Registry) {
	t.Helper()
	w := newReviewWorld()
	w.set(func(token string) (authenticationv1.TokenReviewStatus, error) {
		if token == "good" {
			return goodReview(agent), nil
		}
		return authenticationv1.TokenReviewStatus{}, nil
	})
	base, err := url.Parse("https://api.example/prefix")
	assert.NilError(t, err)
	log, hook := test.NewNullLogger()
	log.SetLevel(logrus.InfoLevel)
	registry := prometheus.NewRegistry()
	m := NewMetrics(registry)
	return &handler{reviewer: w.reviewer, upstream: &upstream{base: base, client: &http.Client{Transport: s}}, limits: newLRUMap[string](newLimit),
		patches: make(chan struct{}, 1), audit: newAuditor(log, m), metrics: m, now: func() time.Time { return noon }, log: log, trust: defaultTrust, stopping: t.Context()}, hook, registry
}

func request(method, target, body string) *http.Request {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+goodToken)
	r.Header.Set("Accept", acceptOfGets)
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", patchType)
	}
	return r
}

func serve(h http.Handler, r *http.Request) (*httptest.ResponseRecorder, metav1.Status) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	var s metav1.Status
	_ = json.Unmarshal(w.Body.Bytes(), &s)
	return w, s
}

const ownNode = nodesPath + "/node-1"

func TestWhatGoesOnIsMadeAnew(t *testing.T) {
	s := newStore(nil)
	h, _, _ := handlerOf(t, s)
	r := request(http.MethodPatch, ownNode+"?fieldManager=kubelet", "{ \"kind\":\"Node\", \"metadata\": {\"annotations\":{\"bottlerocket.aws/boot-id\":\"b\"},\"resourceVersion\":\"10\"}}")
	for _, name := range []string{"Impersonate-User", "Impersonate-Uid", "Cookie", "X-Forwarded-For", "X-Remote-User", "Referer", "User-Agent", "Audit-Id", "Upgrade"} {
		r.Header.Set(name, "mine")
	}
	w, _ := serve(h, r)
	assert.Equal(t, w.Code, http.StatusOK, w.Body)
	assert.Equal(t, len(s.requests), 2)
	got := s.requests[1]
	assert.Equal(t, got.URL.String(), "https://api.example/prefix/api/v1/nodes/node-1?fieldManager=bottlerocket-update-agent")
	assert.DeepEqual(t, got.Header, http.Header{"Accept": {metadataOnly([]string{acceptOfGets})}, "Content-Type": {patchType}})
	assert.Equal(t, s.bodies[1], `{"metadata":{"resourceVersion":"10","annotations":{"bottlerocket.aws/boot-id":"b"}}}`)
}

func TestNothingIsRetried(t *testing.T) {
	fact := `{"metadata":{"resourceVersion":"10","annotations":{"bottlerocket.aws/boot-id":"b"}}}`
	t.Run("another client writes between the look and the write", func(t *testing.T) {
		s := newStore(nil)
		s.before = func(s *store, r *http.Request) {
			if r.Method == http.MethodPatch {
				s.metadata()["resourceVersion"] = "11"
			}
		}
		h, _, _ := handlerOf(t, s)
		w, status := serve(h, request(http.MethodPatch, ownNode, fact))
		assert.Equal(t, w.Code, http.StatusConflict)
		assert.Equal(t, status.Reason, metav1.StatusReasonConflict)
		assert.Equal(t, len(s.requests), 2)
	})
	t.Run("it is unknown if it was written", func(t *testing.T) {
		s := newStore(nil)
		s.before = func(s *store, r *http.Request) {
			if r.Method == http.MethodPatch {
				s.instead = func(*http.Request) (*http.Response, error) { return nil, errors.New("connection reset") }
			}
		}
		h, hook, _ := handlerOf(t, s)
		w, status := serve(h, request(http.MethodPatch, ownNode, fact))
		assert.Equal(t, w.Code, http.StatusServiceUnavailable)
		assert.Equal(t, status.Reason, metav1.StatusReasonServiceUnavailable)
		assert.Equal(t, w.Header().Get("Retry-After"), "", "client-go would try again by itself")
		assert.Equal(t, len(s.requests), 2)
		assert.Assert(t, len(hook.AllEntries()) > 0)
	})
}

func TestAnswersOfTheAPIServer(t *testing.T) {
	for _, tc := range []struct{ upstream, want int }{{401, 503}, {403, 503}, {404, 403}, {429, 503}, {500, 503}, {302, 503}} {
		s := newStore(nil)
		s.instead = func(*http.Request) (*http.Response, error) { return respond(tc.upstream, nil), nil }
		h, _, _ := handlerOf(t, s)
		w, _ := serve(h, request(http.MethodGet, ownNode, ""))
		assert.Equal(t, w.Code, tc.want, "the look at the node is answered with %d", tc.upstream)
	}
	// What a write is answered with goes back, but for what is between proxy and API server.
	for _, tc := range []struct{ upstream, want int }{{401, 503}, {403, 403}, {404, 404}, {409, 409}, {422, 422}, {429, 429}, {500, 500}, {307, 503}} {
		s := newStore(nil)
		s.before = func(s *store, r *http.Request) {
			if r.Method == http.MethodPatch {
				s.instead = func(*http.Request) (*http.Response, error) { return respond(tc.upstream, nil), nil }
			}
		}
		h, _, _ := handlerOf(t, s)
		w, _ := serve(h, request(http.MethodPatch, ownNode, `{"metadata":{"resourceVersion":"10"}}`))
		assert.Equal(t, w.Code, tc.want, "the write is answered with %d", tc.upstream)
		assert.Equal(t, len(s.requests), 2)
	}
}

func TestRefusalsAreCountedAndLogged(t *testing.T) {
	h, hook, registry := handlerOf(t, newStore(nil))
	families, err := registry.Gather()
	assert.NilError(t, err)
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	assert.NilError(t, err)
	assert.Equal(t, len(problems), 0, "%v", problems)
	assert.Equal(t, len(refusals(t, registry)), len(rule.Reasons()), "every reason is there from the start")

	secret := request(http.MethodGet, ownNode, "")
	secret.Header.Set("Authorization", "Bearer "+madeUp("very-secret"))
	w, status := serve(h, secret)
	assert.Equal(t, w.Code, http.StatusUnauthorized)
	assert.Equal(t, status.Reason, metav1.StatusReasonUnauthorized)
	assert.Equal(t, refusals(t, registry)[rule.ReasonBadToken], 1.0)
	for range 100 {
		serve(h, request(http.MethodGet, nodesPath+"/node-2", ""))
	}
	lines := 0
	for _, e := range hook.AllEntries() {
		text, err := e.String()
		assert.NilError(t, err)
		assert.Assert(t, !strings.Contains(text, madeUp("very-secret")))
		if e.Data["reason"] == string(rule.ReasonNode) {
			lines++
			assert.Equal(t, e.Data["node"], agent.NodeName)
			assert.Equal(t, e.Data["pod"], agent.PodName)
		}
	}
	assert.Assert(t, lines > 0 && lines <= lineBurst+1, "%d lines", lines)
}

// refusals reads the counters by reason.
func refusals(t *testing.T, registry *prometheus.Registry) map[Reason]float64 {
	t.Helper()
	families, err := registry.Gather()
	assert.NilError(t, err)
	out := map[Reason]float64{}
	for _, f := range families {
		if strings.HasSuffix(f.GetName(), "proxy_refused_total") {
			for _, m := range f.GetMetric() {
				out[Reason(m.GetLabel()[0].GetValue())] = m.GetCounter().GetValue()
			}
		}
	}
	return out
}

// TestMatrix prints what an agent, and clients without a good token, may do to which object.
func TestMatrix(t *testing.T) {
	identities := []struct{ name, token string }{{"agent", goodToken}, {"bad token", madeUp("bad")}, {"no token", ""}}
	var requests []*http.Request
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPatch, http.MethodPut, http.MethodPost, http.MethodDelete, http.MethodOptions, http.MethodConnect} {
		for _, target := range []string{ownNode, nodesPath + "/node-2", nodesPath, nodesPath + "?fieldSelector=metadata.name%3Dnode-1", nodesPath + "?fieldSelector=metadata.name%3Dnode-2",
			nodesPath + "?fieldSelector=metadata.name%3Dnode-1&watch=true", ownNode + "/status", ownNode + "/proxy", "/api/v1/pods", "/healthz"} {
			requests = append(requests, request(method, target, ""))
		}
	}
	var out strings.Builder
	for _, r := range requests {
		fmt.Fprintf(&out, "%-8s %-64s", r.Method, r.URL.RequestURI())
		for _, i := range identities {
			h, hook, _ := handlerOf(t, newStore(nil))
			again := r.Clone(t.Context())
			again.Body = io.NopCloser(strings.NewReader(`{"metadata":{"resourceVersion":"10"}}`))
			again.Header.Set("Authorization", "Bearer "+i.token)
			w, _ := serve(h, again)
			reason := ""
			if e := hook.LastEntry(); e != nil {
				reason = fmt.Sprint(e.Data["reason"])
			}
			fmt.Fprintf(&out, " | %-9s %d %-16s", i.name, w.Code, reason)
		}
		out.WriteString("\n")
	}
	goldenText(t, out.String(), "requests.golden")
}

// FuzzRequest holds, over whole requests: nothing but agent-owned keys of the caller's own node ever
// changes, nothing else is ever asked for, and nothing of the request's headers goes on.
func FuzzRequest(f *testing.F) {
	fact := `{"metadata":{"resourceVersion":"10","annotations":{"bottlerocket.aws/boot-id":"b"}}}`
	f.Add("PATCH", ownNode, "Bearer good", acceptOfGets, patchType, "X-A: b", fact)
	f.Add("PATCH", nodesPath+"/node-2", "Bearer good", acceptOfGets, patchType, "Impersonate-User: admin", fact)
	f.Add("PATCH", ownNode+"/status", "Bearer good", acceptOfGets, "application/json-patch+json", "", `[]`)
	f.Add("PATCH", ownNode, "Bearer good", acceptOfGets, patchType, "", answerPatchOf("busy"))
	f.Add("PATCH", ownNode, "Bearer good", acceptOfGets, patchType, "", `{"metadata":{"resourceVersion":"10","annotations":{"example.com/theirs":null}},"spec":{}}`)
	f.Add("GET", nodesPath+"?fieldSelector=metadata.name%3Dnode-1&watch=true", "Bearer good", acceptOfLists, "", "", "")
	f.Add("GET", nodesPath+"?watch=1&labelSelector=a", "Bearer good", acceptOfLists, "", "Upgrade: websocket", "")
	f.Add("GET", "/api/v1/nodes/node-1/../node-2", "Bearer bad", "*/*", "", "", "")
	f.Fuzz(func(t *testing.T, method, target, authorization, accept, kind, header, body string) {
		u, err := url.ParseRequestURI(target)
		if err != nil || method == "" || strings.ContainsAny(method, " \r\n") {
			return
		}
		s := newStore(with(intentOf(marker.ActionRebootUpdate), "example.com/theirs", "kept"))
		was := foreign(s.node)
		h, _, _ := handlerOf(t, s)
		r := &http.Request{Method: method, URL: u, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, RemoteAddr: "10.0.0.1:1",
			Header: http.Header{"Authorization": {strings.ReplaceAll(authorization, "good", goodToken)}, "Accept": {accept}, "Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(body))}
		if k, v, ok := strings.Cut(header, ": "); ok && http.CanonicalHeaderKey(k) != "" {
			r.Header.Add(k, v)
		}
		serve(h, r.WithContext(t.Context()))
		assert.Equal(t, foreign(s.node), was)
		for i, got := range s.requests {
			judgeUpstream(t, got, s.bodies[i])
		}
		if scheme, token, _ := strings.Cut(authorization, " "); !strings.EqualFold(scheme, "Bearer") || token != "good" {
			assert.Equal(t, len(s.requests), 0)
		}
	})
}

func judgeUpstream(t *testing.T, got *http.Request, body string) {
	t.Helper()
	allowed := map[string]bool{"Accept": true, "Content-Type": true}
	for k := range got.Header {
		assert.Assert(t, allowed[k], k)
	}
	path := strings.TrimPrefix(got.URL.Path, "/prefix")
	switch got.Method {
	case http.MethodGet:
		assert.Assert(t, path == ownNode || path == nodesPath, path)
		if path == nodesPath {
			assert.DeepEqual(t, got.URL.Query()["fieldSelector"], []string{"metadata.name=node-1"})
			assert.Assert(t, strings.Contains(got.Header.Get("Accept"), "PartialObjectMetadata"))
		}
		assert.Equal(t, body, "")
	case http.MethodPatch:
		assert.Equal(t, path, ownNode)
		assert.Equal(t, got.Header.Get("Content-Type"), patchType)
		p, refusal := ParsePatch([]byte(body))
		assert.Assert(t, refusal == nil && p.ResourceVersion != "")
		for k := range p.Annotations {
			assert.Assert(t, marker.Owns(marker.WriterAgent, k), k)
		}
	default:
		t.Fatalf("%s went on", got.Method)
	}
}

// foreign is all of a node that isn't the agent's.
func foreign(node map[string]any) string {
	n := maps.Clone(node)
	m := maps.Clone(n["metadata"].(map[string]any))
	a := maps.Clone(m["annotations"].(map[string]any))
	for _, k := range marker.Keys(marker.WriterAgent) {
		delete(a, string(k))
	}
	delete(m, "resourceVersion")
	m["annotations"], n["metadata"] = a, m
	out, err := json.Marshal(n)
	if err != nil {
		panic(err)
	}
	return string(out)
}

func answerPatchOf(state string) string {
	return strings.NewReplacer("RV", "10").Replace(answerPatch(intentID, state, ""))
}
