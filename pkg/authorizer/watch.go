package authorizer

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

// trust is how long a watch goes on by one review of its token.
type trust struct {
	// every review comes after so long, with up to a third of it on top, so that agents which came together
	// don't ask together; again where none was to be had.
	every, again time.Duration
	// most is how long a watch lives on its last good review.
	most time.Duration
}

// defaultTrust keeps to a minute, the API server's own memory of a token (10 s) included.
var defaultTrust = trust{every: 30 * time.Second, again: 3 * time.Second, most: 50 * time.Second}

// watch passes on a watch for as long as its token is good and the process lives.
func (h *handler) watch(w http.ResponseWriter, r *http.Request, a asked) *Refusal {
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

// keepTrust ends the watch when its token is no good any more, when its node is gone or another one has its name, or
// when that could not be found out for too long.
func (h *handler) keepTrust(ctx context.Context, end func(), a asked) {
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
			log.Info("Ending a watch whose token is not known to be good any more")
		}
		end()
		return
	}
}

// again reviews a watch's token once more, and looks if its node is the same one still. It may not be known now.
func (h *handler) again(ctx context.Context, a asked) (refusal *Refusal, known bool) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	v, err := h.reviewer.ask(ctx, a.token, h.reviewer.signedReview)
	switch {
	case err != nil:
		return nil, false
	case v.refusal != nil:
		// A request that shows the same token may have been refused a review at this moment: nothing is known by that.
		return v.refusal, v.refusal.Reason != ReasonTooMany
	case v.identity != a.identity:
		return otherNode(a.node), true
	}
	refusal = h.own(ctx, a.identity)
	return refusal, refusal == nil || refusal.Reason != ReasonUpstream
}

func (t trust) pause() time.Duration { return t.every + rand.N(t.every/3+1) }

// stream hands on a body as it comes, each piece at once. A peer that takes nothing for a while is given
// up; one that has nothing to take isn't.
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
	// The head goes out at once: client-go waits for it.
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
