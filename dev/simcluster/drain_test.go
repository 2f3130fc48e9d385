package simcluster_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/simcluster"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// A budget that can never let the only replica of a workload go keeps its node in service, and nobody else from being
// updated: people read which budget and which pod (S9, L3). With the budget gone the node is updated too.
func TestBudgetThatNeverAllows(t *testing.T) {
	t.Run("brupop_594", func(t *testing.T) {
		w := inWorld(t)
		held := w.Fleet.Machines()[0].Name()
		began := time.Now()
		w.rollout(t, func() {
			others := map[string]int{}
			for name, boots := range w.boots() {
				others[name] = boots
			}
			assert.NilError(t, w.keep(t.Context(), held))
			t.Cleanup(func() { _ = w.letGo(context.Background(), held) })
			assert.NilError(t, simcluster.Await(t.Context(), "the others are updated", bound, func() (bool, error) {
				for name, boots := range w.boots() {
					if name != held && boots == others[name] {
						return false, nil
					}
				}
				return true, nil
			}))
			assert.NilError(t, simcluster.Await(t.Context(), "the node says what keeps it", bound, func() (bool, error) {
				out, err := w.plan(t.Context())
				for _, n := range out.Nodes {
					if n.Node == held && n.Reason == plan.ReasonBudgetBlocks {
						return strings.Contains(n.Message.String(), "PodDisruptionBudget default/on-"+held+" would not let pod default/on-"+held), err
					}
				}
				return false, err
			}))
			assert.Equal(t, w.boots()[held], others[held])
			for _, r := range operator(w.requests(t, began)) {
				assert.Check(t, r.resource() != "pods/eviction" || !strings.HasPrefix(r.Object.Name, "on-"+held), "evicted before the cordon: %s", r)
			}
			assert.NilError(t, w.letGo(t.Context(), held))
		})
	})
}

// keep makes a budget that lets the pod that is pinned to a node never go.
func (w *world) keep(ctx context.Context, node string) error {
	_, err := w.Client.PolicyV1().PodDisruptionBudgets(metav1.NamespaceDefault).Create(ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "on-" + node},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &intstr.IntOrString{IntVal: 1},
			Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{"app": "on-" + node}},
		},
	}, metav1.CreateOptions{})
	return err
}

func (w *world) letGo(ctx context.Context, node string) error {
	return w.Client.PolicyV1().PodDisruptionBudgets(metav1.NamespaceDefault).Delete(ctx, "on-"+node, metav1.DeleteOptions{})
}
