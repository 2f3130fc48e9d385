package agent

import (
	"context"
	"time"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

const (
	requestTimeout = 20 * time.Second
	listTimeout    = time.Minute
	// watchAgain is the pause after a failed watch, doubled up to watchAgainMost.
	watchAgain     = 800 * time.Millisecond
	watchAgainMost = 10 * time.Second
)

// ProxyConfig says where the proxy is, and how the agent and the proxy authenticate to each other.
type ProxyConfig struct {
	// NodeName is the agent's own node.
	NodeName string
	// Server is the proxy's URL, ServerName the name in its certificate.
	Server, ServerName string
	// TokenFile and CAFile may change at any time.
	TokenFile, CAFile string
	// Lookup finds the addresses of ServerName when nothing with its certificate answers at Server; nil: only Server is
	// tried.
	Lookup func(ctx context.Context, host string) ([]string, error)
}

// Proxy is the Node behind the proxy.
type Proxy struct {
	name  string
	nodes metadata.Getter
	state *watchState
}

var _ Node = (*Proxy)(nil)

// NewProxy returns the node behind the proxy. It reads both files, and doesn't connect.
func NewProxy(cfg ProxyConfig) (*Proxy, error) {
	transport, err := newTransport(cfg)
	if err != nil {
		return nil, err
	}
	client, err := metadata.NewForConfig(&rest.Config{
		Host:            cfg.Server,
		Transport:       transport,
		BearerTokenFile: cfg.TokenFile,
		UserAgent:       "bottlerocket-update-agent/" + telemetry.Version,
		// The agent has its own pauses, which are longer.
		QPS: -1,
	})
	if err != nil {
		return nil, errors.Wrapf(err, "making a client of the proxy %s", cfg.Server)
	}
	return &Proxy{
		name:  cfg.NodeName,
		state: &watchState{now: time.Now},
		nodes: client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "nodes"}),
	}, nil
}

// Get implements Node.
func (p *Proxy) Get(ctx context.Context) (*Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	got, err := p.nodes.Get(ctx, p.name, metav1.GetOptions{})
	if err != nil {
		return nil, errors.Wrapf(err, "reading node %q", p.name)
	}
	return SnapshotOf(&got.ObjectMeta), nil
}

// Patch implements Node.
func (p *Proxy) Patch(ctx context.Context, patch Patch) (*Snapshot, error) {
	body, err := patch.Body()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	got, err := p.nodes.Patch(ctx, p.name, types.MergePatchType, body, metav1.PatchOptions{})
	if err != nil {
		return nil, errors.Wrapf(err, "patching node %q", p.name)
	}
	return SnapshotOf(&got.ObjectMeta), nil
}

// Watch implements Node with a reflector that stores nothing. It doesn't wait for the reflector's end: that may be in a
// pause of a minute, which no context interrupts.
func (p *Proxy) Watch(ctx context.Context, update func(*Snapshot)) {
	pass := func(s *Snapshot) {
		if ctx.Err() == nil {
			update(s)
		}
	}
	only := fields.OneTermEqualSelector(metav1.ObjectNameField, p.name).String()
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			ctx, cancel := context.WithTimeout(ctx, listTimeout)
			defer cancel()
			opts.FieldSelector = only
			list, err := p.nodes.List(ctx, opts)
			if err != nil {
				p.state.failed(err)
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			opts.FieldSelector = only
			w, err := p.nodes.Watch(ctx, opts)
			if err != nil {
				p.state.failed(err)
				return nil, err
			}
			p.state.answered()
			return watch.Filter(w, p.note), nil
		},
	}
	go cache.NewReflectorWithOptions(source, &metav1.PartialObjectMetadata{}, sink{p.name, pass},
		cache.ReflectorOptions{Name: "node", Backoff: &wait.Backoff{
			// client-go's default grows to 30 s, twice that with jitter, in which a new intent would wait.
			Duration: watchAgain, Factor: 2, Steps: 10, Cap: watchAgainMost, Jitter: 1,
		}}).RunWithContext(ctx)
	<-ctx.Done()
}

// note records in the state of the watch whether an event is an error, and keeps the event.
func (p *Proxy) note(e watch.Event) (watch.Event, bool) {
	if e.Type == watch.Error {
		p.state.failed(apierrors.FromObject(e.Object))
	} else {
		p.state.answered()
	}
	return e, true
}

// WatchErr implements Node.
func (p *Proxy) WatchErr() error { return p.state.err() }

// sink is a store that keeps nothing and passes each state on.
type sink struct {
	name   string
	update func(*Snapshot)
}

var _ cache.ReflectorStore = sink{}

func (s sink) Add(obj any) error    { return s.pass(obj) }
func (s sink) Update(obj any) error { return s.pass(obj) }
func (s sink) Resync() error        { return nil }

func (s sink) Delete(any) error {
	s.update(nil)
	return nil
}

func (s sink) Replace(objs []any, _ string) error {
	for _, obj := range objs {
		if err := s.pass(obj); err != nil {
			return err
		}
	}
	if len(objs) == 0 {
		s.update(nil)
	}
	return nil
}

func (s sink) pass(obj any) error {
	m, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return errors.Errorf("watching node %q: got a %T", s.name, obj)
	}
	if m.Name != s.name {
		return errors.Errorf("watching node %q: got %q", s.name, m.Name)
	}
	s.update(SnapshotOf(&m.ObjectMeta))
	return nil
}
