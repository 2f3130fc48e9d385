package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent/next"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/platform"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

const (
	// A socket is given up for replaced after so many looks in a row that found nobody behind it, over
	// so long; in between the looks come at least every goneEvery.
	goneLooks = 3
	goneAfter = 15 * time.Second
	goneEvery = 5 * time.Second
)

// Turn looks at the node and the host, decides on one step and carries it out. It returns how long
// nothing needs to be done unless something changes. The only error is ErrSocketReplaced.
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
	if lacks := (*platform.NoAPIError)(nil); errors.As(err, &lacks) && a.stabilizing(node) {
		return a.withoutAPI(ctx, now, node, lacks), nil
	}
	if err != nil {
		return a.hostTrouble(ctx, now, err)
	}
	a.hostFound()
	a.memory.Observed(now, host)

	v := a.view(now, node, host)
	a.cfg.Metrics.seen(v.Intent, v.Report)
	step := next.Decide(v)
	switch step.Kind {
	case next.StepReport:
		return a.answer(ctx, node, v, step), nil
	case next.StepCommand:
		a.writing.over()
		return a.ask(ctx, v, step.Command), nil
	default:
		return a.facts(ctx, node, v, step), nil
	}
}

// stabilizing reports whether nothing but facts is asked of the host. Else an API without routes may be one that is just
// coming up, and nothing may be concluded from it.
func (a *Agent) stabilizing(node *Seen) bool {
	wanted, problems := marker.DecodeIntent(node.Annotations)
	return len(problems) == 0 && wanted.Action == marker.ActionStabilize
}

// apiAgain is how soon a host without an API is looked at again.
const apiAgain = time.Minute

// withoutAPI tells of a host that answers, and can't be asked for an update.
func (a *Agent) withoutAPI(ctx context.Context, now time.Time, node *Seen, lacks error) time.Duration {
	a.hostFound()
	v := a.view(now, node, next.Host{})
	v.Unsupported = lacks.Error()
	if step := next.Decide(v); step.Kind == next.StepReport {
		return a.answer(ctx, node, v, step)
	}
	return apiAgain
}

// view is all that the step is decided from.
func (a *Agent) view(now time.Time, node *Seen, host next.Host) next.View {
	wanted, problems := marker.DecodeIntent(node.Annotations)
	if text := fmt.Sprint(problems); text != a.unreadable && (len(problems) > 0 || a.unreadable != "") {
		a.unreadable = text
		if len(problems) > 0 {
			a.log.WithField(telemetry.FieldMessage, text).Warn("The intent can't be read and is not acted on")
		}
	}
	if len(problems) > 0 {
		// Nothing unreadable is ever taken for permission.
		wanted = marker.Intent{}
	}
	// What can't be read of the own report is written anew.
	last, _ := marker.DecodeReport(node.Annotations)
	return a.memory.View(now, wanted, last, host)
}

// hostTrouble pauses after a look at the host that found nothing out.
func (a *Agent) hostTrouble(ctx context.Context, now time.Time, err error) (time.Duration, error) {
	if ctx.Err() != nil {
		return 0, nil
	}
	a.cfg.Metrics.hostErrors.WithLabelValues(observe).Inc()
	if a.hosting.changed(err.Error()) {
		a.log.WithField(telemetry.FieldError, err).Warn("Could not look at the host")
	}
	pause := a.hosting.pause(a.cfg.Rand())
	a.hostBlind(err)
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

// hostBlind keeps for the probes why the host can't be looked at.
func (a *Agent) hostBlind(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.probes.blind = err
	if a.hosting.failures >= blindLooks {
		a.probes.host = false
	}
}

// hostFound ends the host's trouble.
func (a *Agent) hostFound() {
	if a.hosting.logged != "" {
		a.log.Info("The host can be looked at again")
	}
	a.hosting.over()
	a.goneLooks = 0
	a.mu.Lock()
	a.probes.host, a.probes.blind = true, nil
	a.mu.Unlock()
}
