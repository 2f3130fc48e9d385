package hostsim

import (
	"net/url"
	"strings"
)

// getOS answers GET /os.
func (h *Host) getOS(q url.Values) Answer {
	version := h.disk.running().Version
	if !q.Has("prefix") && h.os.version == version {
		return h.os.answer
	}
	fields := map[string]string{
		"arch":        h.cfg.Arch,
		"build_id":    h.cfg.BuildID(version),
		"pretty_name": PrettyName(version, h.cfg.Variant),
		"variant_id":  h.cfg.Variant,
		"version_id":  version,
	}
	if q.Has("prefix") {
		prefix := q.Get("prefix")
		if prefix == "" {
			return textAnswer(400, "Input 'prefix' cannot be empty")
		}
		for name := range fields {
			if !strings.HasPrefix(name, prefix) {
				delete(fields, name)
			}
		}
	}
	a := jsonAnswer(fields)
	if !q.Has("prefix") {
		// It is asked for all the time, and stays the same for a whole boot.
		h.os.version, h.os.answer = version, a
	}
	return a
}
