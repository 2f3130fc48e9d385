package agent

import (
	"context"
	"time"

	"github.com/pkg/errors"
	"github.com/sirupsen/logrus"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/platform"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

const (
	// firstLook is when a host is looked at after it was asked for something.
	firstLook = 100 * time.Millisecond
	// lockedPause is for a host that is busy with another command, askPause for any other no.
	lockedPause = 2 * time.Second
	askPause    = time.Second
)

// ask puts one command to the host and remembers it.
func (a *Agent) ask(ctx context.Context, v intent.View, c intent.Command) time.Duration {
	m := &a.memory
	now := a.cfg.Now()
	asked := intent.Asked{Command: c, ID: v.Intent.ID, At: now, Before: v.Host.Last.Timestamp}
	log := a.log.WithFields(logrus.Fields{
		telemetry.FieldCommand: c,
		telemetry.FieldIntent:  v.Intent.ID,
		telemetry.FieldTarget:  v.Intent.Target,
	})
	if c == intent.CommandRefresh {
		log.Debug("Asking the host")
	} else {
		log.Info("Asking the host")
	}
	if c == intent.CommandReboot {
		// Whatever the answer, the host may go down: it counts as asked before it is sent.
		m.asked, m.doubt = asked, false
	}
	err := a.cfg.Host.Start(ctx, c)
	if err != nil {
		a.cfg.Metrics.hostErrors.WithLabelValues(string(c)).Inc()
		log = log.WithField(telemetry.FieldError, err)
	}
	var refused *platform.RefusedError
	if errors.As(err, &refused) && refused.Why == intent.RefusedLocked && c != intent.CommandReboot {
		log.Debug("The host is busy with another command")
		return lockedPause
	}
	if c == intent.CommandRefresh {
		m.triedRefresh(now, jitter(a.cfg.RefreshEvery, 0.1, a.cfg.Rand()))
	}
	var gone *platform.GoneError
	switch {
	case c == intent.CommandReboot:
		if err != nil {
			log.Warn("The host may reboot although it did not say so")
		}
		return firstLook
	case err == nil:
		m.asked, m.doubt = asked, false
		return firstLook
	case errors.As(err, &gone):
		// Nobody was there to hear it.
		log.Warn("The host could not be asked")
		return askPause
	case refused == nil:
		log.Warn("It is open if the host heard the command")
		m.asked, m.doubt = asked, true
		return askPause
	}
	log.Warn("The host refused the command")
	asked.Refused = refused.Body
	if refused.Why == intent.RefusedUnsupported {
		m.unsupported = refused.Body
		if m.unsupported == "" {
			m.unsupported = "its API has no such route"
		}
	}
	if refused.Why == intent.RefusedUnsupported || m.failedAgain(asked.ID, c) {
		// It ends as a command that left no record.
		asked.Unchanged = spent
		m.asked, m.doubt = asked, false
	}
	return askPause
}
