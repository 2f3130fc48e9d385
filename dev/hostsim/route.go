package hostsim

import (
	"net/url"
	"time"
)

// The paths of the API that the faults are about.
const (
	pathOS      = "/os"
	pathStatus  = "/updates/status"
	pathActions = "/actions/"
	pathReboot  = "/actions/reboot"
)

// Request is an HTTP request to the API.
type Request struct {
	Method, Path string
	Query        url.Values
	ContentType  string
	Body         []byte
}

// Answer is what the API answers, and how the connection treats it.
type Answer struct {
	// Status is the HTTP status; 0 when there is none.
	Status int
	// ContentType is empty when there is no body, and for a verdict in text.
	ContentType string
	Body        []byte
	Cut         Cut
}

// Cut is how an answer is spoiled on its way.
type Cut int

const (
	// CutNone: it arrives.
	CutNone Cut = iota
	// CutSilent: no byte ever comes.
	CutSilent
	// CutHeaders: the connection stalls after the headers.
	CutHeaders
	// CutBody: the connection ends in the middle of the body, or of the headers when there is none.
	CutBody
	// CutEOF: the connection ends before the first byte.
	CutEOF
	// CutReset: the connection is reset before the first byte.
	CutReset
)

func textAnswer(status int, body string) Answer {
	return Answer{Status: status, Body: []byte(body)}
}

func jsonAnswer(v any) Answer {
	body, err := encode(v)
	if err != nil {
		return textAnswer(500, "Unable to serialize response: "+err.Error())
	}
	return Answer{Status: 200, ContentType: "application/json", Body: body}
}

// Handle answers one request and logs it. It doesn't call OnReboot: the caller delivers the
// answer and calls Settle then.
func (h *Host) Handle(r Request) Answer {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.advance()
	a := h.answer(r, now)
	h.logRequest(LoggedRequest{Time: now, Method: r.Method, Path: r.Path, Status: a.Status})
	return a
}

func (h *Host) answer(r Request, now time.Time) Answer {
	if h.off {
		return Answer{Cut: CutEOF}
	}
	hang, hangs := h.strike(F12, now, func(f Fault) bool { return f.isFor(r) })
	if hangs && hang.Variant == "silent" {
		// The one worker is stuck, so the request wasn't read.
		return Answer{Cut: CutSilent}
	}
	if f, ok := h.strike(F32, now, func(f Fault) bool { return f.isFor(r) }); ok {
		if f.Variant == variantReset {
			return Answer{Cut: CutReset}
		}
		return Answer{Status: 408}
	}
	a := h.malform(r, h.route(r, now), now)
	if hangs && a.Cut == CutNone {
		a.Cut = CutHeaders
		if hang.Variant == "truncated" {
			a.Cut = CutBody
		}
	}
	return a
}

func (h *Host) route(r Request, now time.Time) Answer {
	if _, ok := h.strike(F25, now, isRoutes); ok {
		return Answer{Status: 404}
	}
	switch r.Method + " " + r.Path {
	case "GET " + pathOS:
		return h.getOS(r.Query)
	case "GET " + pathStatus:
		return h.getStatus(now)
	case "POST " + pathReboot:
		return h.reboot(now)
	case "GET /settings":
		return h.getSettings(r, now)
	case "PATCH /settings":
		return h.patchSettings(r, now)
	case "POST /tx/commit_and_apply":
		return h.commit(r, now)
	case "GET /":
		return h.getRoot(r, now)
	}
	if c, ok := commandOf(r.Path); ok && r.Method == "POST" {
		return h.action(c, r.Path, now)
	}
	// Also for a known path with a wrong method: the server tells no difference.
	return Answer{Status: 404}
}

// commandOf is the update command that a POST to path asks for.
func commandOf(path string) (Command, bool) {
	switch path {
	case pathActions + "refresh-updates":
		return Refresh, true
	case pathActions + "prepare-update":
		return Prepare, true
	case pathActions + "activate-update":
		return Activate, true
	case pathActions + "deactivate-update":
		return Deactivate, true
	}
	return "", false
}

// getStatus answers GET /updates/status. The lock is tested first.
func (h *Host) getStatus(now time.Time) Answer {
	if _, ok := h.strike(F25, now, isDispatcher); ok {
		return textAnswer(404, bodyUninitialized)
	}
	if h.locked(now) {
		return textAnswer(423, bodyStatusLocked)
	}
	if h.record == nil {
		return textAnswer(404, bodyUninitialized)
	}
	return jsonAnswer(h.record)
}

// isRoutes and isDispatcher tell the two kinds of F25 apart.
func isRoutes(f Fault) bool     { return f.Variant == variantRoutes }
func isDispatcher(f Fault) bool { return f.Variant == variantDispatcher }
