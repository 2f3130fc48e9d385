package authorizer

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube/access"
)

// admission tests whether an admission policy restricts the proxy's account to what agents may write. The proxy judges
// every write itself; the policy still holds if an attacker controls the proxy. If restricted is nil, nothing is
// tested.
type admission struct {
	restricted func(ctx context.Context, node string) (bool, error)
	missing    prometheus.Gauge
	log        logrus.FieldLogger
	now        func() time.Time

	mu    sync.Mutex
	known access.Enforcement
}

// ask begins a test, if one is due, on a node that exists.
func (a *admission) ask(ctx context.Context, node string) {
	if a.restricted == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	if now.Before(a.known.Next) {
		return
	}
	a.known.Next = now.Add(requestTime)
	go a.test(ctx, node)
}

func (a *admission) test(ctx context.Context, node string) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	inForce, err := a.restricted(ctx, node)
	if err != nil {
		a.log.WithError(err).Debug("Could not find out whether the admission policy is in force")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known = a.known.Tested(a.now(), inForce, err)
	if !a.known.Missing {
		a.missing.Set(0)
		return
	}
	a.missing.Set(1)
	if err == nil {
		a.log.Error("No admission policy restricts the proxy's account to what agents may write: apply update-operator.yaml whole, " +
			"and check that the policy update-operator-proxy matches this account")
	}
}
