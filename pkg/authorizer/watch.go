package authorizer

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/authorizer/rule"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

// trust is how often a watch's token is reviewed, and for how long one review counts.
type trust struct {
	// every is the interval of reviews; up to a third is added, so that agents that connected together are reviewed at
	// different times. again is the pause after a review that failed.
	every, again time.Duration
	// most is how long a watch may last after its last good review.
	most time.Duration
}

// defaultTrust ends a watch within a minute, the API server's own cache of tokens (10 s) included.
var defaultTrust = trust{every: 30 * time.Second, again: 3 * time.Second, most: 50 * time.Second}

// watch passes on a watch until its token isn't good any more, its time is over, or the process stops.
func (h *handler) watch(w http.ResponseWriter, r *http.Request, a agentCall) *Refusal {
	ctx, end := context.WithTimeout(r.Context(), watchTime+requestTime)
	defer end()
	defer context.AfterFunc(h.stopping, end)()
	look, cancel := context.WithTimeout(ctx, requestTime)
	refusal := h.own(look, a.identity)
	cancel()
	if refusal != nil {
		return refusal
	}
	res, err := h.upstream.do(ctx, http.MethodGet, a.call, nil)
	if err != nil {
		return h.unavailable(ctx, err)
	}
	defer res.Body.Close()
	if refusal := h.head(w, res); refusal != nil {
		return refusal
	}
	h.metrics.watches.Inc()
	defer h.metrics.watches.Dec()
	go h.keepTrust(ctx, end, a)
	stream(w, res)
	return nil
}

// keepTrust ends the watch when its token isn't good any more, when its node is gone or replaced by another one of that
// name, or when neither could be checked for too long.
func (h *handler) keepTrust(ctx context.Context, end func(), a agentCall) {
	// The review that opened the watch may have been remembered.
	good := time.Now().Add(-reviewFor)
	pause := h.trust.pause()
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		at := time.Now()
		refusal, known := h.again(ctx, a)
		switch {
		case known && refusal == nil:
			good, pause = at, h.trust.pause()
			continue
		case !known && time.Since(good) < h.trust.most:
			pause = h.trust.again
			continue
		}
		if ctx.Err() == nil {
			log := h.log.WithFields(logrus.Fields{telemetry.FieldNode: a.node, telemetry.FieldPod: a.identity.PodName})
			if refusal != nil {
				log = log.WithField(telemetry.FieldReason, string(refusal.Reason))
			}
			log.Info("Ending a watch: its token is not good any more, or could not be reviewed")
		}
		end()
		return
	}
}

// again reviews a watch's token once more, and checks that its node is the same. It reports whether both were possible.
func (h *handler) again(ctx context.Context, a agentCall) (refusal *Refusal, known bool) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	v, err := h.reviewer.ask(ctx, a.token, h.reviewer.signedReview)
	switch {
	case err != nil:
		return nil, false
	case v.refusal != nil:
		// Another request with the same token may have been refused a review just now, which proves nothing.
		return v.refusal, v.refusal.Reason != rule.ReasonTooMany
	case v.identity != a.identity:
		return rule.OtherNode(a.node), true
	}
	refusal = h.own(ctx, a.identity)
	return refusal, refusal == nil || refusal.Reason != rule.ReasonUpstream
}

func (t trust) pause() time.Duration { return t.every + rand.N(t.every/3+1) }

// stream passes on each piece of a body at once. It ends if the client doesn't accept a piece within writeTime; there
// may be any time between pieces.
func stream(w http.ResponseWriter, res *http.Response) {
	control := http.NewResponseController(w)
	buffer := make([]byte, 4<<10)
	send := func(piece []byte) bool {
		_ = control.SetWriteDeadline(time.Now().Add(writeTime))
		if _, err := w.Write(piece); err != nil {
			return false
		}
		if control.Flush() != nil {
			return false
		}
		_ = control.SetWriteDeadline(time.Time{})
		return true
	}
	// client-go waits for the headers.
	if !send(nil) {
		return
	}
	for {
		n, err := res.Body.Read(buffer)
		if n > 0 && !send(buffer[:n]) || err != nil {
			return
		}
	}
}
