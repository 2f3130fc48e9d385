package authorizer

import (
	"cmp"
	"net/http"
	"sync"

	"github.com/sirupsen/logrus"
	"golang.org/x/time/rate"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/authorizer/rule"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plain"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

const (
	linesPerSecond = 0.2
	lineBurst      = 10
	// maxLogged limits a request's method and path in the log, maxMessage a line on a connection: bytes.
	maxLogged  = 120
	maxMessage = 400
)

// auditor counts and logs refusals. Each agent, and each address without a good token, has its own log rate, so that
// none of them hides the refusals of another one.
type auditor struct {
	log     logrus.FieldLogger
	metrics *Metrics
	rates   *lruMap[string, *logRate]
}

type logRate struct {
	limiter *rate.Limiter
	mu      sync.Mutex
	// skipped counts the refusals that were not logged since the last line.
	skipped int
}

func newLogRate() *logRate { return &logRate{limiter: rate.NewLimiter(linesPerSecond, lineBurst)} }

func newAuditor(log logrus.FieldLogger, m *Metrics) *auditor {
	return &auditor{log: log, metrics: m, rates: newLRUMap[string](newLogRate)}
}

func (a *auditor) refused(r *http.Request, i Identity, address string, refusal *Refusal) {
	a.metrics.refused.WithLabelValues(string(refusal.Reason)).Inc()
	source := cmp.Or(i.PodUID, address)
	log := a.log.WithFields(logrus.Fields{telemetry.FieldAddress: address, telemetry.FieldMethod: plain.Line(r.Method, maxLogged),
		telemetry.FieldPath: plain.Line(r.URL.Path, maxLogged), telemetry.FieldReason: string(refusal.Reason), telemetry.FieldMessage: refusal.Message})
	if i.PodUID != "" {
		log = log.WithFields(logrus.Fields{telemetry.FieldNode: i.NodeName, telemetry.FieldPod: i.PodName})
	}
	// Conflicts are normal: another client wrote first, and the agent reads the node again.
	if refusal.Reason == rule.ReasonConflict {
		log.Debug("Refused a request")
		return
	}
	if ok, skipped := a.rates.get(source).allow(); ok {
		if skipped > 0 {
			log = log.WithField(telemetry.FieldCount, skipped+1)
		}
		log.Warn("Refused a request")
	}
}

// upstream logs a failed request to the API server. All agents share one log rate, since an outage affects all of them.
func (a *auditor) upstream(err error) {
	if ok, skipped := a.rates.get("").allow(); ok {
		a.log.WithError(err).WithField(telemetry.FieldCount, skipped+1).Warn("A request to the API server failed")
	}
}

// allow reports whether a line may be logged now, and returns how many were skipped since the last one.
func (l *logRate) allow() (ok bool, skipped int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.limiter.Allow() {
		l.skipped++
		return false, 0
	}
	skipped, l.skipped = l.skipped, 0
	return true, skipped
}
