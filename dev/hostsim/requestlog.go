package hostsim

import (
	"maps"
	"slices"
	"time"
)

// maxLogged bounds the log of requests; the oldest go first.
const maxLogged = 10000

// LoggedRequest is one request that reached the host.
type LoggedRequest struct {
	Time   time.Time `json:"time"`
	Method string    `json:"method"`
	Path   string    `json:"path"`
	// Status is 0 if there was to be no answer. The answer may have been cut for all that.
	Status int `json:"status"`
}

// Counters count since New.
type Counters struct {
	// Boots are starts of a kernel, those that fail included.
	Boots int `json:"boots"`
	// RebootsAsked are requests to reboot, whatever the answer.
	RebootsAsked int `json:"reboots_asked"`
	// Commands are those that were asked for through the API and accepted.
	Commands map[Command]int `json:"commands"`
}

func (c Counters) clone() Counters {
	c.Commands = maps.Clone(c.Commands)
	return c
}

func (h *Host) logRequest(r LoggedRequest) {
	if len(h.log) >= maxLogged {
		h.log = slices.Delete(h.log, 0, maxLogged/2)
	}
	h.log = append(h.log, r)
}

// Requests returns the log of requests, oldest first; it keeps at least the last 5000.
func (h *Host) Requests() []LoggedRequest {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.log)
}
