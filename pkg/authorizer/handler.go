package authorizer

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/pkg/errors"
	"github.com/sirupsen/logrus"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/authorizer/rule"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/connlimit"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube/access"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

const (
	// maxBody is far above the size of an agent's patch.
	maxBody = 64 << 10
	// requestTime bounds every request to the API server that isn't a watch, writeTime how long a client may take to
	// accept a piece of an answer.
	requestTime = 15 * time.Second
	writeTime   = 30 * time.Second
	// patchesAtOnce limits the bodies in memory, where they stay while the API server doesn't answer.
	patchesAtOnce = 256
)

// handler is the proxy's API.
type handler struct {
	reviewer *reviewer
	upstream *upstream
	limits   *lruMap[string, *limit]
	patches  chan struct{}
	audit    *auditor
	metrics  *Metrics
	now      func() time.Time
	log      logrus.FieldLogger
	trust    trust
	enforcer access.Enforcer
	// stopping ends when the process shuts down; watches end with it.
	stopping context.Context
}

// agentCall is a call of an identified agent.
type agentCall struct {
	call
	token    string
	identity Identity
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	address, conn, token := connlimit.Source(r.RemoteAddr), connectionOf(r), bearer(r)
	reviewed, err := h.reviewer.identify(r.Context(), token, address)
	refusal := reviewed.refusal
	if err != nil {
		refusal = h.unavailable(r.Context(), err)
	}
	if refusal == nil {
		conn.authenticate(reviewed.identity.PodUID)
		var leave func()
		if leave, refusal = h.limits.get(reviewed.identity.PodUID).enter(); refusal == nil {
			defer leave()
			refusal = h.serve(w, r, token, reviewed.identity)
		}
	}
	if refusal != nil {
		h.audit.refused(r, reviewed.identity, address, refusal)
		conn.endAfterAnswer(w)
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime))
		write(w, refusal)
	}
}

// serve answers the request, or returns its refusal without writing to w.
func (h *handler) serve(w http.ResponseWriter, r *http.Request, token string, i Identity) *Refusal {
	c, refusal := parse(r)
	if refusal != nil {
		return refusal
	}
	if c.node != i.NodeName {
		return rule.Refuse(rule.ReasonNode, "node %.80q is not the agent's own, %q", c.node, i.NodeName)
	}
	h.metrics.requests.WithLabelValues(string(c.verb)).Inc()
	a := agentCall{call: c, token: token, identity: i}
	switch c.verb {
	case verbPatch:
		return h.patch(w, r, a)
	case verbWatch:
		return h.watch(w, r, a)
	case verbGet, verbList:
	}
	ctx, cancel := context.WithTimeout(r.Context(), requestTime)
	defer cancel()
	if refusal := h.own(ctx, i); refusal != nil {
		return refusal
	}
	h.enforcer.Ask(h.stopping, i.NodeName)
	res, answer, err := h.upstream.ask(ctx, http.MethodGet, c, nil)
	if err != nil {
		return h.unavailable(ctx, err)
	}
	return h.answer(w, res, answer)
}

// own refuses if the node isn't any more the one that the token was issued for.
func (h *handler) own(ctx context.Context, i Identity) *Refusal {
	live, refusal, err := h.upstream.live(ctx, i.NodeName, acceptMetadata)
	switch {
	case err != nil:
		return h.unavailable(ctx, err)
	case refusal != nil:
		return refusal
	case live.UID != i.NodeUID:
		return rule.OtherNode(i.NodeName)
	}
	return nil
}

func (h *handler) unavailable(ctx context.Context, err error) *Refusal {
	// If the client disconnected, the API server is not at fault.
	if !errors.Is(ctx.Err(), context.Canceled) {
		h.audit.upstream(err)
	}
	return rule.Refuse(rule.ReasonUpstream, "the proxy got no answer from the API server")
}

// patch reads the whole patch first, and the node last, so that only the write remains after the judgement.
func (h *handler) patch(w http.ResponseWriter, r *http.Request, a agentCall) *Refusal {
	if kinds := r.Header.Values("Content-Type"); len(kinds) != 1 || !isPatch(kinds[0]) {
		return rule.Refuse(rule.ReasonPatchType, "content type %.60q is not allowed: send %s", strings.Join(kinds, ", "), patchType)
	}
	if r.Header.Get("Content-Encoding") != "" {
		return rule.Refuse(rule.ReasonPatchType, "a content encoding is not allowed: send the patch as it is")
	}
	release, refusal := h.hold(r.Context())
	if refusal != nil {
		return refusal
	}
	defer release()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return rule.Refuse(rule.ReasonPatch, "the patch could not be read, or is longer than %d bytes", maxBody)
	}
	p, refusal := ParsePatch(body)
	if refusal != nil {
		return refusal
	}
	ctx, cancel := context.WithTimeout(r.Context(), requestTime)
	defer cancel()
	live, refusal, err := h.upstream.live(ctx, a.identity.NodeName, acceptNode)
	if err != nil {
		return h.unavailable(ctx, err)
	}
	if refusal != nil {
		return refusal
	}
	if refusal := rule.Judge(Write{NodeName: a.identity.NodeName, NodeUID: a.identity.NodeUID, Live: live, Patch: p, Now: h.now()}); refusal != nil {
		return refusal
	}
	if body, err = p.Body(); err != nil {
		return rule.Refuse(rule.ReasonPatch, "%v", err)
	}
	res, answer, err := h.upstream.ask(ctx, http.MethodPatch, a.call, body)
	if err != nil {
		// It may have been written or not: the agent reads the node again.
		return h.unavailable(ctx, err)
	}
	h.log.WithFields(logrus.Fields{telemetry.FieldNode: a.node, telemetry.FieldStatus: res.StatusCode}).Debug("Wrote a report")
	return h.answer(w, res, answer)
}

// hold waits until another body may be in memory.
func (h *handler) hold(ctx context.Context) (release func(), refusal *Refusal) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	select {
	case h.patches <- struct{}{}:
		return func() { <-h.patches }, nil
	case <-ctx.Done():
		return nil, rule.Refuse(rule.ReasonTooMany, "too many patches are being written: try again later")
	}
}

// isPatch reports whether a Content-Type is the one patch type, with no parameter except its character set.
func isPatch(kind string) bool {
	kind, param, _ := strings.Cut(kind, ";")
	param = strings.ToLower(strings.TrimSpace(param))
	return strings.TrimSpace(kind) == patchType && (param == "" || param == "charset=utf-8")
}

// passedHeaders are the headers that an answer keeps.
var passedHeaders = []string{"Content-Type", "Retry-After", "Warning", "Audit-Id"}

// head writes status and headers of the API server's answer. It passes on neither redirects nor a 401, which is about
// the proxy's own account.
func (h *handler) head(w http.ResponseWriter, res *http.Response) *Refusal {
	if res.StatusCode == http.StatusUnauthorized || res.StatusCode < 200 || res.StatusCode >= 300 && res.StatusCode < 400 {
		h.audit.upstream(errors.Errorf("the answer %s can't be passed on", res.Status))
		return rule.Refuse(rule.ReasonUpstream, "the API server answered the proxy with %d", res.StatusCode)
	}
	for _, k := range passedHeaders {
		for _, v := range res.Header.Values(k) {
			w.Header().Add(k, v)
		}
	}
	w.Header().Set("Cache-Control", "no-cache, private")
	w.WriteHeader(res.StatusCode)
	return nil
}

func (h *handler) answer(w http.ResponseWriter, res *http.Response, body []byte) *Refusal {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime))
	if refusal := h.head(w, res); refusal != nil {
		return refusal
	}
	_, _ = w.Write(body)
	return nil
}
