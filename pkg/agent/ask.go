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
	// firstLook is how long after a command the host is looked at.
	firstLook = 100 * time.Millisecond
	// lockedPause follows a refusal because of another command's lock, askPause any other failure.
	lockedPause = 2 * time.Second
	askPause    = time.Second
)

// ask sends the command of the step to the host and remembers it. It returns how long to pause.
func (a *Agent) ask(ctx context.Context, v next.View, step next.Step) time.Duration {
	c, target := step.Command, v.Intent.Target
	if c == next.CommandLock {
		target = step.Lock
	}
	log := a.log.WithFields(logrus.Fields{
		telemetry.FieldCommand: c,
		telemetry.FieldIntent:  v.Intent.ID,
		telemetry.FieldTarget:  target,
	})
	if c == next.CommandRefresh {
		log.Debug("Asking the host")
	} else {
		log.Info("Asking the host")
	}
	now := a.cfg.Now()
	a.memory.Sending(v, now, c)
	err := a.send(ctx, v, step)
	a.cfg.Metrics.host(string(c), err)
	if err != nil {
		log = log.WithField(telemetry.FieldError, err)
	}
	result := resultOf(err)
	a.memory.Sent(v, now, c, result, jitter(a.cfg.RefreshEvery, 0.1, a.cfg.Rand()))
	switch {
	case result.Delivery == next.NotDelivered:
		log.Warn("The host did not receive the command")
	case c == next.CommandReboot:
		if err != nil {
			log.Warn("The host may reboot although it did not confirm the command")
		}
		return firstLook
	case result.Delivery == next.Delivered:
		return firstLook
	case result.Delivery == next.DeliveryUnknown:
		log.Warn("The host may have received the command")
	case result.Why == next.RefusedLocked:
		log.Debug("The host is busy with another command")
		return lockedPause
	default:
		log.Warn("The host refused the command")
	}
	return askPause
}

// send sends the command of the step to the host.
func (a *Agent) send(ctx context.Context, v next.View, step next.Step) error {
	if step.Command == next.CommandLock {
		return a.cfg.Host.SetLock(ctx, v.Intent.ID, step.Lock)
	}
	return a.cfg.Host.Start(ctx, step.Command)
}

// resultOf returns what an error means for the command: only a refusal, a 408 and a socket without a server prove that
// the command was not begun.
func resultOf(err error) next.Result {
	var refused *platform.RefusedError
	var gone *platform.GoneError
	var late *platform.NotStartedError
	switch {
	case err == nil:
		return next.Result{Delivery: next.Delivered}
	case errors.As(err, &gone), errors.As(err, &late):
		return next.Result{Delivery: next.NotDelivered}
	case errors.As(err, &refused):
		return next.Result{Delivery: next.DeliveryRefused, Why: refused.Why, Body: refused.Body}
	}
	return next.Result{Delivery: next.DeliveryUnknown}
}
