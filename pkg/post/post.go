package post

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/notice"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plain"
)

const (
	// timeout bounds one message, from the look-up of the name to the status.
	timeout = 10 * time.Second
	// maxURL is far above the length of a URL, and maxHeader above that of an answer's headers, in bytes.
	maxURL    = 8 << 10
	maxHeader = 64 << 10
	// maxReason is how much of an error is said, in bytes.
	maxReason = 200
)

// Sender sends messages.
type Sender struct {
	// dir is where the Secret is mounted: a file for each of its keys.
	dir    string
	client *http.Client
}

// NewSender returns a Sender of the Secret that is mounted at dir.
func NewSender(dir string) *Sender {
	return &Sender{dir: dir, client: &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxHeader,
		},
	}}
}

// Send sends one message to the URL in the Secret's key. The error says why it wasn't sent, or may not have been.
func (s *Sender) Send(ctx context.Context, key string, m notice.Message) (notice.Result, error) {
	to, err := s.url(key)
	if err != nil {
		return notice.Refused, err
	}
	body, err := json.Marshal(m)
	if err != nil {
		return notice.Refused, errors.Wrap(err, "encoding a message")
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	// From the first byte of the request on, the receiver may have got it.
	var begun atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaderField: func(string, []string) { begun.Store(true) }})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return notice.Refused, errors.Errorf("key %s of Secret %s is no URL that a message can be sent to", key, Secret)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "bottlerocket-update-operator")
	resp, err := s.client.Do(req)
	switch {
	case err != nil && begun.Load():
		// What the error quotes may be from the receiver.
		return notice.Unknown, errors.Errorf("the receiver of messages gave no answer that can be read within %s", timeout)
	case err != nil:
		return notice.Refused, errors.Wrap(unnamed(err), "reaching the receiver of messages")
	}
	_ = resp.Body.Close()
	err = errors.Errorf("the receiver answers a message with status %d", resp.StatusCode)
	switch {
	case resp.StatusCode/100 == 2:
		return notice.Sent, nil
	case resp.StatusCode == http.StatusBadGateway || resp.StatusCode == http.StatusGatewayTimeout:
		// A gateway says so that lost the answer of what is behind it.
		return notice.Unknown, err
	}
	return notice.Refused, err
}

// Secret is the name of the Secret in the operator's namespace, as update-operator.yaml mounts it.
const Secret = "update-notify"

func (s *Sender) url(key string) (string, error) {
	file, err := os.Open(filepath.Join(s.dir, key))
	if os.IsNotExist(err) {
		return "", errors.Errorf("there is no key %s of Secret %s, or it is not mounted yet", key, Secret)
	}
	if err != nil {
		return "", errors.Wrapf(err, "reading key %s of Secret %s", key, Secret)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxURL))
	if err != nil {
		return "", errors.Wrapf(err, "reading key %s of Secret %s", key, Secret)
	}
	u, err := url.Parse(strings.TrimSpace(string(text)))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", errors.Errorf("key %s of Secret %s is no URL that begins with http:// or https://", key, Secret)
	}
	return u.String(), nil
}

// unnamed returns an error of a request without the URL.
func unnamed(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		err = of.Err
	}
	return errors.New(plain.Line(err.Error(), maxReason))
}
