package controller

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pkg/errors"
	"github.com/prometheus/client_golang/prometheus"
	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/notice"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// telling is a cluster of which there is something to tell, and its receiver.
type telling struct {
	*scripted
	// book is what is kept, and refused how many writes of it are refused from now on.
	book    string
	refused int
	// answers are those to the tries, the last one to all further ones, and tries when these were.
	answers []notice.Result
	tries   []time.Duration
	began   time.Time
	// died: the process ends in the middle of the next try.
	died context.CancelFunc
}

func (c *telling) State(context.Context) (kube.State, error) { return kube.State{Notices: c.book}, nil }

func (c *telling) Current() kube.PolicyState {
	set := policy.DefaultSettings()
	set.Notify.URLKey = "slack"
	return kube.PolicyState{Settings: set}
}

func (c *telling) RecordNotices(_ context.Context, before, after string) error {
	if c.refused > 0 {
		c.refused--
		return errors.New("the API server is ill")
	}
	if before != c.book {
		return kube.ErrConflict
	}
	c.book = after
	return nil
}

func (c *telling) Send(ctx context.Context, _ string, m notice.Message) (notice.Result, error) {
	c.tries = append(c.tries, time.Since(c.began))
	if c.died != nil {
		c.died()
		c.died = nil
		return notice.Unknown, ctx.Err()
	}
	result := c.answers[0]
	if len(c.answers) > 1 {
		c.answers = c.answers[1:]
	}
	if result == notice.Sent {
		return result, nil
	}
	return result, errors.New("it was not sent")
}

// run is a leader's term, for a time.
func (c *telling) run(ctx context.Context, m *Metrics, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	t := c.term()
	t.c.Cluster, t.c.Policies, t.c.Sender, t.c.Metrics = c, c, c, m
	t.Run(ctx)
	synctest.Wait()
}

// Without a policy it isn't known where to send what is to be told: it waits, and no try fails.
func TestTellingWithoutPolicy(t *testing.T) {
	c := &telling{scripted: newScripted(1), answers: []notice.Result{notice.Sent}}
	term := c.term()
	term.c.Cluster, term.c.Sender, term.c.Spawn = c, c, func(f func()) { f() }
	now := time.Now()
	c.book = notice.Book{Since: now, Entries: map[string]notice.Entry{"NodeLost/a": {Notice: &notice.Notice{Message: "a is Lost"}, Found: now}}}.Encode()
	s := fleet.Snapshot{Now: now.Add(time.Minute), Notices: c.book, NoPolicy: true}
	wake := term.notify(t.Context(), s, plan.Plan{}, &policy.Notify{})
	assert.Assert(t, wake.IsZero())
	assert.Equal(t, len(c.tries), 0)
	s.NoPolicy = false
	term.notify(t.Context(), s, plan.Plan{}, &policy.Notify{URLKey: "slack"})
	assert.Equal(t, len(c.tries), 1)
}

// However a try ends, the next one is made when it may be, without a tick in between: after a refusal with back-off,
// after no answer an hour later, and so too by the next leader where one died in the middle. What is refused for a day
// is dropped and counted.
func TestTellingAgain(t *testing.T) {
	const s, m, h = time.Second, time.Minute, time.Hour
	for _, tc := range []struct {
		name    string
		answers []notice.Result
		dies    bool
		refused int
		want    []time.Duration
		counted map[string]float64
	}{
		{"at once", []notice.Result{notice.Sent}, false, 0, []time.Duration{0}, map[string]float64{"sent": 1}},
		{"refused twice", []notice.Result{notice.Refused, notice.Refused, notice.Sent}, false, 0, []time.Duration{0, 30 * s, 90 * s},
			map[string]float64{"sent": 1, "refused": 2}},
		{"no answer", []notice.Result{notice.Unknown, notice.Sent}, false, 0, []time.Duration{0, h}, map[string]float64{"sent": 1, "unknown": 1}},
		{"the leader dies", []notice.Result{notice.Sent}, true, 0, []time.Duration{0, h}, map[string]float64{"sent": 1}},
		{"what is told can't be recorded", []notice.Result{notice.Sent}, false, 3, []time.Duration{7 * s}, map[string]float64{"sent": 1}},
		{"always refused", []notice.Result{notice.Refused}, false, 0, nil, map[string]float64{"dropped": 1, "sent": 0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &telling{scripted: newScripted(1), answers: tc.answers}
				registry := prometheus.NewRegistry()
				metrics := NewMetrics(registry, false)
				c.run(t.Context(), metrics, m)
				n := c.nodes["n00"]
				n.Marks.Failure = &marker.Failure{Versions: []string{"1.51.0"}, Count: 1, At: time.Now().Add(s), Message: "rolled back"}
				time.Sleep(s)
				c.nodes["n00"], c.views["n00"] = n, n
				c.began, c.refused = time.Now(), tc.refused
				if tc.dies {
					ctx, cancel := context.WithCancel(t.Context())
					c.died = cancel
					c.run(ctx, metrics, 24*h)
				}
				c.run(t.Context(), metrics, 40*h)
				for i := range c.tries {
					c.tries[i] = c.tries[i].Round(s)
				}
				if tc.want == nil {
					assert.Assert(t, len(c.tries) > 5 && len(c.tries) < 40, "%v", c.tries)
				} else {
					assert.DeepEqual(t, c.tries, tc.want)
				}
				counted := series(t, registry, ours+"notifications_total")
				for result, want := range tc.counted {
					assert.Equal(t, counted["result="+result+" "], want, "%s", result)
				}
			})
		})
	}
}
