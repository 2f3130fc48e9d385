package nodesim

import (
	"context"
	"crypto/tls"
	"net/http"
	"time"
)

// How often a process is asked whether it is ready: often until it is, as
// everything waits for that, seldom then.
const (
	probeUntilReady = 100 * time.Millisecond
	probeAfter      = time.Second
	probeTimeout    = time.Second
	// probeFailures in a row make a ready pod unready.
	probeFailures = 3
)

// prober asks readiness probes. Certificates aren't checked, as kubelets do.
var prober = &http.Client{
	Timeout: probeTimeout,
	Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
	},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// probe tells whether a URL answers that the process is ready.
func probe(ctx context.Context, url string) bool {
	if url == "" {
		return true
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := prober.Do(req)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode >= 200 && resp.StatusCode < 400
}
