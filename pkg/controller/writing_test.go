package controller

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	"gotest.tools/v3/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// A pass waits for a few writes that take too long, each for a short time, and for none of those nodes again: the others
// are written to as soon as that is over, however many are slow (S8, L3).
func TestAttackSlowWrites(t *testing.T) {
	for _, tc := range []struct{ slow, passes int }{{0, 1}, {1, 1}, {3, 2}, {20, 7}} {
		t.Run(fmt.Sprintf("%d slow", tc.slow), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newScripted(30)
				for i := range tc.slow {
					c.writes[name(i)] = hangs
				}
				term := c.term()
				began, passes := time.Now(), 0
				for ; c.untouched(tc.slow) > 0; passes++ {
					before := time.Now()
					_, err := term.Pass(t.Context())
					assert.NilError(t, err)
					assert.Assert(t, time.Since(before) <= slowWrites*writeTime)
				}
				assert.Equal(t, passes, tc.passes)
				assert.Equal(t, time.Since(began), time.Duration(tc.slow)*writeTime)
				for range 10 {
					// By now each of them is written to aside.
					before := time.Now()
					_, err := term.Pass(t.Context())
					assert.NilError(t, err)
					assert.Equal(t, time.Since(before), time.Duration(0))
					time.Sleep(20 * time.Second)
				}
				synctest.Wait()
				time.Sleep(asideTime)
			})
		})
	}
}

// A node whose writes fail is written to ever more rarely. An Event says so, and a second one warns once it lasts (S9);
// the first success is the end of that. A write that gets no answer may be carried out after all: what stands is looked at
// before the next one.
func TestAttackWritesWithoutEnd(t *testing.T) {
	for _, tc := range []struct {
		name  string
		write func(context.Context) (lands bool, err error)
		// busy: something else writes to it whenever it is looked at.
		busy   bool
		says   string
		writes [2]int
	}{
		{"refused", refuses, false, "the API server refuses a write: nodes \"n00\" is forbidden: not that one", [2]int{14, 18}},
		{"a webhook that fails", fails, false, "the API server refuses a write: Internal error occurred: failed calling webhook", [2]int{14, 18}},
		{"too slow", hangs, false, "the API server has not answered within 30s", [2]int{12, 18}},
		{"overtaken", overtaken, false, overtakenSays, [2]int{conflictRow + 13, conflictRow + 17}},
		{"overtaken also when looked at", overtaken, true, overtakenSays, [2]int{conflictRow, conflictRow}},
		{"too slow, and done all the same", func(ctx context.Context) (bool, error) {
			_, err := hangs(ctx)
			return true, err
		}, false, "the API server has not answered within 5s", [2]int{1, 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newScripted(3)
				c.writes["n00"], c.busy["n00"] = tc.write, tc.busy
				term := c.term()
				ctx, stop := context.WithCancel(t.Context())
				go term.Run(ctx)
				time.Sleep(time.Minute)
				out, err := term.Plan(ctx)
				assert.NilError(t, err)
				lands := tc.writes[1] == 1
				assert.Equal(t, out.Nodes[0].Reason == plan.ReasonWriteFailing, !lands, out.Nodes[0].Message.String())
				assert.Assert(t, lands || strings.HasPrefix(out.Nodes[0].Message.String(), tc.says), out.Nodes[0].Message.String())
				time.Sleep(time.Hour)
				c.mu.Lock()
				asked := c.asked["n00"]
				c.mu.Unlock()
				assert.Assert(t, asked >= tc.writes[0] && asked <= tc.writes[1], "%d writes in an hour", asked)
				told := c.told("n00", plan.ReasonWriteFailing)
				if lands {
					assert.DeepEqual(t, told, []string{"Normal"})
				} else {
					assert.DeepEqual(t, told, []string{"Normal", "Warning"})
				}
				c.mu.Lock()
				delete(c.writes, "n00")
				delete(c.busy, "n00")
				c.mu.Unlock()
				time.Sleep(writeLate + time.Second)
				synctest.Wait()
				assert.Equal(t, c.untouched(0), 0)
				if !lands {
					assert.DeepEqual(t, c.told("n00", plan.ReasonManaged), []string{"Normal"})
				}
				stop()
				synctest.Wait()
			})
		})
	}
}

// An API server that takes long with every write is no reason for a standstill: all nodes get on by writes that no pass
// waits for (L1).
func TestSlowForEveryNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newScripted(20)
		for i := range 20 {
			c.writes[name(i)] = func(ctx context.Context) (bool, error) {
				select {
				case <-ctx.Done():
					return false, ctx.Err()
				case <-time.After(12 * time.Second):
					return true, nil
				}
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		go c.term().Run(ctx)
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		assert.Equal(t, c.untouched(0), 0)
		stop()
		synctest.Wait()
	})
}

// A node out of service whose root writes to it all the time keeps its place no longer than one that refuses all
// writes: it is Lost after the return deadline, and lends its place on (S8, L3), whenever the conflicts are met.
func TestAttackConflictsKeepAPlace(t *testing.T) {
	for _, busy := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := newScripted(2)
			// Without a cordon its disruption is to be ended, which takes a write.
			n, began := c.nodes["n00"], time.Now().Add(-2*time.Hour)
			n.BootID, n.OSVersion, n.AgentPod, n.AgentReady = "b1", "1.1.0", true, true
			n.Marks = marker.Marks{
				Intent: marker.Intent{ID: "i1", Action: marker.ActionPrepareUpdate, Target: "1.2.0", RebootFrom: "b1", Time: began, Until: began.Add(time.Hour)},
				Report: marker.Report{ActiveID: "i1", State: marker.StateReady, Current: "1.1.0", BootID: "b1", Protocol: 2}, Disruption: &marker.Disruption{Since: began},
			}
			c.nodes["n00"], c.views["n00"] = n, n
			c.writes["n00"], c.busy["n00"] = overtaken, busy
			term := c.term()
			ctx, stop := context.WithCancel(t.Context())
			go term.Run(ctx)
			for _, tc := range []struct {
				after  time.Duration
				reason plan.Reason
				lent   int
			}{{time.Minute, plan.ReasonWriteFailing, 0}, {14 * time.Minute, plan.ReasonLost, 1}, {time.Hour, plan.ReasonLost, 1}} {
				time.Sleep(tc.after)
				out, err := term.Plan(ctx)
				assert.NilError(t, err)
				assert.Equal(t, out.Nodes[0].Reason, tc.reason, out.Nodes[0].Message.String())
				assert.Equal(t, out.LostUncounted, tc.lent)
			}
			stop()
			synctest.Wait()
		})
	}
}

// A few conflicts are no trouble, for kubelets, agents and another leader write as well: the node is written to at once,
// and nothing is told of it. Those of long ago don't count.
func TestFewConflicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newScripted(1)
		left := conflictRow - 1
		c.writes["n00"] = func(context.Context) (bool, error) {
			if left--; left >= 0 {
				return false, kube.ErrConflict
			}
			return true, nil
		}
		term := c.term()
		term.conflicts["uid-n00"] = &conflicts{count: conflictRow - 1, last: time.Now().Add(-writeLate - calmAfter)}
		ctx, stop := context.WithCancel(t.Context())
		go term.Run(ctx)
		time.Sleep(time.Second)
		assert.Equal(t, c.untouched(0), 0)
		assert.Equal(t, len(c.told("n00", plan.ReasonWriteFailing)), 0)
		assert.Equal(t, len(term.conflicts), 0)
		stop()
		synctest.Wait()
	})
}

// What the API server answers to anything is held against no node.
func TestNoNodesTrouble(t *testing.T) {
	for _, err := range []error{syscall.ECONNREFUSED, apierrors.NewTooManyRequests("later", 1), apierrors.NewUnauthorized("who?"), apierrors.NewServiceUnavailable("later")} {
		c := newScripted(2)
		c.writes["n00"] = func(context.Context) (bool, error) { return false, err }
		term := c.term()
		_, passed := term.Pass(t.Context())
		assert.ErrorIs(t, passed, err)
		out, err := term.Plan(t.Context())
		assert.NilError(t, err)
		assert.Equal(t, out.Nodes[0].Reason, plan.ReasonManaged)
		assert.Equal(t, c.untouched(1), 0)
	}
}

func name(i int) string { return fmt.Sprintf("n%02d", i) }

// hangs gives no answer.
func hangs(ctx context.Context) (bool, error) {
	<-ctx.Done()
	return false, ctx.Err()
}

func refuses(context.Context) (bool, error) {
	return false, apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "n00", fmt.Errorf("not that\none"))
}

func fails(context.Context) (bool, error) {
	return false, apierrors.NewInternalError(fmt.Errorf("failed calling webhook"))
}

// overtaken meets a write of something else.
func overtaken(context.Context) (bool, error) { return false, kube.ErrConflict }

const overtakenSays = "something writes to the Node all the time: 10 writes in a row met a conflict"

// scripted is a cluster of nodes that are new to the operator, with how writes to some of them go.
type scripted struct {
	Cluster
	mu sync.Mutex
	// nodes are as they are stored, views as this process sees them: what was written without an answer only a live look shows.
	nodes, views map[string]fleet.Node
	writes       map[string]func(ctx context.Context) (lands bool, err error)
	// busy are the nodes to which something else writes right before each live look.
	busy   map[string]bool
	landed map[string]bool
	asked  map[string]int
	events []string
}

func newScripted(n int) *scripted {
	c := &scripted{nodes: map[string]fleet.Node{}, writes: map[string]func(context.Context) (bool, error){}, busy: map[string]bool{}, landed: map[string]bool{}, asked: map[string]int{}}
	for i := range n {
		c.nodes[name(i)] = fleet.Node{Name: name(i), UID: "uid-" + name(i), ResourceVersion: "1", Interface: fleet.InterfaceUpdateAPI, Ready: true}
	}
	c.views = maps.Clone(c.nodes)
	return c
}

func (c *scripted) term() *Term {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return NewTerm(TermConfig{Cluster: c, Events: c, Policies: c, Now: time.Now, Metrics: NewMetrics(nil, true), Log: log})
}

// untouched counts the nodes, but for the first ones, to which nothing was written.
func (c *scripted) untouched(first int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	count := 0
	for i := first; i < len(c.nodes); i++ {
		if !c.landed[name(i)] {
			count++
		}
	}
	return count
}

// told returns the kinds of Events that a reason had.
func (c *scripted) told(node string, r plan.Reason) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, e := range c.events {
		if how, found := strings.CutPrefix(e, node+" "+string(r)+" "); found {
			out = append(out, how)
		}
	}
	return out
}

func (c *scripted) Nodes(context.Context) ([]fleet.Node, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []fleet.Node
	for _, n := range slices.Sorted(maps.Keys(c.views)) {
		out = append(out, c.views[n])
	}
	return out, nil
}

func (c *scripted) Live(_ context.Context, node string) (fleet.Node, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, there := c.nodes[node]
	if c.busy[node] {
		n.ResourceVersion = next(n.ResourceVersion)
		c.nodes[node] = n
	}
	c.views[node] = n
	return n, there, nil
}

func (c *scripted) Write(ctx context.Context, node string, change *plan.Change) error {
	c.mu.Lock()
	c.asked[node]++
	write := c.writes[node]
	c.mu.Unlock()
	lands, err := true, error(nil)
	if write != nil {
		lands, err = write(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodes[node]
	if n.ResourceVersion != change.ResourceVersion {
		return kube.ErrConflict
	}
	if lands {
		n.Marks, n.ResourceVersion = change.Marks, next(n.ResourceVersion)
		c.nodes[node], c.landed[node] = n, true
	}
	if err == nil {
		c.views[node] = n
	}
	return err
}

func next(version string) string {
	n, _ := strconv.Atoi(version)
	return strconv.Itoa(n + 1)
}

func (c *scripted) State(context.Context) (kube.State, error)                           { return kube.State{}, nil }
func (c *scripted) ForgetSlots()                                                        {}
func (c *scripted) ChangeSlots(context.Context, map[string]string, []string) error      { return nil }
func (c *scripted) RecordVersions(context.Context, []string, []string, time.Time) error { return nil }
func (c *scripted) RecordRollouts(context.Context, string) error                        { return nil }
func (c *scripted) RecordNotices(context.Context, string, string) error                 { return nil }

func (c *scripted) Current() kube.PolicyState {
	return kube.PolicyState{Settings: policy.DefaultSettings()}
}

func (c *scripted) Event(node, _ string, warning bool, reason, _ string) {
	how := "Normal"
	if warning {
		how = "Warning"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, node+" "+reason+" "+how)
}

func (c *scripted) Once(_, node, uid string, warning bool, reason, message string) {
	c.Event(node, uid, warning, reason, message)
}

func (c *scripted) Notice(bool, string, string) {}
