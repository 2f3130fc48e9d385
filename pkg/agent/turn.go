package agent

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent/next"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/platform"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

const (
	// A socket counts as replaced after goneLooks looks in a row that found no server behind it, over goneAfter; meanwhile
	// the host is looked at at least every goneEvery.
	goneLooks = 3
	goneAfter = 15 * time.Second
	goneEvery = 5 * time.Second
)

// Turn looks at the node and the host, decides on one step and carries it out. It returns how long to pause unless
// something changes. The only error is ErrSocketReplaced.
func (a *Agent) Turn(ctx context.Context) (time.Duration, error) {
	now := a.cfg.Now()
	a.began(now)
	pause, err := a.turn(ctx, now)
	pause = max(pause, 0)
	a.ended(a.cfg.Now().Add(pause))
	return pause, err
}

func (a *Agent) turn(ctx context.Context, now time.Time) (time.Duration, error) {
	node, err := a.look(ctx, now)
	if err != nil {
		return a.nodeTrouble(ctx, &a.looking, err, "Could not read the node"), nil
	}
	host, err := a.cfg.Host.Observe(ctx)
	if ctx.Err() == nil {
		a.cfg.Metrics.host(observe, err)
	}
	if lacks := (*platform.NoAPIError)(nil); errors.As(err, &lacks) && a.stabilizing(node) {
		return a.withoutAPI(ctx, now, node, lacks), nil
	}
	if err != nil {
		return a.hostTrouble(ctx, now, err)
	}
	a.hostFound()
	a.memory.Observed(now, host)
	a.cfg.Metrics.observed(host)

	v := a.view(now, node, host)
	a.cfg.Metrics.asked(v.Intent, v.Report)
	step := next.Decide(v)
	switch step.Kind {
	case next.StepReport:
		return a.answer(ctx, node, v, step), nil
	case next.StepCommand:
		a.writing.over()
		return a.ask(ctx, v, step), nil
	default:
		return a.facts(ctx, node, v, step), nil
	}
}

// stabilizing reports whether the intent asks for facts alone. With any other intent, an API without routes may be one
// that is just starting, so it proves nothing.
func (a *Agent) stabilizing(node *Snapshot) bool {
	wanted, problems := marker.DecodeIntent(node.Annotations)
	return len(problems) == 0 && wanted.Action == marker.ActionStabilize
}

// apiAgain is how soon a host without an API is looked at again.
const apiAgain = time.Minute

// withoutAPI reports a host that answers, and has no API for updates.
func (a *Agent) withoutAPI(ctx context.Context, now time.Time, node *Snapshot, lacks error) time.Duration {
	a.hostFound()
	v := a.view(now, node, next.Host{})
	v.Unsupported = lacks.Error()
	if step := next.Decide(v); step.Kind == next.StepReport {
		return a.answer(ctx, node, v, step)
	}
	return apiAgain
}

// view returns all that the step is decided from.
func (a *Agent) view(now time.Time, node *Snapshot, host next.Host) next.View {
	wanted, problems := marker.DecodeIntent(node.Annotations)
	lock, unread := marker.DecodeLock(node.Annotations)
	a.unread(append(slices.Clone(problems), unread...))
	if len(problems) > 0 {
		// An unreadable intent permits nothing.
		wanted = marker.Intent{}
	}
	// Unreadable parts of the agent's own report are written anew.
	last, _ := marker.DecodeReport(node.Annotations)
	v := a.memory.View(now, wanted, last, host)
	if _, disrupted := node.Annotations[string(marker.KeyDisruption)]; !disrupted && len(unread) == 0 {
		a.memory.Wish(&v, lock)
	}
	return v
}

// unread logs what could not be read of what the node asks for, once.
func (a *Agent) unread(problems []marker.Problem) {
	if text := fmt.Sprint(problems); text != a.unreadable && (len(problems) > 0 || a.unreadable != "") {
		a.unreadable = text
		if len(problems) > 0 {
			a.log.WithField(telemetry.FieldMessage, text).Warn("The intent can't be read and is not acted on")
		}
	}
}

// hostTrouble returns the pause after a failed look at the host.
func (a *Agent) hostTrouble(ctx context.Context, now time.Time, err error) (time.Duration, error) {
	if ctx.Err() != nil {
		return 0, nil
	}
	if a.hosting.changed(err.Error()) {
		a.log.WithField(telemetry.FieldError, err).Warn("Could not look at the host")
	}
	pause := a.hosting.pause(a.cfg.Rand())
	a.hostFailed(err)
	if gone := (*platform.GoneError)(nil); !errors.As(err, &gone) {
		a.goneLooks = 0
		return pause, nil
	}
	if a.goneLooks++; a.goneLooks == 1 {
		a.goneSince = now
	}
	if a.goneLooks >= goneLooks && now.Sub(a.goneSince) >= goneAfter {
		return 0, errors.WithMessage(ErrSocketReplaced, err.Error())
	}
	return min(pause, goneEvery), nil
}

// hostFailed keeps the error of a look at the host for the probes.
func (a *Agent) hostFailed(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.probes.hostErr = err
	if a.hosting.failures >= unreadyAfter {
		a.probes.host = false
	}
}

// hostFound notes that a look at the host succeeded.
func (a *Agent) hostFound() {
	if a.hosting.logged != "" {
		a.log.Info("The host can be looked at again")
	}
	a.hosting.over()
	a.goneLooks = 0
	a.mu.Lock()
	a.probes.host, a.probes.hostErr = true, nil
	a.mu.Unlock()
}
