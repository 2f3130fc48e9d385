package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/pkg/errors"
)

// errNotRunning is the answer when nothing listens for commands.
var errNotRunning = errors.New("no cluster is running: start one with make cluster-up")

// ask sends one request to the running cluster and returns its answer.
func ask(ctx context.Context, at places, path string, values url.Values) (string, error) {
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, "unix", at.socket)
		if err != nil && ctx.Err() == nil {
			return nil, errNotRunning
		}
		return c, err
	}, DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://local"+path, strings.NewReader(values.Encode()))
	if err != nil {
		return "", errors.Wrap(err, "asking the cluster")
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := client.Do(req)
	if errors.Is(err, errNotRunning) {
		return "", errNotRunning
	}
	if err != nil {
		return "", errors.Wrap(err, "asking the cluster")
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return "", errors.Wrap(err, "asking the cluster")
	}
	if res.StatusCode != http.StatusOK {
		return "", errors.New(strings.TrimSpace(string(body)))
	}
	return string(body), nil
}

// tell is ask, with the answer printed.
func tell(ctx context.Context, at places, path string, values url.Values) error {
	answer, err := ask(ctx, at, path, values)
	fmt.Print(answer)
	return err
}
