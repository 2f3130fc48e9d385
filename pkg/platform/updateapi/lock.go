package updateapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent/next"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/platform"
)

// SetLock implements platform.Host. The change waits in a transaction that is named after the intent, so neither it
// nor that of any other program is committed by mistake. What is left of it by a crash between the two requests is
// committed by nothing but the same change for the same intent.
func (c *Client) SetLock(ctx context.Context, id, value string) error {
	type updates struct {
		VersionLock string `json:"version-lock"`
	}
	body, err := json.Marshal(struct {
		Updates updates `json:"updates"`
	}{updates{value}})
	if err != nil {
		return errors.Wrap(err, "encode the version lock")
	}
	tx := "?tx=" + transaction(id)
	if err := c.change(ctx, http.MethodPatch, "/settings"+tx, body, http.StatusNoContent); err != nil {
		return err
	}
	return c.change(ctx, http.MethodPost, "/tx/commit_and_apply"+tx, nil, http.StatusOK)
}

// transaction returns the name of the intent's own transaction. It has no character that a query or the data store,
// which makes a file name of it, could take for something else.
func transaction(id string) string {
	return "update-operator-" + strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '-'
	}, id)
}

// change sends one request that changes settings.
func (c *Client) change(ctx context.Context, method, path string, body []byte, done int) error {
	a, err := c.exchangeBody(ctx, method, path, body)
	switch {
	case err != nil || a.status == done:
		return err
	case a.status == http.StatusRequestTimeout && a.empty():
		return &platform.NotStartedError{Command: next.CommandLock}
	case a.status == http.StatusUnprocessableEntity || a.status < 300:
		// Nothing is pending: an earlier request was carried out, although its answer was lost. Only a look tells.
		return errors.Errorf("%s %s: whether the setting has changed is open after the answer %d: %s",
			strings.ToLower(method), path, a.status, oneLine(string(a.body)))
	}
	line := oneLine(string(a.body))
	if a.empty() {
		line = fmt.Sprintf("status %d", a.status)
	}
	return &platform.RefusedError{Command: next.CommandLock, Why: next.RefusedFailed, Body: line}
}
