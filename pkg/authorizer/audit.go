package authorizer

import (
	"net/http"
	"sync"

	"github.com/sirupsen/logrus"
	"golang.org/x/time/rate"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plain"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

const (
	linesPerSecond = 0.2
	lineBurst      = 10
	// maxWord of a request's path, or of another word that is a peer's, is logged; maxMessage of a refusal is said.
	maxWord    = 120
	maxMessage = 400
)

// auditor counts and logs refusals; each agent, and each address without one, has lines of its own.
type auditor struct {
	log     logrus.FieldLogger
	metrics *Metrics
	voices  *kept[string, *voice]
}

type voice struct {
	rate *rate.Limiter
	mu   sync.Mutex
	// unsaid counts the refusals since the last line.
	unsaid int
}

func newVoice() *voice { return &voice{rate: rate.NewLimiter(linesPerSecond, lineBurst)} }

func newAuditor(log logrus.FieldLogger, m *Metrics) *auditor {
	return &auditor{log: log, metrics: m, voices: newKept[string](newVoice)}
}

func (a *auditor) refused(r *http.Request, i Identity, address string, refusal *Refusal) {
	a.metrics.refused.WithLabelValues(string(refusal.Reason)).Inc()
	who := i.PodUID
	if who == "" {
		who = address
	}
	log := a.log.WithFields(logrus.Fields{telemetry.FieldAddress: address, telemetry.FieldMethod: plain.Line(r.Method, maxWord),
		telemetry.FieldPath: plain.Line(r.URL.Path, maxWord), telemetry.FieldReason: string(refusal.Reason), telemetry.FieldMessage: refusal.Message})
	if i.PodUID != "" {
		log = log.WithFields(logrus.Fields{telemetry.FieldNode: i.NodeName, telemetry.FieldPod: i.PodName})
	}
	// Somebody else wrote first, and the agent looks again: nothing to look into.
	if refusal.Reason == ReasonConflict {
		log.Debug("Refused a request")
		return
	}
	if may, unsaid := a.voices.of(who).speak(); may {
		if unsaid > 0 {
			log = log.WithField(telemetry.FieldCount, unsaid+1)
		}
		log.Warn("Refused a request")
	}
}

// upstream logs that the API server could not be asked; in an outage every agent meets that.
func (a *auditor) upstream(err error) {
	if may, unsaid := a.voices.of("").speak(); may {
		a.log.WithError(err).WithField(telemetry.FieldCount, unsaid+1).Warn("The API server could not be asked")
	}
}

// speak tells if a line may be said now, and how many were not since the last.
func (v *voice) speak() (may bool, unsaid int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.rate.Allow() {
		v.unsaid++
		return false, 0
	}
	unsaid, v.unsaid = v.unsaid, 0
	return true, unsaid
}
