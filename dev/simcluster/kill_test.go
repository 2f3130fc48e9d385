package simcluster_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/simcluster"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// maxReleases bounds how often a strike that came too late is tried again.
const maxReleases = 8

// strike is to kill a component at a moment.
type strike struct {
	moment    moment
	component string
}

// strikes are carried out over as many rollouts as it takes: on each node at most one a moment.
type strikes struct {
	w *world

	mu sync.Mutex
	// open are those that have not struck yet.
	open []strike
	// now are those of this rollout, by node and moment.
	now map[reached]strike
	log []string
}

// assign gives each node strikes of this rollout, the components in turn.
func (s *strikes) assign() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = map[reached]strike{}
	machines := s.w.Fleet.Machines()
	for _, o := range s.open {
		// Each node begins with another component, so that no node meets only one.
		at := (slices.Index(components, o.component) + momentIndex(o.moment)) % len(machines)
		for i := range machines {
			r := reached{machines[(at+i)%len(machines)].Name(), o.moment}
			if _, taken := s.now[r]; !taken {
				s.now[r] = o
				break
			}
		}
	}
}

var (
	components = []string{controller, agent, proxy}
	moments    = []moment{preparing, prepared, draining, rebooting, pointOfNoReturn, returning, verifying}
)

func momentIndex(m moment) int { return slices.Index(moments, m) + 1 }

// seen kills what is to be killed now. It counts only if the node is still at that moment when the process
// is dead.
func (s *strikes) seen(ctx context.Context, r reached) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.now[r]
	if !ok {
		return
	}
	delete(s.now, r)
	node := ""
	if o.component == agent {
		node = r.node
	}
	killed := s.w.Kill(o.component, node)
	after, err := s.w.moment(ctx, r.node)
	struck := err == nil && killed > 0 && after == r.moment
	s.log = append(s.log, fmt.Sprintf("%s at %q of %s: %d killed, then %q, counts: %t", o.component, r.moment, r.node, killed, after, struck))
	if struck {
		s.open = slices.DeleteFunc(s.open, func(x strike) bool { return x == o })
	}
}

// carryOut rolls out releases until all have struck.
func (s *strikes) carryOut(t *testing.T, also func(reached)) {
	t.Helper()
	releases := 0
	for len(s.open) > 0 && releases < maxReleases && !t.Failed() {
		releases++
		s.assign()
		began := time.Now()
		stop := s.w.follow(t, func(r reached) {
			s.seen(t.Context(), r)
			if also != nil {
				also(r)
			}
		})
		s.w.rollout(t, nil)
		stop()
		t.Logf("%s in %s:\n%s", version(s.w.released), time.Since(began).Round(time.Millisecond), strings.Join(s.log, "\n"))
		s.log = nil
	}
	assert.Check(t, len(s.open) == 0, "never struck in %d releases: %v", releases, s.open)
}

func all(moments []moment) []strike {
	var list []strike
	for _, m := range moments {
		for _, c := range components {
			list = append(list, strike{m, c})
		}
	}
	return list
}

func TestKilledInEachPhase(t *testing.T) {
	w := inWorld(t)
	s := &strikes{w: w, open: all(moments)}
	s.carryOut(t, nil)
}

// A pause gives a node back that has not begun to reboot; when the agent has undone what there is to undo
// and the pause ends, the rollout goes on.
func TestKilledWhileResetting(t *testing.T) {
	w := inWorld(t)
	s := &strikes{w: w, open: all([]moment{resetting})}
	paused := map[string]int{}
	s.carryOut(t, func(r reached) {
		switch {
		case r.moment == draining && paused[r.node] < w.released:
			paused[r.node] = w.released
			assert.Check(t, w.annotate(t.Context(), r.node, marker.KeyPaused, `"while it drains"`))
		case r.moment == resetting:
			assert.Check(t, w.annotate(t.Context(), r.node, marker.KeyPaused, "null"))
		}
	})
}

// annotate writes a JSON value to an annotation of a node; null removes it.
func (w *world) annotate(ctx context.Context, node string, key marker.Key, value string) error {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, key, value)
	return simcluster.Await(ctx, "an annotation of "+node+" is written", bound, func() (bool, error) {
		_, err := w.Client.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err == nil, err
	})
}
