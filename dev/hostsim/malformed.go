package hostsim

import (
	"bytes"
	"maps"
	"regexp"
	"slices"
	"time"
)

// malformed are the variants of F13. Each turns the body of a good answer (200, JSON) into another
// answer; one that has nothing to change in it leaves it.
var malformed = map[string]func(body []byte) Answer{
	// cut: half of the JSON, with a content length to match.
	"cut": func(b []byte) Answer { return ok200(b[:len(b)/2]) },
	// html: the page of another web server.
	"html": func([]byte) Answer {
		return Answer{Status: 200, ContentType: "text/html", Body: []byte("<html>\n<body>It works!</body>\n</html>\n")}
	},
	// empty: no body at all.
	"empty": func([]byte) Answer { return ok200(nil) },
	// types: a number where a string belongs.
	"types": func(b []byte) Answer {
		return ok200(wrongType.ReplaceAll(b, []byte(`"$1":7`)))
	},
	// state: an unknown update_state.
	"state": func(b []byte) Answer {
		return ok200(anyState.ReplaceAll(b, []byte(`"update_state":"Rebooting"`)))
	},
	// command: an unknown cmd_type.
	"command": func(b []byte) Answer {
		return ok200(anyCommand.ReplaceAll(b, []byte(`"cmd_type":"defragment"`)))
	},
	// version: versions that are none.
	"version": func(b []byte) Answer {
		return ok200(anyVersion.ReplaceAll(b, []byte(`"$1":"one point two"`)))
	},
	// extra: unknown fields. A client is to ignore them.
	"extra": func(b []byte) Answer {
		return ok200(append([]byte(`{"surprise":{"level":9,"tags":["a",null]},`), bytes.TrimPrefix(b, []byte("{"))...))
	},
	// nulls: a record of the last command with nothing in it. Legal, though no host is known to do it.
	"nulls": func(b []byte) Answer {
		return ok200(anyRecord.ReplaceAll(b, []byte(`"most_recent_command":{"cmd_type":"refresh","cmd_status":"Unknown","timestamp":"2026-09-20T10:00:02Z","exit_status":null,"stderr":null}`)))
	},
	// oversize: more than a client should read.
	"oversize": func(b []byte) Answer {
		return ok200(append(bytes.Repeat([]byte(" "), 2<<20), b...))
	},
	// dispatcher: the status file is corrupt.
	variantDispatcher: func([]byte) Answer { return textAnswer(500, bodyDispatcher) },
}

var (
	wrongType  = regexp.MustCompile(`"(update_state|version_id)":"[^"]*"`)
	anyState   = regexp.MustCompile(`"update_state":"[^"]*"`)
	anyCommand = regexp.MustCompile(`"cmd_type":"[^"]*"`)
	anyVersion = regexp.MustCompile(`"(version|version_id)":"[^"]*"`)
	anyRecord  = regexp.MustCompile(`"most_recent_command":(null|\{[^}]*\})`)
)

func ok200(body []byte) Answer {
	return Answer{Status: 200, ContentType: "application/json", Body: body}
}

// malformedVariants has "cut" in front, as the default.
func malformedVariants() []string {
	names := slices.Sorted(maps.Keys(malformed))
	names = slices.DeleteFunc(names, func(s string) bool { return s == "cut" })
	return append([]string{"cut"}, names...)
}

// malform lets F13 strike a good answer of the two GETs that matter.
func (h *Host) malform(r Request, a Answer, now time.Time) Answer {
	if r.Method != "GET" || a.Status != 200 {
		return a
	}
	f, ok := h.strike(F13, now, func(f Fault) bool {
		return r.Path == f.On || f.On == "" && r.Path == pathStatus
	})
	if !ok {
		return a
	}
	return malformed[f.Variant](a.Body)
}
