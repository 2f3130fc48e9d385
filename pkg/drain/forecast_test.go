package drain_test

import (
	"strings"
	"testing"

	"gotest.tools/v3/assert"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// A look before the cordon finds what would block an eviction, and nothing else, and names it.
func TestForecast(t *testing.T) {
	none := policyv1.PodDisruptionBudgetStatus{ExpectedPods: 2, CurrentHealthy: 1, DesiredHealthy: 1}
	never := func(b *policyv1.PodDisruptionBudget) {
		b.Spec.MinAvailable, b.Spec.MaxUnavailable = nil, new(intstr.FromInt32(0))
	}
	always := func(b *policyv1.PodDisruptionBudget) {
		b.Spec.UnhealthyPodEvictionPolicy = new(policyv1.AlwaysAllow)
	}
	for _, tc := range []struct {
		name string
		make func(l *place)
		want fleet.Obstacle
		// says are parts of the message.
		says []string
	}{
		{"nothing on it", func(*place) {}, fleet.ObstacleNone, nil},
		{"pods without a budget", func(l *place) { l.pod("web") }, fleet.ObstacleNone, nil},
		{"a budget with room", func(l *place) {
			l.pod("web")
			l.budget("web", "web", policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 1, ExpectedPods: 2, CurrentHealthy: 2, DesiredHealthy: 1})
		}, fleet.ObstacleNone, nil},
		{"a budget of other pods", func(l *place) { l.pod("web"); l.budget("db", "db", none) }, fleet.ObstacleNone, nil},
		{"brupop_650", func(l *place) {
			l.pod("web", unready)
			l.budget("web", "web", policyv1.PodDisruptionBudgetStatus{ExpectedPods: 3, CurrentHealthy: 0, DesiredHealthy: 2})
		}, fleet.ObstacleBudget, []string{"PodDisruptionBudget ", "/web would not let ", "0 of its 3 pods are healthy, and it keeps 2"}},
		{"brupop_594", func(l *place) {
			l.pod("web")
			l.budget("never", "web", policyv1.PodDisruptionBudgetStatus{ExpectedPods: 3, CurrentHealthy: 3, DesiredHealthy: 3}, never)
		}, fleet.ObstacleBudget, []string{"PodDisruptionBudget ", "/never would not let ", "its maxUnavailable is 0"}},
		{"a single replica", func(l *place) {
			l.pod("web")
			l.budget("web", "web", policyv1.PodDisruptionBudgetStatus{ExpectedPods: 1, CurrentHealthy: 1, DesiredHealthy: 1})
		}, fleet.ObstacleBudget, []string{"it keeps a single replica"}},
		{"all of them are kept", func(l *place) {
			l.pod("web")
			l.budget("web", "web", policyv1.PodDisruptionBudgetStatus{ExpectedPods: 3, CurrentHealthy: 3, DesiredHealthy: 3})
		}, fleet.ObstacleBudget, []string{"it keeps all of its 3 pods"}},
		{"one is ill", func(l *place) { l.pod("web"); l.budget("web", "web", none) }, fleet.ObstacleBudget, []string{"1 of its 2 pods are healthy, and it keeps 1"}},
		{"this one is ill, and enough are well", func(l *place) { l.pod("web", unready); l.budget("web", "web", none) }, fleet.ObstacleNone, nil},
		{"this one is ill, and not enough are well", func(l *place) {
			l.pod("web", unready)
			l.budget("web", "web", policyv1.PodDisruptionBudgetStatus{ExpectedPods: 2, CurrentHealthy: 1, DesiredHealthy: 2})
		}, fleet.ObstacleBudget, []string{"it keeps all of its 2 pods"}},
		{"this one is ill, and the budget lets such go", func(l *place) {
			l.pod("web", unready)
			l.budget("web", "web", policyv1.PodDisruptionBudgetStatus{ExpectedPods: 2, CurrentHealthy: 1, DesiredHealthy: 2}, always)
		}, fleet.ObstacleNone, nil},
		{"this one has not started", func(l *place) { l.pod("web", pending); l.budget("web", "web", none) }, fleet.ObstacleNone, nil},
		{"it is selected by mistake", func(l *place) {
			l.pod("web")
			l.budget("web", "web", policyv1.PodDisruptionBudgetStatus{Conditions: []metav1.Condition{{Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse,
				Reason: policyv1.SyncFailedReason, Message: "found no controllers for pod web", LastTransitionTime: metav1.Now()}}})
		}, fleet.ObstacleBudget, []string{"its state is not known: found no controllers"}},
		{"several budgets", func(l *place) {
			l.pod("web")
			plenty := policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 1, ExpectedPods: 2, CurrentHealthy: 2, DesiredHealthy: 1}
			l.budget("one", "web", plenty)
			l.budget("two", "web", plenty)
		}, fleet.ObstacleBudget, []string{"several PodDisruptionBudgets (one, two)"}},
		{"a job that must finish", func(l *place) { l.pod("job", labelled("job=yes")) }, fleet.ObstacleAwaited, []string{"/job runs"}},
		{"a job that has finished", func(l *place) { l.pod("job", labelled("job=yes"), finished) }, fleet.ObstacleNone, nil},
		{"a pod that stays", func(l *place) { l.pod("left", labelled("left=yes")); l.budget("left", "left", none) }, fleet.ObstacleNone, nil},
		{"data", func(l *place) { l.pod("data", keepsData) }, fleet.ObstacleProtected, []string{"/data keeps data in an emptyDir"}},
		{"the operator's own", func(l *place) { l.pod("own", labelled("own=yes"), keepsData); l.budget("own", "own", none) }, fleet.ObstacleNone, nil},
		{"on its way out", func(l *place) {
			l.pod("web", grace(30))
			l.budget("web", "web", none)
			assert.NilError(l.t, l.client.CoreV1().Pods(l.namespace).Delete(l.t.Context(), "web", metav1.DeleteOptions{}))
		}, fleet.ObstacleNone, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := newPlace(t)
			tc.make(l)
			e := evicting()
			has := func(key string) []policy.PodSelector {
				return []policy.PodSelector{{Selector: policy.Selector{{Key: key, Operator: policy.Exists}}}}
			}
			e.EmptyDirData, e.WaitFor, e.Leave = policy.Block, has("job"), has("left")
			got, says, err := l.drainer().Forecast(t.Context(), l.node, e)
			assert.NilError(t, err)
			assert.Equal(t, got, tc.want, says)
			for _, part := range tc.says {
				assert.Assert(t, strings.Contains(says, part), says)
			}
			// A pass then meets the same.
			r := l.pass(l.drainer(), e, false)
			assert.Equal(t, r.Blocked > 0 || r.Awaited != "", tc.want != fleet.ObstacleNone, "%+v", r)
		})
	}
}
