package authorizer

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"

	"github.com/pkg/errors"
	"k8s.io/client-go/rest"
)

// upstream is the API server, asked with the proxy's own account.
type upstream struct {
	base   *url.URL
	client *http.Client
}

func newUpstream(config *rest.Config) (*upstream, error) {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, errors.Wrap(err, "making a transport to the API server")
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, errors.Wrap(err, "reading the API server's address")
	}
	return &upstream{base: base, client: &http.Client{Transport: transport}}, nil
}

// do sends a request made anew: nothing of an agent's headers goes on but what is given here, so no
// token, no impersonation, no cookie. It is sent once.
func (u *upstream) do(ctx context.Context, method, path string, query url.Values, accept, contentType string, body []byte) (*http.Response, error) {
	at := *u.base
	at.Path, at.RawQuery = path, query.Encode()
	var payload io.Reader
	if body != nil {
		payload = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, at.String(), payload)
	if err != nil {
		return nil, errors.Wrap(err, "composing a request")
	}
	req.Header.Set("Accept", accept)
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	res, err := u.client.Do(req)
	return res, errors.Wrapf(err, "%s %s", method, path)
}
