package drain_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/manifest"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/drain"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// DaemonSet pods, static pods, pods that have ended and the operator's own stay. All others go, with data and without a
// controller, and the node counts as drained only when they are gone (S2).
func TestDrained(t *testing.T) {
	t.Run("brupop_74", func(t *testing.T) {
		l := newPlace(t)
		_, err := l.client.AppsV1().DaemonSets(l.namespace).Create(t.Context(), &appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{Name: "owner"},
			Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "daemon"}},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "daemon"}},
					Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}},
		}, metav1.CreateOptions{})
		assert.NilError(t, err)
		stay := map[string]string{}
		for name, c := range map[string]change{
			"daemon": owned("DaemonSet", "apps/v1"), "ended": finished, "own": labelled("own=yes"), "elsewhere": on("b-" + l.namespace),
			"static": func(p *corev1.Pod) {
				p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
				owned("Node", "v1")(p)
			},
		} {
			stay[name] = string(l.pod(name, c).UID)
		}
		l.pod("bare")
		l.pod("data", keepsData, owned("ReplicaSet", "apps/v1"))
		l.pod("slow", grace(30), owned("ReplicaSet", "apps/v1"))
		l.pod("orphan", owned("DaemonSet", "example.com/v1"))

		d := l.drainer()
		r := l.pass(d, evicting(), false)
		assert.Equal(t, r.Evicted, 4)
		assert.Equal(t, r.Remaining(), 4, "none of them was seen to be gone")
		r = l.pass(d, evicting(), false)
		assert.Equal(t, r.Terminating, 1)
		assert.Equal(t, r.Remaining(), 1)
		assert.Assert(t, strings.HasPrefix(r.Goes, l.qualified("slow")), r.Goes)
		assert.NilError(t, l.client.CoreV1().Pods(l.namespace).Delete(t.Context(), "slow", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}))
		assert.Equal(t, l.pass(d, evicting(), false).Remaining(), 0)
		for name, uid := range stay {
			assert.Equal(t, l.stands(name), uid, name)
		}
	})
}

// A new pod of the same name on another node, as of a StatefulSet, is another pod: neither the list nor a late eviction
// takes it for the old one.
func TestNamesake(t *testing.T) {
	again := func(l *place, name string) *corev1.Pod {
		assert.NilError(l.t, l.client.CoreV1().Pods(l.namespace).Delete(l.t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}))
		return l.pod(name, on("b-"+l.namespace), owned("StatefulSet", "apps/v1"))
	}
	t.Run("kured_1169", func(t *testing.T) {
		// A budget blocked the first pod; by the next pass its namesake runs elsewhere, and the budget would allow its
		// eviction.
		l := newPlace(t)
		l.pod("db-0", owned("StatefulSet", "apps/v1"))
		l.budget("db", "db-0", policyv1.PodDisruptionBudgetStatus{ExpectedPods: 2, CurrentHealthy: 1, DesiredHealthy: 1})
		d := l.drainer()
		assert.Equal(t, l.pass(d, evicting(), false).Blocked, 1)
		namesake := again(l, "db-0")
		assert.NilError(t, l.client.PolicyV1().PodDisruptionBudgets(l.namespace).Delete(t.Context(), "db", metav1.DeleteOptions{}))
		assert.Equal(t, l.pass(d, evicting(), false).Remaining(), 0)
		assert.Equal(t, l.stands("db-0"), string(namesake.UID))
	})
	t.Run("brupop_168", func(t *testing.T) {
		// Its eviction was accepted, and the drain doesn't wait for the pod that has its name by then.
		l := newPlace(t)
		l.pod("db-0", owned("StatefulSet", "apps/v1"), grace(30))
		assert.Equal(t, l.pass(l.drainer(), evicting(), false).Evicted, 1)
		namesake := again(l, "db-0")
		assert.Equal(t, l.pass(l.drainer(), evicting(), false).Remaining(), 0)
		assert.Equal(t, l.stands("db-0"), string(namesake.UID))
	})
	t.Run("kubernetes_138229", func(t *testing.T) {
		// A new pod replaces it between the list and the eviction.
		l := newPlace(t)
		l.pod("db-0", owned("StatefulSet", "apps/v1"))
		var namesake *corev1.Pod
		d := l.drainer()
		d.Evictor = before{d.Evictor, func(*policyv1.Eviction) { namesake = again(l, "db-0") }}
		r := l.pass(d, evicting(), false)
		assert.Equal(t, r.Terminating, 1, "%+v", r)
		assert.Equal(t, l.stands("db-0"), string(namesake.UID))
		assert.Equal(t, l.pass(l.drainer(), evicting(), false).Remaining(), 0)
	})
}

// An eviction that a webhook denies is tried again by the next pass, whatever status the webhook gives: some deny only
// until there is room elsewhere.
func TestWebhookDenies(t *testing.T) {
	for name, status := range map[string]*metav1.Status{
		"kured_1269":     {Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "the broker is being moved"},
		"without status": {Message: "the broker is being moved"},
		"server error":   {Code: http.StatusInternalServerError, Message: "the broker is being moved"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newPlace(t)
			l.pod("kafka-0", owned("StatefulSet", "apps/v1"))
			var allow atomic.Bool
			l.webhook(t, func(r *admissionv1.AdmissionResponse) {
				if r.Allowed = allow.Load(); !r.Allowed {
					r.Result = status
				}
			})
			d := l.drainer()
			for range 2 {
				r := l.pass(d, evicting(), false)
				assert.Equal(t, r.Blocked, 1)
				assert.Equal(t, r.Unevictable, "")
				assert.Assert(t, strings.Contains(r.BlockedBy, "the broker is being moved"), r.BlockedBy)
			}
			allow.Store(true)
			assert.Equal(t, l.pass(d, evicting(), false).Evicted, 1)
			assert.Equal(t, l.pass(d, evicting(), false).Remaining(), 0)
		})
	}
}

// webhook registers a webhook for evictions in the namespace until the test ends, and returns once it is called.
func (l *place) webhook(t *testing.T, decide func(*admissionv1.AdmissionResponse)) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if json.NewDecoder(r.Body).Decode(&review) != nil || review.Request == nil {
			http.Error(w, "no review", http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID}
		if decide(review.Response); review.Request.Name == "probe" {
			review.Response.Allowed, review.Response.Result = false, nil
		}
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(server.Close)
	hooks := l.client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	_, err := hooks.Create(t.Context(), &registrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: l.namespace},
		Webhooks: []registrationv1.ValidatingWebhook{{
			Name: "evictions.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: new(registrationv1.SideEffectClassNone),
			ClientConfig: registrationv1.WebhookClientConfig{URL: &server.URL,
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: l.namespace}},
			Rules: []registrationv1.RuleWithOperations{{
				Operations: []registrationv1.OperationType{registrationv1.Create},
				Rule:       registrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/eviction"}},
			}},
		}},
	}, metav1.CreateOptions{})
	assert.NilError(t, err)
	t.Cleanup(func() { assert.Check(t, hooks.Delete(context.Background(), l.namespace, metav1.DeleteOptions{})) })
	l.pod("probe", on("b-"+l.namespace))
	l.until("the webhook is asked", func() bool {
		err := drain.NewEvictor(l.client).Evict(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: "probe"},
			DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}})
		return err != nil
	})
}

func (l *place) until(what string, ok func() bool) {
	l.t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); {
		assert.Assert(l.t, time.Now().Before(end), "never: %s", what)
		<-time.After(50 * time.Millisecond)
	}
}

// A refusal that stays ends the drain, with the pod and the reason; one that passes by itself doesn't.
func TestRefusals(t *testing.T) {
	t.Run("evictions are forbidden", func(t *testing.T) {
		l := newPlace(t)
		l.pod("web")
		config := rest.CopyConfig(l.config)
		config.Impersonate.UserName = "nobody"
		powerless, err := kubernetes.NewForConfig(config)
		assert.NilError(t, err)
		d := l.drainer()
		d.Evictor = drain.NewEvictor(powerless)
		r := l.pass(d, evicting(), false)
		assert.Equal(t, r.Remaining(), 1)
		assert.Assert(t, strings.HasPrefix(r.Unevictable, l.qualified("web")+" can not be evicted: ") && strings.Contains(r.Unevictable, `User "nobody" cannot create`), r.Unevictable)
	})
	t.Run("several budgets", func(t *testing.T) {
		l := newPlace(t)
		l.pod("web")
		plenty := policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 1, ExpectedPods: 2, CurrentHealthy: 2, DesiredHealthy: 1}
		l.budget("one", "web", plenty)
		l.budget("two", "web", plenty)
		r := l.pass(l.drainer(), evicting(), false)
		assert.Assert(t, strings.Contains(r.Unevictable, "more than one PodDisruptionBudget"), "%+v", r)
	})
	t.Run("a budget that is full", func(t *testing.T) {
		l := newPlace(t)
		l.pod("web")
		full := policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 1, ExpectedPods: 3000, CurrentHealthy: 3000, DesiredHealthy: 1, DisruptedPods: map[string]metav1.Time{}}
		for i := range 2001 {
			full.DisruptedPods[fmt.Sprint("p", i)] = metav1.Now()
		}
		l.budget("full", "web", full)
		r := l.pass(l.drainer(), evicting(), false)
		assert.Assert(t, r.Blocked == 1 && r.Unevictable == "" && strings.Contains(r.BlockedBy, "too many evictions"), "%+v", r)
	})
	t.Run("the namespace ends", func(t *testing.T) {
		l := newPlace(t)
		l.pod("web")
		assert.NilError(t, l.client.CoreV1().Namespaces().Delete(t.Context(), l.namespace, metav1.DeleteOptions{}))
		r := l.pass(l.drainer(), evicting(), false)
		assert.Assert(t, r.Terminating == 1 && r.Remaining() == 1 && r.Unevictable == "", "%+v", r)
	})
	t.Run("leadership is in doubt", func(t *testing.T) {
		l := newPlace(t)
		pod := l.pod("web")
		d := l.drainer()
		d.MayEvict = func() bool { return false }
		_, err := d.Pass(t.Context(), l.node, evicting(), false, math.MaxInt)
		assert.ErrorContains(t, err, "leadership is in doubt")
		assert.Equal(t, l.stands("web"), string(pod.UID))
	})
}

// Pods of the class system-cluster-critical go when no other pod is left, those of system-node-critical last of all.
func TestCriticalLast(t *testing.T) {
	l := newPlace(t)
	for _, class := range []string{"system-cluster-critical", "system-node-critical"} {
		l.until("class "+class, func() bool {
			_, err := l.client.SchedulingV1().PriorityClasses().Get(t.Context(), class, metav1.GetOptions{})
			return err == nil
		})
		l.pod(class, func(p *corev1.Pod) { p.Spec.PriorityClassName = class })
	}
	l.pod("web", grace(30))
	d := l.drainer()
	r := l.pass(d, evicting(), false)
	assert.Assert(t, r.Evicted == 1 && r.Waiting == 2, "%+v", r)
	r = l.pass(d, evicting(), false)
	assert.Assert(t, r.Terminating == 1 && r.Waiting == 2, "not while another is on its way: %+v", r)
	assert.NilError(t, l.client.CoreV1().Pods(l.namespace).Delete(t.Context(), "web", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}))
	r = l.pass(d, evicting(), false)
	assert.Assert(t, r.Evicted == 1 && r.Waiting == 1, "%+v", r)
	assert.Equal(t, l.stands("system-cluster-critical"), "")
	assert.Assert(t, l.stands("system-node-critical") != "")
	assert.Equal(t, l.pass(d, evicting(), false).Evicted, 1)
	assert.Equal(t, l.pass(d, evicting(), false).Remaining(), 0)
}

// Several evictions are requested at once, each pod's once, and never more than Parallel.
func TestParallel(t *testing.T) {
	l := newPlace(t)
	const pods = 20
	for i := range pods {
		l.pod(fmt.Sprint("web-", i))
	}
	d := l.drainer()
	var mu sync.Mutex
	now, most, names := 0, 0, []string{}
	full := make(chan struct{})
	d.Evictor = before{d.Evictor, func(e *policyv1.Eviction) {
		mu.Lock()
		now++
		most = max(most, now)
		names = append(names, e.Name)
		if now == d.Parallel {
			close(full)
			now = -pods
		}
		mu.Unlock()
		select {
		case <-full:
		case <-time.After(30 * time.Second):
		}
	}}
	r := l.pass(d, evicting(), false)
	assert.Equal(t, r.Evicted, pods)
	assert.Equal(t, most, d.Parallel)
	slices.Sort(names)
	assert.Equal(t, len(slices.Compact(names)), pods)
	assert.Equal(t, l.pass(d, evicting(), false).Remaining(), 0)
}

// A pod whose eviction was accepted and that never ends is not gone, and the message says how long it has been
// shutting down (kured_847 is about such nodes being taken for drained).
func TestStuckTerminating(t *testing.T) {
	l := newPlace(t)
	l.pod("web", grace(30))
	d := l.drainer()
	l.pass(d, evicting(), false)
	began := time.Now()
	d.Now = func() time.Time { return began.Add(5 * time.Minute) }
	r := l.pass(d, evicting(), false)
	assert.Equal(t, r.Remaining(), 1)
	assert.Assert(t, strings.HasPrefix(r.Goes, l.qualified("web")+" has been shutting down for 5m"), r.Goes)
}

// A rule of the policy for some pods holds for them alone.
func TestPolicyOfPods(t *testing.T) {
	chooses := func(app string) []policy.PodSelector {
		return []policy.PodSelector{{Selector: policy.Selector{{Key: "app", Operator: policy.In, Values: []string{app}}}}}
	}
	l := newPlace(t)
	kept := map[string]string{
		"stays": string(l.pod("stays").UID), "job": string(l.pod("job", owned("Job", "batch/v1")).UID),
		"data": string(l.pod("data", keepsData, owned("ReplicaSet", "apps/v1")).UID), "bare": string(l.pod("bare").UID),
	}
	l.pod("web", owned("ReplicaSet", "apps/v1"))
	e := evicting()
	e.Leave, e.WaitFor, e.EmptyDirData, e.UnmanagedPods = chooses("stays"), chooses("job"), policy.Block, policy.Block
	r := l.pass(l.drainer(), e, false)
	assert.Assert(t, r.Evicted == 1 && r.Waiting == 1 && r.Blocked == 2, "%+v", r)
	assert.Assert(t, strings.HasPrefix(r.Awaited, l.qualified("job")+" runs"), r.Awaited)
	assert.Assert(t, strings.HasPrefix(r.BlockedBy, l.qualified("bare")+" has no controller"), r.BlockedBy)
	for name, uid := range kept {
		assert.Equal(t, l.stands(name), uid, name)
	}
	e.WaitFor[0].Namespace = "another"
	assert.Equal(t, l.pass(l.drainer(), e, false).Evicted, 1, "the job of this namespace is not waited for")

	e = evicting()
	e.Leave = chooses("stays")
	r = l.pass(l.drainer(), e, false)
	assert.Equal(t, r.Evicted, 2, "%+v", r)
	assert.Equal(t, l.pass(l.drainer(), e, false).Remaining(), 0)
}

// The grace period is the policy's, and the pod's own if the policy has none.
func TestGracePeriod(t *testing.T) {
	for given, want := range map[time.Duration]int64{0: 30, 5 * time.Second: 5} {
		t.Run(given.String(), func(t *testing.T) {
			l := newPlace(t)
			l.pod("web", grace(30))
			e := evicting()
			e.GracePeriod = given
			assert.Equal(t, l.pass(l.drainer(), e, false).Evicted, 1)
			p, err := l.client.CoreV1().Pods(l.namespace).Get(t.Context(), "web", metav1.GetOptions{})
			assert.NilError(t, err)
			assert.Equal(t, *p.DeletionGracePeriodSeconds, want)
		})
	}
}

// Without components/grace-period/grace-period.yaml the operator's own admission policy refuses drain.gracePeriod: the pod is
// unevictable, and the message has the remedy.
func TestGracePeriodWithoutTheRight(t *testing.T) {
	l := newPlace(t)
	l.pod("web", grace(30))
	o, err := manifest.Load()
	assert.NilError(t, err)
	at := slices.IndexFunc(o.Policies, func(p *registrationv1.ValidatingAdmissionPolicy) bool {
		return p.Name == "update-operator-controller-evictions"
	})
	assert.Assert(t, at >= 0)
	admission := l.client.AdmissionregistrationV1()
	_, err = admission.ValidatingAdmissionPolicies().Create(t.Context(), o.Policies[at], metav1.CreateOptions{})
	assert.NilError(t, err)
	_, err = admission.ValidatingAdmissionPolicyBindings().Create(t.Context(), o.PolicyBindings[at], metav1.CreateOptions{})
	assert.NilError(t, err)
	t.Cleanup(func() {
		assert.Check(t, admission.ValidatingAdmissionPolicyBindings().Delete(context.Background(), o.PolicyBindings[at].Name, metav1.DeleteOptions{}))
		assert.Check(t, admission.ValidatingAdmissionPolicies().Delete(context.Background(), o.Policies[at].Name, metav1.DeleteOptions{}))
	})
	user := "system:serviceaccount:" + l.namespace + ":update-operator-controller"
	right := metav1.ObjectMeta{Name: "evicts", Namespace: l.namespace}
	_, err = l.client.RbacV1().Roles(l.namespace).Create(t.Context(), &rbacv1.Role{ObjectMeta: right,
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods/eviction"}, Verbs: []string{"create"}}}}, metav1.CreateOptions{})
	assert.NilError(t, err)
	_, err = l.client.RbacV1().RoleBindings(l.namespace).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: right,
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: user}}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: right.Name}}, metav1.CreateOptions{})
	assert.NilError(t, err)
	config := rest.CopyConfig(l.config)
	config.Impersonate.UserName = user
	held, err := kubernetes.NewForConfig(config)
	assert.NilError(t, err)
	d := l.drainer()
	d.Evictor = drain.NewEvictor(held)
	l.until("the policy is in force", func() bool {
		err := d.Evictor.Evict(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: "web"},
			DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}})
		return err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy")
	})
	e := evicting()
	e.GracePeriod = 5 * time.Second
	r := l.pass(d, e, false)
	assert.Assert(t, r.Blocked == 1 && strings.HasPrefix(r.Unevictable, l.qualified("web")+" can not be evicted: ") &&
		strings.Contains(r.Unevictable, "For drain.gracePeriod apply components/grace-period/grace-period.yaml."), "%+v", r)
	e.GracePeriod = 0
	assert.Equal(t, l.pass(d, e, false).Evicted, 1)
}

// Force soon deletes pods that a budget, a webhook or the policy keeps, and those that are slow to shut down; but only
// the very pods that were listed, and none that stays anyway.
func TestForce(t *testing.T) {
	l := newPlace(t)
	l.pod("web")
	l.budget("web", "web", policyv1.PodDisruptionBudgetStatus{ExpectedPods: 1, CurrentHealthy: 1, DesiredHealthy: 1})
	l.pod("bare")
	l.pod("slow", grace(3600))
	own := l.pod("own", labelled("own=yes"))
	e := evicting()
	e.UnmanagedPods = policy.Block
	d := l.drainer()
	assert.Equal(t, l.pass(d, e, false).Blocked, 3, "not before it is asked for")
	assert.Equal(t, l.pass(d, e, true).Evicted, 3)
	p, err := l.client.CoreV1().Pods(l.namespace).Get(t.Context(), "slow", metav1.GetOptions{})
	assert.NilError(t, err)
	assert.Equal(t, *p.DeletionGracePeriodSeconds, int64(30))
	p, err = l.client.CoreV1().Pods(l.namespace).Get(t.Context(), "web", metav1.GetOptions{})
	assert.NilError(t, err, "what asks for no time is not gone before its kubelet says so")
	assert.Equal(t, *p.DeletionGracePeriodSeconds, int64(1))
	r := l.pass(d, e, true)
	assert.Assert(t, r.Terminating == 3 && r.Remaining() == 3, "%+v", r)
	assert.Equal(t, l.stands("own"), string(own.UID))

	l.pod("leaving", grace(3600))
	assert.NilError(t, l.client.CoreV1().Pods(l.namespace).Delete(t.Context(), "leaving", metav1.DeleteOptions{}))
	assert.Equal(t, l.pass(d, e, true).Evicted, 1, "what takes an hour to shut down is hurried")
	p, err = l.client.CoreV1().Pods(l.namespace).Get(t.Context(), "leaving", metav1.GetOptions{})
	assert.NilError(t, err)
	assert.Equal(t, *p.DeletionGracePeriodSeconds, int64(30))
}

// Force without the right to delete ends with that reason.
func TestForceWithoutTheRight(t *testing.T) {
	l := newPlace(t)
	pod := l.pod("web")
	d := l.drainer()
	d.Client = forbidden{l.client}
	r := l.pass(d, evicting(), true)
	assert.Assert(t, strings.Contains(r.Unevictable, "forbidden"), "%+v", r)
	assert.Equal(t, l.stands("web"), string(pod.UID))
}
