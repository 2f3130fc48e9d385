package authorizer

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"

	"github.com/pkg/errors"
	"k8s.io/client-go/rest"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/authorizer/rule"
)

const (
	acceptNode     = "application/json"
	acceptMetadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	// maxAnswer is above the largest object that etcd stores by default, in bytes.
	maxAnswer = 4 << 20
)

// upstream is a client of the API server with the proxy's own account.
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
	return &upstream{base: base, client: &http.Client{
		Transport: transport,
		// A request was judged for one address, and must not go to another one.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// do sends a newly composed request, once. No header of the agent's request is in it: no token, no impersonation, no
// cookie.
func (u *upstream) do(ctx context.Context, method string, c call, body []byte) (*http.Response, error) {
	at := u.base.JoinPath(c.path())
	at.RawQuery = c.query.Encode()
	var payload io.Reader
	if body != nil {
		payload = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, at.String(), payload)
	if err != nil {
		return nil, errors.Wrap(err, "composing a request")
	}
	req.Header.Set("Accept", c.accept)
	if body != nil {
		req.Header.Set("Content-Type", patchType)
	}
	res, err := u.client.Do(req)
	return res, errors.Wrapf(err, "%s %s", method, c.path())
}

// ask is do with the whole answer, of at most maxAnswer bytes.
func (u *upstream) ask(ctx context.Context, method string, c call, body []byte) (*http.Response, []byte, error) {
	res, err := u.do(ctx, method, c, body)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err != nil {
		return nil, nil, errors.Wrapf(err, "reading the answer to %s %s", method, c.path())
	}
	if len(answer) > maxAnswer {
		return nil, nil, errors.Errorf("the answer to %s %s is longer than %d bytes", method, c.path(), maxAnswer)
	}
	return res, answer, nil
}

// live reads a Node from the API server, by accept whole or its metadata only.
func (u *upstream) live(ctx context.Context, name, accept string) (Live, *Refusal, error) {
	res, answer, err := u.ask(ctx, http.MethodGet, call{verb: verbGet, node: name, accept: accept}, nil)
	if err != nil {
		return Live{}, nil, err
	}
	switch res.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return Live{}, rule.Refuse(rule.ReasonNodeUID, "node %q is gone", name), nil
	default:
		return Live{}, nil, errors.Errorf("reading node %q: the API server answered %s", name, res.Status)
	}
	var n struct {
		Metadata struct {
			Name            string            `json:"name"`
			UID             string            `json:"uid"`
			ResourceVersion string            `json:"resourceVersion"`
			Annotations     map[string]string `json:"annotations"`
		} `json:"metadata"`
		Spec struct {
			Unschedulable bool `json:"unschedulable"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(answer, &n); err != nil {
		return Live{}, nil, errors.Wrapf(err, "decoding node %q", name)
	}
	m := n.Metadata
	return Live{Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion, Annotations: m.Annotations, Unschedulable: n.Spec.Unschedulable}, nil, nil
}
