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
	// company is how long facts wait, while a command runs, for the answer that will travel with them.
	company = 5 * time.Second
	// idle is the pause when there was nothing to do although there should have been.
	idle = 30 * time.Second
)

// answer writes the answer to the intent, together with the facts.
func (a *Agent) answer(ctx context.Context, node *Seen, v next.View, step next.Step) time.Duration {
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
		// It was accepted before and is asked for again: somebody else takes it away.
		return a.writing.pause(a.cfg.Rand())
	}
	a.written = written
	a.writing.over()
	return 0
}

// facts writes what is new of the host, if anything, and returns how long the step lasts.
func (a *Agent) facts(ctx context.Context, node *Seen, v next.View, step next.Step) time.Duration {
	diff := next.Changes(v, step, node.Annotations, a.cfg.Version)
	if len(diff) == 0 {
		a.factsSince = time.Time{}
		a.writing.over()
		return a.lasts(v.Now, step)
	}
	if a.factsSince.IsZero() {
		a.factsSince = v.Now
	}
	if step.Kind == next.StepWait && step.After < company && v.Now.Sub(a.factsSince) < company {
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

// lasts is how long a step without an act lasts: rest ends at the next live look at the latest.
func (a *Agent) lasts(now time.Time, step next.Step) time.Duration {
	switch step.Kind {
	case next.StepFacts:
		return 0
	case next.StepWait:
		return step.After
	}
	next := a.lookAt.Sub(now)
	if step.After > 0 {
		next = min(next, step.After)
	}
	return next
}

// write sends one patch. If it wasn't accepted, or nobody knows, the node is read live after the pause.
func (a *Agent) write(ctx context.Context, node *Seen, annotations map[marker.Key]*string) (time.Duration, bool) {
	got, err := a.cfg.Node.Patch(ctx, Patch{ResourceVersion: node.ResourceVersion, Annotations: annotations})
	if err != nil {
		a.mustLook = true
		return a.nodeTrouble(ctx, &a.writing, err, "Could not write to the node"), false
	}
	a.adopt(got)
	a.cfg.Metrics.reported(a.cfg.Now())
	return 0, true
}

// nodeTrouble pauses after a request to the proxy that failed.
func (a *Agent) nodeTrouble(ctx context.Context, p *pace, err error, message string) time.Duration {
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
	// By cause and not by text: a network error's text has a port in it that is never the same.
	log := a.log.WithField(telemetry.FieldError, err)
	if p.changed(cause) && cause != nodeConflict {
		log.Warn(message)
	} else {
		log.Debug(message)
	}
	return p.pause(a.cfg.Rand())
}
