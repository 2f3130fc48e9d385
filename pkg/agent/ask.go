package agent

import (
	"context"
	"time"

	"github.com/pkg/errors"
	"github.com/sirupsen/logrus"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent/next"
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
func (a *Agent) ask(ctx context.Context, v next.View, c next.Command) time.Duration {
	log := a.log.WithFields(logrus.Fields{
		telemetry.FieldCommand: c,
		telemetry.FieldIntent:  v.Intent.ID,
		telemetry.FieldTarget:  v.Intent.Target,
	})
	if c == next.CommandRefresh {
		log.Debug("Asking the host")
	} else {
		log.Info("Asking the host")
	}
	now := a.cfg.Now()
	a.memory.Asking(v, now, c)
	err := a.cfg.Host.Start(ctx, c)
	if err != nil {
		a.cfg.Metrics.hostErrors.WithLabelValues(string(c)).Inc()
		log = log.WithField(telemetry.FieldError, err)
	}
	heard, refused := heardOf(err)
	a.memory.Answered(v, now, c, heard, refused.Why, refused.Body, jitter(a.cfg.RefreshEvery, 0.1, a.cfg.Rand()))
	switch {
	case heard == next.HeardNo:
		log.Warn("The host could not be asked")
	case c == next.CommandReboot:
		if err != nil {
			log.Warn("The host may reboot although it did not say so")
		}
		return firstLook
	case heard == next.HeardYes:
		return firstLook
	case heard == next.HeardMaybe:
		log.Warn("It is open if the host heard the command")
	case refused.Why == next.RefusedLocked:
		log.Debug("The host is busy with another command")
		return lockedPause
	default:
		log.Warn("The host refused the command")
	}
	return askPause
}

// heardOf tells what an error says about the command: only a refusal, an answer that it came too late and a socket that
// leads nowhere prove that it was not begun.
func heardOf(err error) (next.Heard, platform.RefusedError) {
	var refused *platform.RefusedError
	var gone *platform.GoneError
	var unheard *platform.UnheardError
	switch {
	case err == nil:
		return next.HeardYes, platform.RefusedError{}
	case errors.As(err, &gone), errors.As(err, &unheard):
		return next.HeardNo, platform.RefusedError{}
	case errors.As(err, &refused):
		return next.HeardRefused, *refused
	}
	return next.HeardMaybe, platform.RefusedError{}
}
