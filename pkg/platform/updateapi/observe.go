package updateapi

import (
	"context"
	"net/http"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent/next"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/platform"
)

const (
	pathOS     = "/os"
	pathStatus = "/updates/status"
	// pathSettings asks for two settings alone.
	pathSettings = "/settings?keys=settings.updates.version-lock,settings.updates.seed"
)

// Observe implements platform.Host. The boot ID is read once: a socket belongs to one boot, so there can be no reboot
// between it and the answers.
func (c *Client) Observe(ctx context.Context) (next.Host, error) {
	id, err := c.bootID()
	if err != nil {
		return next.Host{}, err
	}
	if err := checkBootID(id); err != nil {
		return next.Host{}, err
	}
	release, err := c.os(ctx)
	if err != nil {
		return next.Host{}, err
	}
	h, err := c.status(ctx)
	if err != nil {
		return next.Host{}, err
	}
	if !h.Locked {
		if h.VersionLock, h.WaveSeed, err = c.settings(ctx); err != nil {
			return next.Host{}, err
		}
	}
	h.BootID = id
	h.Version, h.Variant, h.Arch = release.Version, release.Variant, release.Arch
	return h, nil
}

func (c *Client) os(ctx context.Context) (osRelease, error) {
	a, err := c.exchange(ctx, http.MethodGet, pathOS)
	if err != nil {
		return osRelease{}, err
	}
	if a.status != http.StatusOK {
		return osRelease{}, unexpected(pathOS, a)
	}
	if a.cut {
		return osRelease{}, errors.Errorf("get %s: the answer is longer than %d bytes", pathOS, maxBody)
	}
	o, err := decodeOS(a.body)
	return o, misunderstood(pathOS, a, err)
}

func (c *Client) status(ctx context.Context) (next.Host, error) {
	a, err := c.exchange(ctx, http.MethodGet, pathStatus)
	if err != nil {
		return next.Host{}, err
	}
	switch {
	case a.status == http.StatusOK:
		if a.cut {
			h, err := decodeCutStatus(a.body)
			return h, misunderstood(pathStatus, a, err)
		}
		h, err := decodeStatus(a.body)
		return h, misunderstood(pathStatus, a, err)
	case a.status == http.StatusLocked:
		return next.Host{Locked: true}, nil
	case a.status == http.StatusNotFound && !a.empty():
		return next.Host{State: next.HostUninitialized}, nil
	}
	return next.Host{}, unexpected(pathStatus, a)
}

// settings returns what the host says of its settings. A host whose data store is locked down answers 500, and can be
// updated all the same (docs/host-api.md: F26): only an answer that doesn't come is an error.
func (c *Client) settings(ctx context.Context) (lock, seed string, err error) {
	a, err := c.exchange(ctx, http.MethodGet, pathSettings)
	if err != nil || a.status != http.StatusOK {
		return "", "", err
	}
	lock, seed = decodeSettings(a.body)
	return lock, seed, nil
}

// unexpected returns the error for an answer that a look can't use.
func unexpected(path string, a answer) error {
	if a.status == http.StatusNotFound && a.empty() {
		return &platform.NoAPIError{Path: path}
	}
	return errors.Errorf("get %s: unexpected answer %d: %s", path, a.status, oneLine(string(a.body)))
}

// misunderstood adds the host's answer to a decoder's error; it keeps nil.
func misunderstood(path string, a answer, err error) error {
	return errors.WithMessagef(err, "get %s: can't understand the answer %q", path, oneLine(string(a.body)))
}
