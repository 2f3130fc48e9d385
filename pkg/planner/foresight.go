package planner

import (
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// freshFor is how long a look that found nothing in the way of a drain is good for.
const freshFor = 30 * time.Second

// obstructed lets a node wait for what stands in the way of its drain, by the last look at it. The next one goes.
func (p *planner) obstructed(c *candidate) bool {
	v := p.obstacle(c)
	if v.reason == "" || !p.holds(c.Forecast) {
		return false
	}
	p.wakeAt(c.Forecast.Next)
	v.sentence = v.sentence.After(plan.Staged, "").Over(c.Forecast.Next)
	if c.held {
		p.hold(c.Node, v.reason, v.sentence)
	} else {
		p.wait(c.Node, intent.PhasePrepared, v.reason, v.sentence)
	}
	return true
}

// unseen has a node looked at, unless somebody did a moment ago. It has its place in this plan: as many are looked at,
// at once, as could go. But nothing is taken yet.
func (p *planner) unseen(c *candidate, counted bool) bool {
	n, e := c.Node, &c.part.rules.Eviction
	if !p.looksAhead(c) || n.Forecast != nil && p.holds(n.Forecast) {
		return false
	}
	if !c.held {
		for _, part := range p.parts(c) {
			part.take(n, counted)
		}
	}
	step := p.step(n, intent.PhasePrepared, intent.ActLook, plan.ReasonLooking, "its pods and their budgets are looked at before the cordon", nil)
	step.Eviction = e
	if c.part.rules.Verify.OnWorkloads == policy.FailOnWorkloads {
		step.Check = &plan.Check{For: fleet.CheckBaseline}
	}
	return true
}

// obstacle is what the last look found in the way of a node's drain.
func (p *planner) obstacle(c *candidate) verdict {
	f := c.Forecast
	if f == nil || f.Obstacle == fleet.ObstacleNone || !p.looksAhead(c) {
		return verdict{}
	}
	return verdict{ways[f.Obstacle], plan.Say("{s}").With(f.Message)}
}

// looksAhead tells if what stands in the way of a drain matters: by force everything can be drained, and what is left in
// place isn't.
func (p *planner) looksAhead(c *candidate) bool {
	e := &c.part.rules.Eviction
	return e.Predict && !e.Force && !p.leftInPlace(c.Node)
}

// holds tells if what was found still counts. A time ahead is of a clock that was put right since.
func (p *planner) holds(f *fleet.Forecast) bool {
	end := f.At.Add(freshFor)
	if f.Obstacle != fleet.ObstacleNone {
		end = f.Next
	}
	return !p.Now.Before(f.At) && p.Now.Before(end)
}

// ways are the reasons for which a node waits before its cordon, by what stands in the way.
var ways = map[fleet.Obstacle]plan.Reason{
	fleet.ObstacleBudget:    plan.ReasonBudgetBlocks,
	fleet.ObstacleAwaited:   plan.ReasonPodAwaited,
	fleet.ObstacleProtected: plan.ReasonPodProtected,
	fleet.ObstacleUnknown:   plan.ReasonDrainFailing,
}

// Obstacle is what stands in the way of a node that waits for this reason before its cordon.
func Obstacle(r plan.Reason) fleet.Obstacle {
	for o, way := range ways {
		if way == r {
			return o
		}
	}
	return fleet.ObstacleNone
}
