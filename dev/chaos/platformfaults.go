package chaos

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/simcluster"
)

// away makes an outage and notes when it was.
func (w *world) away(ctx context.Context, outage func() error) (string, error) {
	from := time.Now()
	err := outage()
	if err == nil {
		err = w.Plane.AwaitAPIServer(ctx)
	}
	w.mu.Lock()
	w.outages = append(w.outages, Window{From: from, To: time.Now()})
	w.mu.Unlock()
	if err != nil {
		return "", err
	}
	// What stands now, for the log: a write that it lost would not show at rest otherwise.
	return "away for " + since(from), w.show(ctx)
}

// show has the audit log tell what all nodes look like.
func (w *world) show(ctx context.Context) error {
	return simcluster.Await(ctx, "all nodes are listed", patience, func() (bool, error) {
		_, err := w.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		return err == nil, err
	})
}

func (w *world) killAPIServer(ctx context.Context, _ Strike) (string, error) {
	return w.away(ctx, func() error {
		w.Plane.StopAPIServer()
		return w.Plane.StartAPIServer(ctx)
	})
}

func (w *world) killEtcd(ctx context.Context, _ Strike) (string, error) {
	return w.away(ctx, func() error {
		w.Plane.StopEtcd()
		return w.Plane.StartEtcd(ctx)
	})
}

// compactEtcd pauses the API server meanwhile, for a watch that is connected has seen everything and
// doesn't mind. It counts once the API server has found its watches expired.
func (w *world) compactEtcd(ctx context.Context, _ Strike) (string, error) {
	before, err := w.expiredWatches()
	if err != nil {
		return "", err
	}
	said, err := w.away(ctx, func() error {
		if err := w.Plane.PauseAPIServer(); err != nil {
			return err
		}
		w.Plane.StopEtcd()
		err := w.Plane.StartEtcd(ctx)
		if err == nil {
			err = w.Plane.CompactEtcd(ctx)
		}
		if resumed := w.Plane.ResumeAPIServer(); err == nil {
			err = resumed
		}
		return err
	})
	if err != nil {
		return "", err
	}
	after := before
	err = simcluster.Await(ctx, "watches expire", patience, func() (bool, error) {
		var err error
		after, err = w.expiredWatches()
		return after > before, err
	})
	return fmt.Sprintf("%s, %d watches of the store expired", said, after-before), err
}

func (w *world) expiredWatches() (int, error) {
	log, err := os.ReadFile(w.Plane.APIServerLog())
	return bytes.Count(log, []byte("required revision has been compacted")), errors.Wrap(err, "reading the API server's log")
}
