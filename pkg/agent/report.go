package agent

import (
	"context"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent/next"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

const (
	// answerSoon is how long facts wait, while a command runs, to be written together with its answer.
	answerSoon = 5 * time.Second
	// idle is the pause when a report turned out to change nothing.
	idle = 30 * time.Second
)

// answer writes the answer to the intent, together with the facts.
func (a *Agent) answer(ctx context.Context, node *Snapshot, v next.View, step next.Step) time.Duration {
	diff := next.Changes(v, step, node.Annotations, a.cfg.Version)
	if diff == nil {
		return idle
	}
	written := strings.Join([]string{v.Intent.ID, string(step.State), step.Message}, " ")
	log := a.log.WithFields(logrus.Fields{
		telemetry.FieldIntent: v.Intent.ID,
		telemetry.FieldAction: v.Intent.Action,
		telemetry.FieldTarget: v.Intent.Target,
		telemetry.FieldState:  step.State,
	})
	if a.written != written {
		if step.Message != "" {
			log = log.WithField(telemetry.FieldMessage, step.Message)
		}
		log.Info("Answering the intent")
	}
	if pause, ok := a.write(ctx, node, diff); !ok {
		return pause
	}
	if step.State == marker.StateBusy {
		a.memory.Affirm(v.Intent.ID)
	}
	if a.written == written {
		// The same answer was accepted before, so something else removes it.
		return a.writing.pause(a.cfg.Rand())
	}
	a.written = written
	a.writing.over()
	return 0
}

// facts writes the facts that changed, if any, and returns how long to pause.
func (a *Agent) facts(ctx context.Context, node *Snapshot, v next.View, step next.Step) time.Duration {
	diff := next.Changes(v, step, node.Annotations, a.cfg.Version)
	if len(diff) == 0 {
		a.factsSince = time.Time{}
		a.writing.over()
		return a.lasts(v.Now, step)
	}
	if a.factsSince.IsZero() {
		a.factsSince = v.Now
	}
	if step.Kind == next.StepWait && step.After < answerSoon && v.Now.Sub(a.factsSince) < answerSoon {
		return a.lasts(v.Now, step)
	}
	a.log.WithFields(logrus.Fields{
		telemetry.FieldVersion:   v.Host.Version,
		telemetry.FieldAvailable: v.Host.Chosen,
	}).Debug("Reporting facts")
	if pause, ok := a.write(ctx, node, diff); !ok {
		return pause
	}
	a.factsSince = time.Time{}
	a.writing.over()
	return a.lasts(v.Now, step)
}

// lasts returns how long a step without an act lasts: rest ends at the next live read at the latest.
func (a *Agent) lasts(now time.Time, step next.Step) time.Duration {
	switch step.Kind {
	case next.StepFacts:
		return 0
	case next.StepWait:
		return step.After
	default:
		next := a.lookAt.Sub(now)
		if step.After > 0 {
			next = min(next, step.After)
		}
		return next
	}
}

// write writes a report, without the optional facts if those are refused: older proxies and admission policies don't
// know them, and refuse the answer with them. It reports whether it was accepted. If not, or if that is unknown, the
// node is read live after the pause.
func (a *Agent) write(ctx context.Context, node *Snapshot, annotations map[marker.Key]*string) (time.Duration, bool) {
	err := a.patch(ctx, node, annotations)
	rest, optional := next.WithoutOptional(annotations)
	refused := err
	if optional && apierrors.IsForbidden(err) {
		if err = nil; len(rest) > 0 {
			err = a.patch(ctx, node, rest)
		}
	}
	if err != nil {
		a.mustLook = true
		return a.nodeTrouble(ctx, &a.writing, err, "Could not write to the node"), false
	}
	if optional {
		a.leaveOut(refused)
	}
	return 0, true
}

func (a *Agent) patch(ctx context.Context, node *Snapshot, annotations map[marker.Key]*string) error {
	got, err := a.cfg.Node.Patch(ctx, Patch{ResourceVersion: node.ResourceVersion, Annotations: annotations})
	if err != nil {
		return err
	}
	a.adopt(got)
	a.cfg.Metrics.reported(a.cfg.Now())
	return nil
}

// leaveOut notes whether the optional facts were refused, and logs when that changes.
func (a *Agent) leaveOut(refused error) {
	was := a.leavesOut
	a.leavesOut = refused != nil
	switch {
	case refused != nil:
		a.memory.LeaveOut(a.cfg.Now())
		a.cfg.Metrics.nodeErrors.WithLabelValues(nodeRefused).Inc()
		if !was {
			a.log.WithField(telemetry.FieldError, refused).Warn("Optional facts are refused and left out: proxies or admission policies may be older")
		}
	case was:
		a.log.Info("Optional facts are accepted again")
	}
}

// nodeTrouble returns the pause after a failed request to the proxy.
func (a *Agent) nodeTrouble(ctx context.Context, b *backoff, err error, message string) time.Duration {
	if ctx.Err() != nil {
		return 0
	}
	cause := nodeFailed
	switch {
	case apierrors.IsConflict(err):
		cause = nodeConflict
	case apierrors.IsForbidden(err):
		cause = nodeRefused
	}
	a.cfg.Metrics.nodeErrors.WithLabelValues(cause).Inc()
	// The cause is compared, not the text: a network error has a port in its text, which always differs.
	log := a.log.WithField(telemetry.FieldError, err)
	if b.changed(cause) && cause != nodeConflict {
		log.Warn(message)
	} else {
		log.Debug(message)
	}
	return b.pause(a.cfg.Rand())
}
