package authorizer

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

const (
	// maxBody is far above an agent's patch.
	maxBody = 64 << 10
	// requestTime bounds every request that isn't a watch.
	requestTime = 20 * time.Second
)

// handler is the proxy's API.
type handler struct {
	reviewer *reviewer
	upstream *upstream
	limits   *limits
	metrics  *metrics
	now      func() time.Time
	log      logrus.FieldLogger
	// stopping ends when the process shuts down; watches end with it.
	stopping context.Context
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	identity, refusal, err := h.reviewer.identify(r)
	if err != nil {
		h.log.WithError(err).Warn("A token could not be reviewed")
		refusal = refuse(ReasonUpstream, "the token could not be reviewed: the API server did not answer")
	}
	if refusal == nil {
		leave, ok := h.limits.enter(identity.PodUID)
		if ok {
			defer leave()
			refusal = h.serve(w, r, identity)
		} else {
			refusal = refuse(ReasonTooMany, "too many requests of one agent")
		}
	}
	if refusal != nil {
		h.audit(r, identity, refusal)
		refusal.write(w)
	}
}

func (h *handler) audit(r *http.Request, i Identity, refusal *Refusal) {
	h.metrics.refused.WithLabelValues(string(refusal.Reason)).Inc()
	log := h.log.WithFields(logrus.Fields{
		telemetry.FieldNode: i.NodeName, telemetry.FieldPod: i.PodName, telemetry.FieldMethod: r.Method,
		telemetry.FieldPath: r.URL.Path, telemetry.FieldReason: string(refusal.Reason), telemetry.FieldMessage: refusal.Message,
	})
	// A conflict is everyday life: somebody wrote first, and the agent looks again.
	if refusal.Reason == ReasonConflict {
		log.Debug("Refused a request")
		return
	}
	log.Warn("Refused a request")
}

// serve answers the request, or returns why not; then nothing was written to w.
func (h *handler) serve(w http.ResponseWriter, r *http.Request, i Identity) *Refusal {
	c, refusal := parse(r)
	if refusal != nil {
		return refusal
	}
	if c.node != i.NodeName {
		return refuse(ReasonNode, "node %.80q is not the agent's own, %q", c.node, i.NodeName)
	}
	accept := metadataOnly(r.Header.Get("Accept"))
	if accept == "" {
		return refuse(ReasonAccept, "only metadata is served: ask for PartialObjectMetadata of meta.k8s.io/v1")
	}
	h.metrics.requests.WithLabelValues(string(c.verb)).Inc()
	ctx := r.Context()
	if c.verb != verbWatch {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, requestTime)
		defer cancel()
	}
	live, refusal := h.live(ctx, i)
	if refusal != nil {
		return refusal
	}
	if c.verb == verbPatch {
		return h.patch(ctx, w, r, c, i, live, accept)
	}
	if live.UID != i.NodeUID {
		return refuse(ReasonNodeUID, "node %q is another one than the token was issued for", live.Name)
	}
	return h.read(ctx, w, c, accept)
}

// live reads the agent's Node now, from no cache.
func (h *handler) live(ctx context.Context, i Identity) (Live, *Refusal) {
	res, err := h.upstream.do(ctx, http.MethodGet, nodesPath+"/"+i.NodeName, nil, "application/json", "", nil)
	if err != nil {
		return Live{}, h.unavailable(err)
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusNotFound {
		return Live{}, refuse(ReasonNodeUID, "node %q is gone", i.NodeName)
	}
	var n corev1.Node
	if res.StatusCode != http.StatusOK || json.NewDecoder(res.Body).Decode(&n) != nil {
		return Live{}, refuse(ReasonUpstream, "node %q could not be read: the API server answered %s", i.NodeName, res.Status)
	}
	return Live{Name: n.Name, UID: string(n.UID), ResourceVersion: n.ResourceVersion, Annotations: n.Annotations, Unschedulable: n.Spec.Unschedulable}, nil
}

func (h *handler) unavailable(err error) *Refusal {
	h.log.WithError(err).Warn("The API server could not be asked")
	return refuse(ReasonUpstream, "the API server did not answer")
}

func (h *handler) patch(ctx context.Context, w http.ResponseWriter, r *http.Request, c call, i Identity, live Live, accept string) *Refusal {
	if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); strings.TrimSpace(kind) != patchType {
		return refuse(ReasonPatchType, "content type %.60q is not allowed: send %s", r.Header.Get("Content-Type"), patchType)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return refuse(ReasonPatch, "the patch could not be read, or is longer than %d bytes", maxBody)
	}
	p, err := ParsePatch(body)
	if err != nil {
		return refuse(ReasonPatch, "%v", err)
	}
	if refusal := Judge(Write{Identity: i, Live: live, Patch: p, Now: h.now()}); refusal != nil {
		return refusal
	}
	if body, err = p.body(); err != nil {
		return refuse(ReasonPatch, "%v", err)
	}
	res, err := h.upstream.do(ctx, http.MethodPatch, nodesPath+"/"+c.node, c.query, accept, patchType, body)
	if err != nil {
		return h.unavailable(err)
	}
	h.pass(w, res)
	return nil
}

func (h *handler) read(ctx context.Context, w http.ResponseWriter, c call, accept string) *Refusal {
	path := nodesPath
	if c.verb == verbGet {
		path += "/" + c.node
	} else {
		// Replaced, never added to: two selectors would be one that is not ours.
		c.query.Set("fieldSelector", "metadata.name="+c.node)
	}
	if c.verb == verbWatch {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(h.stopping, cancel)()
		h.metrics.watches.Inc()
		defer h.metrics.watches.Dec()
	}
	res, err := h.upstream.do(ctx, http.MethodGet, path, c.query, accept, "", nil)
	if err != nil {
		return h.unavailable(err)
	}
	h.pass(w, res)
	return nil
}

// pass hands an answer on as it comes, each piece at once: a watch is a body that goes on.
func (h *handler) pass(w http.ResponseWriter, res *http.Response) {
	defer res.Body.Close()
	for _, k := range []string{"Content-Type", "Retry-After", "Warning", "Audit-Id"} {
		if v := res.Header.Get(k); v != "" {
			w.Header().Set(k, v)
		}
	}
	w.WriteHeader(res.StatusCode)
	control := http.NewResponseController(w)
	_ = control.Flush()
	buffer := make([]byte, 8<<10)
	for {
		n, err := res.Body.Read(buffer)
		if n > 0 {
			if _, werr := w.Write(buffer[:n]); werr != nil {
				return
			}
			_ = control.Flush()
		}
		if err != nil {
			return
		}
	}
}
