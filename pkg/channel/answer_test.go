package channel

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plain"
)

// Retry-After is seconds or a date, and no channel can silence itself for more than a day.
func TestRetryAfter(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"":                                 0,
		"0":                                0,
		"120":                              2 * time.Minute,
		" 120 ":                            2 * time.Minute,
		"86401":                            24 * time.Hour,
		"99999999999999999999999":          24 * time.Hour,
		"9223372036854775807":              24 * time.Hour,
		"Mon, 02 Nov 2026 08:30:00 GMT":    30 * time.Minute,
		"Monday, 02-Nov-26 08:30:00 GMT":   30 * time.Minute,
		"Mon Nov  2 08:30:00 2026":         30 * time.Minute,
		"Mon, 02 Nov 2026 07:30:00 GMT":    0,
		"Fri, 31 Dec 9999 23:59:59 GMT":    24 * time.Hour,
		"-1":                               0,
		"1.5":                              0,
		"soon":                             0,
		"Mon, 02 Nov 2026 08:30:00 +0100x": 0,
	} {
		assert.Equal(t, retryAfter(value, now), want, "%q", value)
	}
}

const stable = "https://example.com/v1-release/channels/stable"

// The version is what the last path element of the redirect's address says, or of the channel's own; all else is a
// problem that says what was found.
func TestRead(t *testing.T) {
	header := func(of ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(of); i += 2 {
			h.Set(of[i], of[i+1])
		}
		return h
	}
	to := func(location string) http.Header { return header("Location", location) }
	tag := validators{etag: `W/"a"`}
	for _, tc := range []struct {
		name, channel string
		status        int
		header        http.Header
		asked         validators
		want          answer
	}{
		{"a redirect", stable, 302, to("https://github.com/k3s-io/k3s/releases/tag/v1.36.3+k3s1"), tag, answer{version: "v1.36.3+k3s1"}},
		{"an escaped plus", stable, 302, to("https://github.com/k3s-io/k3s/releases/tag/v1.36.3%2Bk3s1"), tag, answer{version: "v1.36.3+k3s1"}},
		{"moved for good", stable, 301, to("https://example.com/v1.36.3"), tag, answer{version: "v1.36.3"}},
		{"see other", stable, 303, to("https://example.com/v1.36.3"), tag, answer{version: "v1.36.3"}},
		{"temporary", stable, 307, to("https://example.com/v1.36.3"), tag, answer{version: "v1.36.3"}},
		{"permanent", stable, 308, to("https://example.com/v1.36.3"), tag, answer{version: "v1.36.3"}},
		{"without a v", stable, 302, to("https://example.com/1.36.3-rc.1"), tag, answer{version: "1.36.3-rc.1"}},
		{"another port", stable, 302, to("https://example.com:8443/v1.36.3"), tag, answer{version: "v1.36.3"}},
		{"a query and a fragment", stable, 302, to("https://example.com/v1.36.3?x=/v2.0.0#/v3.0.0"), tag, answer{version: "v1.36.3"}},
		{"a slash at the end", stable, 302, to("https://example.com/v1.36.3/"), tag, answer{version: "v1.36.3"}},
		{"a relative path", stable, 302, to("v1.36.3"), tag, answer{version: "v1.36.3"}},
		{"a relative path upwards", stable, 302, to("../../tag/v1.36.3%2Bk3s1"), tag, answer{version: "v1.36.3+k3s1"}},
		{"a path of the same host", stable, 302, to("/tag/v1.36.3"), tag, answer{version: "v1.36.3"}},
		{"another host by the same scheme", stable, 302, to("//example.org/v1.36.3"), tag, answer{version: "v1.36.3"}},
		{"no location", stable, 302, header(), tag, answer{problem: "the channel redirects without saying where to"}},
		{"no address", stable, 302, to("https://[::1"), tag, answer{problem: "the channel redirects to what is no address"}},
		{"http", stable, 302, to("http://example.com/v1.36.3"), tag,
			answer{problem: "the channel redirects to an address that does not begin with https:// and a host"}},
		{"a file", stable, 302, to("file:///v1.36.3"), tag, answer{problem: "the channel redirects to an address that does not begin with https:// and a host"}},
		{"no host", stable, 302, to("https:///v1.36.3"), tag, answer{problem: "the channel redirects to an address that does not begin with https:// and a host"}},
		{"opaque", stable, 302, to("https:v1.36.3"), tag, answer{problem: "the channel redirects to an address that does not begin with https:// and a host"}},
		{"user info", stable, 302, to("https://a:b@example.com/v1.36.3"), tag, answer{problem: "the channel redirects to an address with user info"}},
		{"no version", stable, 302, to("https://example.com/login"), tag, answer{problem: `the channel redirects to "login", which is no version such as v1.36.3`}},
		{"no path", stable, 302, to("https://example.com"), tag, answer{problem: `the channel redirects to "", which is no version such as v1.36.3`}},
		{"a short version", stable, 302, to("https://example.com/v1.36"), tag, answer{problem: `the channel redirects to "v1.36", which is no version such as v1.36.3`}},
		{"two v", stable, 302, to("https://example.com/vv1.36.3"), tag, answer{problem: `the channel redirects to "vv1.36.3", which is no version such as v1.36.3`}},
		{"an escaped slash", stable, 302, to("https://example.com/v1.0.0%2Fv1.36.3"), tag,
			answer{problem: `the channel redirects to "v1.0.0/v1.36.3", which is no version such as v1.36.3`}},
		{"control characters", stable, 302, to("https://example.com/v1.0.0%0A%1B[31m%23"), tag,
			answer{problem: `the channel redirects to "v1.0.0 ?[31m#", which is no version such as v1.36.3`}},
		{"one that fits in no annotation", stable, 302, to("https://example.com/v1.36.3+" + strings.Repeat("x", 60)), tag,
			answer{problem: `the channel redirects to "v1.36.3+` + strings.Repeat("x", 60) + `", which is no version such as v1.36.3`}},
		{"one that is very long", stable, 302, to("https://example.com/v1.36.3+" + strings.Repeat("x", 4000)), tag,
			answer{problem: `the channel redirects to "v1.36.3+` + strings.Repeat("x", maxQuoted-len("v1.36.3+...")) + `...", which is no version such as v1.36.3`}},

		{"its own address", "https://example.com/v1.36.3%2Bk3s1?x=y", 200, header("ETag", `"b"`, "Last-Modified", "then"), tag,
			answer{version: "v1.36.3+k3s1", validators: validators{`"b"`, "then"}}},
		{"its own address, with a location", "https://example.com/v1.36.3", 201, to("https://example.com/v1.37.0"), tag, answer{version: "v1.36.3"}},
		{"its own address is no version", stable, 200, header("ETag", `"b"`), tag,
			answer{problem: `the channel does not redirect, and ends with "stable", which is no version such as v1.36.3`}},
		{"validators that can't be sent back", "https://example.com/v1.36.3", 200, header("ETag", "\"\x01\"", "Last-Modified", strings.Repeat("x", maxValidator+1)), tag,
			answer{version: "v1.36.3"}},
		{"nothing has changed", stable, 304, header(), tag, answer{unchanged: true}},
		{"nothing has changed but the tag", stable, 304, header("ETag", `"b"`), tag, answer{unchanged: true, validators: validators{etag: `"b"`}}},
		{"nothing has changed since nothing", stable, 304, header(), validators{}, answer{problem: "the channel answers with status 304, which it was not asked for"}},

		{"not found", stable, 404, header(), tag, answer{problem: "the channel answers with status 404"}},
		{"choices", stable, 300, to("https://example.com/v1.36.3"), tag, answer{problem: "the channel answers with status 300"}},
		{"too many", stable, 429, header("Retry-After", "120"), tag, answer{problem: "the channel answers with status 429", retryAfter: 2 * time.Minute}},
		{"down until then", stable, 503, header("Retry-After", "Mon, 02 Nov 2026 09:00:00 GMT"), tag,
			answer{problem: "the channel answers with status 503", retryAfter: time.Hour}},
		{"well, and asked often", stable, 302, header("Location", "/v1.36.3", "Retry-After", "3600"), tag, answer{version: "v1.36.3", retryAfter: time.Hour}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			u, problem := parse(tc.channel)
			assert.Equal(t, problem, "")
			assert.Equal(t, read(u, tc.status, tc.header, tc.asked, now), tc.want)
		})
	}
}

// No address but one of https is ever asked, and none with a password, which isn't quoted either.
func TestParse(t *testing.T) {
	for channel, want := range map[string]string{
		stable:                             "",
		"https://example.com":              "",
		"https://[::1]:8443/x":             "",
		"http://example.com/v1.36.3":       "begins with https:// and a host",
		"HTTPS://example.com/v1.36.3":      "",
		"//example.com/v1.36.3":            "begins with https:// and a host",
		"https:///v1.36.3":                 "begins with https:// and a host",
		"https://:443/v1.36.3":             "begins with https:// and a host",
		"https:v1.36.3":                    "begins with https:// and a host",
		"":                                 "begins with https:// and a host",
		"https://me:secret@example.com/x":  "user info",
		"https://secret@example.com/x":     "user info",
		"https://example.com/\x00secret":   "is no address",
		"https://example.com:secret/stuff": "is no address",
	} {
		u, problem := parse(channel)
		if want == "" {
			assert.Assert(t, problem == "" && u != nil, "%q: %s", channel, problem)
			continue
		}
		assert.Assert(t, strings.Contains(problem, want) && !strings.Contains(problem, "secret") && u == nil, "%q: %s", channel, problem)
	}
}

// Whatever a channel answers, what is kept is a version that an annotation can hold, or a problem of one printable line.
func FuzzRead(f *testing.F) {
	f.Add(stable, 302, "https://github.com/k3s-io/k3s/releases/tag/v1.36.3%2Bk3s1", `"a"`, "120")
	f.Add("https://example.com/v1.36.3", 200, "", "", "Mon, 02 Nov 2026 08:30:00 GMT")
	f.Add(stable, 304, "http://example.com", "W/\x7f", "-1")
	f.Fuzz(func(t *testing.T, channel string, status int, location, etag, retry string) {
		u, problem := parse(channel)
		if problem != "" {
			return
		}
		assert.Assert(t, u.Scheme == "https" && u.User == nil, channel)
		_, err := url.Parse(u.String())
		assert.NilError(t, err)
		a := read(u, status, http.Header{"Location": {location}, "Etag": {etag}, "Retry-After": {retry}}, validators{etag: `"a"`}, now)
		if a.version != "" {
			assert.Assert(t, a.problem == "" && !a.unchanged && marker.ValidPlanVersion(marker.PlanVersion("k3s", a.version, "")), "%+v", a)
			assert.Equal(t, marker.PlanTargetOf(marker.PlanVersion("k3s", a.version, "")), a.version)
		} else {
			assert.Assert(t, (a.problem != "") != a.unchanged, "%+v", a)
		}
		assert.Equal(t, plain.Line(a.problem, 2*maxReason), a.problem)
		assert.Assert(t, a.retryAfter >= 0 && a.retryAfter <= maxRetryAfter)
		req := http.Request{Header: http.Header{"If-None-Match": {a.etag}}}
		assert.NilError(t, req.Header.Write(discard{}))
	})
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
