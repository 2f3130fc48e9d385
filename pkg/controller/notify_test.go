package controller_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/controller"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// receiver keeps what it is told.
type receiver struct {
	*httptest.Server
	mu   sync.Mutex
	told []string
}

func newReceiver(t *testing.T, answer http.HandlerFunc) *receiver {
	t.Helper()
	rec := &receiver{}
	rec.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			Text    string
			Notices []struct{ Occasion, Node string }
		}
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil || m.Text == "" {
			t.Errorf("what was sent can't be read: %v", err)
		}
		rec.mu.Lock()
		for _, n := range m.Notices {
			rec.told = append(rec.told, n.Occasion+" "+n.Node)
		}
		rec.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(rec.Close)
	return rec
}

func (r *receiver) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.told)
}

// secret mounts a URL as the key slack.
func secret(t *testing.T, url string) func(*controller.Options) {
	t.Helper()
	dir := t.TempDir()
	assert.NilError(t, os.WriteFile(filepath.Join(dir, "slack"), []byte(url), 0o600))
	return func(o *controller.Options) {
		o.NotifyDir, o.Policy.Notify = dir, policy.Notify{URLKey: "slack", Cluster: "test"}
	}
}

// A rollout's beginning and its end are each told once, also where another leader takes over.
func TestMessagesTellOfARollout(t *testing.T) {
	rec := newReceiver(t, func(http.ResponseWriter, *http.Request) {})
	f := newFleet(t, "a")
	a := f.machines["a"]
	f.takesPods()
	mount := secret(t, rec.URL)
	_, stop := f.control(mount)
	f.until("a is managed", a.updatedTo(v1))
	assert.Equal(t, len(rec.all()), 0)
	f.release(v2)
	f.until("the end is told", func() bool { return slices.Contains(rec.all(), "RolloutEnded ") })
	assert.Assert(t, a.updatedTo(v2)())
	stop()
	next, _ := f.control(mount)
	f.until("another leader plans", func() bool { _, err := next.Plan(t.Context()); return err == nil })
	passBy(t, 2*time.Second)
	assert.DeepEqual(t, rec.all(), []string{"RolloutBegan ", "RolloutEnded "})
}

// A receiver that hangs costs a rollout nothing, and the next leader does not tell again what it may have got.
func TestReceiverThatHangs(t *testing.T) {
	release := make(chan struct{})
	rec := newReceiver(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	f := newFleet(t, "a")
	a := f.machines["a"]
	f.takesPods()
	mount := secret(t, rec.URL)
	_, stop := f.control(mount)
	f.until("a is managed", a.updatedTo(v1))
	f.release(v2)
	f.until("the beginning is sent", func() bool { return len(rec.all()) > 0 })
	stop()
	f.control(mount)
	f.until("a is updated", a.updatedTo(v2))
	f.until("an Event tells of the receiver", func() bool {
		events, err := f.client.CoreV1().Events(f.namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=MessageFailing"})
		return err == nil && len(events.Items) == 1
	})
	assert.DeepEqual(t, rec.all(), []string{"RolloutBegan ", "RolloutEnded "})
}
