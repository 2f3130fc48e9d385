package controlplane

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/pkg/errors"
)

// CompactEtcd makes etcd forget all history before now. Before that it moves the store's revision on, so
// that a watch which has seen all changes so far would still have to go on from one that is forgotten. A
// watch that is connected notices nothing; one that comes back finds its place gone.
func (c *ControlPlane) CompactEtcd(ctx context.Context) error {
	const foreign = "/outside-of-kubernetes"
	for range 2 {
		key := base64.StdEncoding.EncodeToString([]byte(foreign))
		if _, err := c.etcdCall(ctx, "put", map[string]any{"key": key, "value": key}); err != nil {
			return err
		}
	}
	now, err := c.revision(ctx)
	if err != nil {
		return err
	}
	_, err = c.etcdCall(ctx, "compaction", map[string]any{"revision": strconv.FormatInt(now, 10), "physical": true})
	return err
}

// revision is the store's present one.
func (c *ControlPlane) revision(ctx context.Context) (int64, error) {
	return c.etcdCall(ctx, "range", map[string]any{"key": base64.StdEncoding.EncodeToString([]byte("/"))})
}

// etcdCall asks etcd over its JSON gateway, which needs no client of its own, and returns the revision of
// the answer.
func (c *ControlPlane) etcdCall(ctx context.Context, what string, body any) (int64, error) {
	content, err := json.Marshal(body)
	if err != nil {
		return 0, errors.Wrap(err, "encoding a request to etcd")
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://etcd/v3/kv/"+what, bytes.NewReader(content))
	if err != nil {
		return 0, errors.Wrap(err, "making a request")
	}
	req.Header.Set("Content-Type", "application/json")
	transport := &http.Transport{DialContext: c.dialEtcd, DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return 0, errors.Wrapf(err, "asking etcd for %s", what)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil || resp.StatusCode != http.StatusOK {
		return 0, errors.Errorf("etcd answered %s to %s: %s", resp.Status, what, answer)
	}
	var a struct {
		Header struct {
			Revision string `json:"revision"`
		} `json:"header"`
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		return 0, errors.Wrap(err, "decoding etcd's answer")
	}
	revision, err := strconv.ParseInt(a.Header.Revision, 10, 64)
	return revision, errors.Wrap(err, "decoding etcd's revision")
}

// dialEtcd reaches the socket through a link with a short name, as the folder's own may be too long.
func (c *ControlPlane) dialEtcd(ctx context.Context, _, _ string) (net.Conn, error) {
	dir, err := os.MkdirTemp("", "etcd")
	if err != nil {
		return nil, errors.Wrap(err, "making a folder for a link")
	}
	defer os.RemoveAll(dir)
	link := filepath.Join(dir, "s")
	if err := os.Symlink(filepath.Join(c.dir, "etcd.sock:0"), link); err != nil {
		return nil, errors.Wrap(err, "linking etcd's socket")
	}
	return (&net.Dialer{}).DialContext(ctx, "unix", link)
}
