package plugin

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/preflight"
)

const (
	// lookWithin bounds a whole look at a cluster, and requestWithin one request of it unless the user says
	// --request-timeout: an API server may hang.
	lookWithin, requestWithin = 3 * time.Minute, 20 * time.Second
	// pageOf is how many objects are asked for at a time, and pages how many times at most of one kind: 200,000 pods.
	pageOf, pages = 500, 400
)

// gathering reads a cluster for preflight, each part by itself: what may not be read is noted, and hides nothing else.
type gathering struct {
	client    kubernetes.Interface
	metadata  metadata.Interface
	namespace string

	mu sync.Mutex
	// s has what was read. Parts that are read at once are different fields of it.
	s *preflight.Snapshot
}

// gather reads the cluster. It fails only if the API server does not answer at all.
func (p *plugin) gather(ctx context.Context) (*preflight.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	config, err := p.bounded()
	if err != nil {
		return nil, err
	}
	clock := &clock{now: p.now}
	config.Wrap(clock.over)
	client, err := newClient(config)
	if err != nil {
		return nil, err
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, errors.Wrap(err, "making a client of the API server")
	}
	g := &gathering{client: client, metadata: meta, namespace: p.namespace(),
		s: &preflight.Snapshot{Namespace: p.namespace(), PlansNamespace: kube.PlansNamespace}}
	if err := g.version(ctx, config.Timeout); err != nil {
		return nil, err
	}
	g.s.Clock = clock.read()
	together(
		func() { g.groups(ctx) },
		func() { g.rights(ctx) },
		func() { g.namespaces(ctx) },
		func() { g.admission(ctx) },
		func() { g.operator(ctx) },
		func() { g.certificate(ctx) },
		func() { g.configs(ctx) },
		func() { g.leases(ctx) },
		func() { g.fleet(ctx) },
		func() { g.daemonSets(ctx) },
	)
	slices.Sort(g.s.Cut)
	return g.s, ctxErr(ctx)
}

// bounded says how to reach the API server where many requests are made, and none may hang.
func (p *plugin) bounded() (*rest.Config, error) {
	c, err := p.config()
	if err == nil && c.Timeout == 0 {
		c.Timeout = requestWithin
	}
	return c, err
}

// ctxErr is an error if a user ended the look; a deadline only leaves parts unknown.
func ctxErr(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return errors.Wrap(ctx.Err(), "looking at the cluster")
	}
	return nil
}

func together(all ...func()) {
	var wg sync.WaitGroup
	for _, f := range all {
		wg.Go(f)
	}
	wg.Wait()
}

// version asks for the API server's version: a request that every user may make.
func (g *gathering) version(ctx context.Context, patience time.Duration) error {
	body, err := g.client.Discovery().RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			return errors.Errorf("the API server did not answer within %s", patience)
		}
		return errors.Wrap(err, "asking the API server for its version")
	}
	g.s.Server = known(gitVersion(body))
	return nil
}

// clock notes the API server's time from the first answer that tells it.
type clock struct {
	now func() time.Time
	mu  sync.Mutex
	at  preflight.Clock
}

func (c *clock) over(next http.RoundTripper) http.RoundTripper { return &dated{c, next} }

// dated is a transport whose answers tell a clock the time.
type dated struct {
	clock *clock
	next  http.RoundTripper
}

// WrappedRoundTripper lets client-go cancel requests of the transport inside.
func (d *dated) WrappedRoundTripper() http.RoundTripper { return d.next }

// RoundTrip is for http.RoundTripper.
func (d *dated) RoundTrip(r *http.Request) (*http.Response, error) {
	asked := d.clock.now()
	answer, err := d.next.RoundTrip(r)
	if err == nil {
		d.clock.tell(asked, answer.Header.Get("Date"))
	}
	return answer, err
}

// tell notes a date, if none is noted yet. It was written between the question and now.
func (c *clock) tell(asked time.Time, date string) {
	at, err := http.ParseTime(date)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && c.at.Server.IsZero() {
		c.at = preflight.Clock{Server: at, Here: asked.Add(c.now().Sub(asked) / 2)}
	}
}

func (c *clock) read() preflight.Read[preflight.Clock] {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.Server.IsZero() {
		return unknown[preflight.Clock](errors.New("the API server's answers have no date"))
	}
	return known(c.at)
}

func known[T any](value T) preflight.Read[T] { return preflight.Read[T]{Value: value} }

func unknown[T any](err error) preflight.Read[T] {
	return preflight.Read[T]{Refused: line(err.Error()), Forbidden: errors.Is(err, errForbidden)}
}

// errForbidden is in the error of a request that the user may not make.
var errForbidden = errors.New("you may not")

// readOf is what a request read, or what keeps it from being known.
func readOf[T any](value T, err error) preflight.Read[T] {
	if err != nil {
		return unknown[T](err)
	}
	return known(value)
}

// forbidden is the error of what the user may not do.
type forbidden struct{ what string }

func (f forbidden) Error() string { return errForbidden.Error() + " " + f.what }

// Is is for errors.Is.
func (f forbidden) Is(target error) bool { return target == errForbidden }

// refusedTo says why a request came to nothing: verb and what are in the words of RBAC.
func refusedTo(verb, what string, err error) error {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return forbidden{verb + " " + what}
	case errors.Is(err, context.DeadlineExceeded), apierrors.IsTimeout(err):
		return errors.Errorf("the API server did not answer in time when asked to %s %s", verb, what)
	case apierrors.IsNotFound(err) && verb == "list":
		return errors.Errorf("the API server has no %s", what)
	case errors.As(err, &status):
		return errors.Errorf("the API server did not %s %s: %s", verb, what,
			cmp.Or(status.Status().Message, err.Error()))
	}
	return errors.Wrapf(err, "%s %s", verb, what)
}

// each lists objects in pages, and hands each page to take. It reports whether there are more than it reads.
func each[L metav1.ListInterface](ctx context.Context, what string, o metav1.ListOptions, list func(context.Context, metav1.ListOptions) (L, error),
	take func(L)) (more bool, err error) {
	return eachUpTo(ctx, pages, what, o, list, take)
}

func eachUpTo[L metav1.ListInterface](ctx context.Context, limit int, what string, o metav1.ListOptions,
	list func(context.Context, metav1.ListOptions) (L, error), take func(L)) (more bool, err error) {
	o.Limit = pageOf
	for range limit {
		page, err := list(ctx, o)
		if err != nil {
			return false, refusedTo("list", what, err)
		}
		take(page)
		if o.Continue = page.GetContinue(); o.Continue == "" {
			return false, nil
		}
	}
	return true, nil
}

// found makes a request for one object: there is false if it doesn't exist.
func found[T any](ctx context.Context, what string, request func(context.Context) (T, error)) (value T, there bool, err error) {
	value, err = request(ctx)
	if apierrors.IsNotFound(err) {
		return value, false, nil
	}
	return value, err == nil, refusedTo("get", what, err)
}

// cut notes that something is too much to be looked at whole.
func (g *gathering) cut(more bool, what string) {
	if !more {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.s.Cut = append(g.s.Cut, fmt.Sprintf("%s beyond the first %d", what, pageOf*pages))
}
