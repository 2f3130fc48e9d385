package controller_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"gotest.tools/v3/assert"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// Nodes whose writes are refused, or hang, or whose cordon alone is refused after a slot was taken for it, keep no
// other from an update, with one place for all (S8, L3). They are left alone but for a few tries, say why in the plan and
// in an Event (S9), hold no slot, and go on when that is mended (L1). They come first by name, so that they would be the
// first to go.
func TestAttackSlowAndRefusedWrites(t *testing.T) {
	f := newFleet(t, "cordon-refused", "hanging", "refused", "well-1", "well-2")
	hangs := f.writeThrough("hanging")
	c, _ := f.control(nil)
	for _, m := range f.machines {
		f.until(m.name+" is managed", m.updatedTo(v1))
	}
	over := f.watchHands(1)
	f.refuse("object.metadata.name == 'refused' || object.metadata.name == 'cordon-refused' && has(object.spec.unschedulable)")
	hangs.start()
	f.release(v2)
	standing := func(node string) plan.Decision {
		out, err := c.Plan(t.Context())
		if err != nil {
			return plan.Decision{}
		}
		return out.Nodes[slices.IndexFunc(out.Nodes, func(n plan.Decision) bool { return n.Node == node })]
	}
	bad := map[string]string{
		"cordon-refused": "ValidatingAdmissionPolicy", "refused": "ValidatingAdmissionPolicy", "hanging": "the API server has not answered within"}
	for name, why := range bad {
		f.until(name+" says so", func() bool {
			s := standing(name)
			return s.Reason == plan.ReasonWriteFailing && strings.Contains(s.Message.String(), why)
		})
		f.until("an Event on "+name, func() bool {
			events, err := f.client.CoreV1().Events("").List(t.Context(), metav1.ListOptions{FieldSelector: "reason=WriteFailing,involvedObject.name=" + name})
			return err == nil && len(events.Items) == 1
		})
	}
	f.until("well-1 is updated", f.machines["well-1"].updatedTo(v2))
	f.until("well-2 is updated", f.machines["well-2"].updatedTo(v2))
	assert.Equal(t, over(), 0)
	for name := range bad {
		n := f.machines[name].node()
		assert.Assert(t, !n.Spec.Unschedulable && n.Annotations[string(marker.KeyDisruption)] == "", name)
	}
	// Each try takes twice as long to come as the one before: with writes of other kinds in between this leaves room for minutes.
	for _, name := range []string{"refused", "hanging"} {
		assert.Assert(t, hangs.patches(name) <= 10, "%d writes to %s", hangs.patches(name), name)
	}
	f.until("no slot is left", func() bool {
		state, err := f.client.CoreV1().ConfigMaps(f.namespace).Get(t.Context(), "update-state", metav1.GetOptions{})
		return err == nil && state.Data["slots"] == "{}"
	})
	f.refuse("false")
	hangs.stop()
	for _, name := range []string{"refused", "hanging"} {
		f.until(name+" is staged", func() bool { return f.machines[name].marks().Intent.Target == v2 })
	}
}

// refuse makes the API server refuse the controller's writes to Nodes of which this is true, and no others any more.
func (f *testFleet) refuse(expression string) {
	f.t.Helper()
	ours := []admissionv1.Validation{{Expression: "!has(request.options.fieldManager) || request.options.fieldManager != 'bottlerocket-update-operator' || !(" + expression + ")", Message: "not this one"}}
	policies, meta := f.client.AdmissionregistrationV1().ValidatingAdmissionPolicies(), metav1.ObjectMeta{Name: "refused"}
	if p, err := policies.Get(f.t.Context(), meta.Name, metav1.GetOptions{}); err == nil {
		p.Spec.Validations = ours
		_, err = policies.Update(f.t.Context(), p, metav1.UpdateOptions{})
		assert.NilError(f.t, err)
		return
	}
	nodes := &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Update}, Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"nodes"}}}}}}
	_, err := policies.Create(f.t.Context(), &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: meta,
		Spec: admissionv1.ValidatingAdmissionPolicySpec{MatchConstraints: nodes, Validations: ours, FailurePolicy: new(admissionv1.Fail)}}, metav1.CreateOptions{})
	assert.NilError(f.t, err)
	_, err = f.client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(f.t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta,
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: meta.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}}}, metav1.CreateOptions{})
	assert.NilError(f.t, err)
	f.until("the API server knows the policy", func() bool {
		body := []byte(`{"metadata":{"annotations":{"try":"x"}}}`)
		_, err := f.client.CoreV1().Nodes().Patch(f.t.Context(), "refused", "application/merge-patch+json", body,
			metav1.PatchOptions{FieldManager: "bottlerocket-update-operator", DryRun: []string{metav1.DryRunAll}})
		return err != nil
	})
}

// writeThrough gives the fleet a client. Once that is started, its writes to one node are made but not answered.
func (f *testFleet) writeThrough(node string) *hanging {
	f.t.Helper()
	h := &hanging{node: node, asked: map[string]int{}, over: make(chan struct{})}
	config := rest.CopyConfig(f.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		h.next = next
		return h
	})
	client, err := kubernetes.NewForConfig(config)
	assert.NilError(f.t, err)
	f.client = client
	return h
}

// hanging counts patches of Nodes by the controller, and keeps those of one back.
type hanging struct {
	next http.RoundTripper
	node string

	mu    sync.Mutex
	on    bool
	asked map[string]int
	// over: what was kept back goes on.
	over chan struct{}
}

func (h *hanging) start() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.on, h.asked = true, map[string]int{}
}

func (h *hanging) stop() { close(h.over) }

func (h *hanging) patches(node string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.asked[node]
}

// RoundTrip is for http.RoundTripper.
func (h *hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	node, ours := strings.CutPrefix(r.URL.Path, "/api/v1/nodes/")
	if r.Method == http.MethodPatch && ours && r.URL.Query().Get("fieldManager") == "bottlerocket-update-operator" {
		h.mu.Lock()
		h.asked[node]++
		on := h.on && node == h.node
		h.mu.Unlock()
		if on {
			select {
			case <-r.Context().Done():
				return nil, r.Context().Err()
			case <-h.over:
			}
		}
	}
	return h.next.RoundTrip(r)
}
