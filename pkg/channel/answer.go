package channel

import (
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plain"
)

const (
	// maxQuoted is how much of what a channel names is quoted, and maxReason how much of an error, in bytes.
	maxQuoted = 80
	maxReason = 200
	// maxValidator is far above the length of an ETag, in bytes.
	maxValidator = 256
)

// validators are what an answer can be asked for by: only if it has changed since.
type validators struct{ etag, modified string }

// answer is what one poll has shown: a version, a problem, or that nothing has changed.
type answer struct {
	version string
	// problem is a sentence without a full stop, and begins with "the channel".
	problem   string
	unchanged bool
	validators
	// retryAfter is how long the channel wants to be left alone.
	retryAfter time.Duration
}

// parse reads a channel's address, or says why it is not asked. The address may hold a password, so it isn't quoted.
func parse(channel string) (*url.URL, string) {
	u, err := url.Parse(channel)
	switch {
	case err != nil:
		return nil, "the channel is no address"
	case u.Scheme != "https" || u.Hostname() == "":
		return nil, "the channel is no address that begins with https:// and a host"
	case u.User != nil:
		return nil, "the channel's address has user info, which is never sent: take it out"
	}
	u.Fragment, u.RawFragment = "", ""
	return u, ""
}

// read returns what a channel's answer shows, by its status and its headers.
func read(channel *url.URL, status int, header http.Header, asked validators, now time.Time) answer {
	a := answer{retryAfter: retryAfter(header.Get("Retry-After"), now)}
	switch {
	case status == http.StatusNotModified && asked != (validators{}):
		a.unchanged = true
		a.validators = validatorsOf(header)
	case status == http.StatusNotModified:
		a.problem = "the channel answers with status 304, which it was not asked for"
	case status >= 200 && status <= 299:
		a.version, a.problem = versionOf(channel, "does not redirect, and ends with")
		if a.version != "" {
			a.validators = validatorsOf(header)
		}
	case redirects(status):
		a.version, a.problem = target(channel, header.Get("Location"))
	default:
		a.problem = fmt.Sprintf("the channel answers with status %d", status)
	}
	return a
}

func redirects(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// target returns the version that a redirect of a channel names.
func target(channel *url.URL, location string) (version, problem string) {
	if location == "" {
		return "", "the channel redirects without saying where to"
	}
	to, err := channel.Parse(location)
	switch {
	case err != nil:
		return "", "the channel redirects to what is no address"
	case to.Scheme != "https" || to.Hostname() == "":
		return "", "the channel redirects to an address that does not begin with https:// and a host"
	case to.User != nil:
		return "", "the channel redirects to an address with user info"
	}
	return versionOf(to, "redirects to")
}

// versionOf returns the last path element of an address, if that is a version.
func versionOf(u *url.URL, does string) (version, problem string) {
	path := strings.TrimRight(u.EscapedPath(), "/")
	last, err := url.PathUnescape(path[strings.LastIndexByte(path, '/')+1:])
	if err != nil || !marker.ValidPlanTarget(last) || !marker.ValidVersion(strings.TrimPrefix(last, "v")) {
		return "", fmt.Sprintf("the channel %s %q, which is no version such as v1.36.3", does, plain.Line(last, maxQuoted))
	}
	return last, ""
}

// validatorsOf returns what the next question can be asked by. One that couldn't be sent back is none.
func validatorsOf(header http.Header) validators {
	readable := func(s string) string {
		if len(s) > maxValidator || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
			return ""
		}
		return s
	}
	return validators{etag: readable(header.Get("ETag")), modified: readable(header.Get("Last-Modified"))}
}

// retryAfter reads the header of that name: seconds, or a date. What is longer than maxRetryAfter is that, and what
// can't be read is nothing.
func retryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if value == "" {
		return 0
	}
	if strings.Trim(value, "0123456789") == "" {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds > int64(maxRetryAfter/time.Second) {
			return maxRetryAfter
		}
		return time.Duration(seconds) * time.Second
	}
	date, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(date.Sub(now), 0), maxRetryAfter)
}

// reason says why a channel could not be reached. The same trouble is always said in the same words: ports, addresses
// and times that differ at each try are left out, since what is said is written to the cluster.
func reason(err error) string {
	var name *net.DNSError
	var certificate x509.CertificateInvalidError
	var network *net.OpError
	switch {
	case errors.As(err, &name) && name.IsNotFound:
		return "its host name is not known"
	case errors.As(err, &name):
		return "its host name could not be looked up"
	case errors.As(err, &certificate) && certificate.Reason == x509.Expired:
		return "its certificate has expired, or is not valid yet"
	case errors.As(err, &network):
		return plain.Line(network.Op+": "+network.Err.Error(), maxReason)
	}
	return plain.Line(err.Error(), maxReason)
}
