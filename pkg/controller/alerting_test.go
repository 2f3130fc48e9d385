package controller_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/controller"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// While Prometheus shows an alert nothing starts, staging included, and it is asked once a minute at most; with the
// policy's word that the alert doesn't count, everything goes on at once.
func TestAlertKeepsNodesFromStarting(t *testing.T) {
	var asked atomic.Int64
	prometheus := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1); r.URL.Path != "/api/v1/alerts" {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write([]byte(`{"status":"success","data":{"alerts":[{"labels":{"alertname":"EtcdDown"},"state":"firing"},{"labels":{"alertname":"Watchdog"},"state":"firing"}]}}`))
	}))
	defer prometheus.Close()
	f := newFleet(t, "a")
	a := f.machines["a"]
	f.takesPods()
	c, _ := f.control(func(o *controller.Options) {
		o.Policy.Alerts = policy.Alerts{URL: prometheus.URL, Ignore: []*regexp.Regexp{regexp.MustCompile("^Watchdog$")}}
	})
	f.until("a is managed", a.updatedTo(v1))
	assert.Equal(t, asked.Load(), int64(0), "asked although nothing would start")
	f.release(v2)
	f.until("a says which alert stands", func() bool {
		out, err := c.Plan(t.Context())
		if err != nil {
			return false
		}
		for _, n := range out.Nodes {
			if n.Node == "a" && n.Reason == plan.ReasonAlertsFiring {
				return strings.HasSuffix(n.Message.String(), "alerts are firing: EtcdDown")
			}
		}
		return false
	})
	passBy(t, 3*time.Second)
	assert.Equal(t, asked.Load(), int64(1))
	assert.Equal(t, a.rebooted(), 0)

	_, err := f.client.CoreV1().ConfigMaps(f.namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: kube.PolicyConfigMap},
		Data: map[string]string{kube.PolicyKey: "version: 1\nalerts: {ignore: [Etcd, Watchdog]}\n"}}, metav1.CreateOptions{})
	assert.NilError(t, err)
	f.until("a is updated", a.updatedTo(v2))
}

// A Prometheus that can't be asked is no permission, and an Event says so (S8).
func TestAlertsUnknown(t *testing.T) {
	prometheus := httptest.NewServer(nil)
	prometheus.Close()
	f := newFleet(t, "a")
	a := f.machines["a"]
	f.takesPods()
	f.control(func(o *controller.Options) { o.Policy.Alerts.URL = prometheus.URL })
	f.until("a is managed", a.updatedTo(v1))
	f.release(v2)
	f.until("an Event is written", func() bool {
		events, err := f.client.CoreV1().Events(f.namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=AlertsUnknown"})
		return err == nil && len(events.Items) == 1
	})
	passBy(t, time.Second)
	assert.Equal(t, a.marks().Intent.Target, "", "something was staged")
}

// takesPods adds a node that takes the pods of the others, and isn't labelled.
func (f *testFleet) takesPods() {
	f.t.Helper()
	n, err := f.client.CoreV1().Nodes().Create(context.Background(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "taker"}}, metav1.CreateOptions{})
	assert.NilError(f.t, err)
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	_, err = f.client.CoreV1().Nodes().UpdateStatus(context.Background(), n, metav1.UpdateOptions{})
	assert.NilError(f.t, err)
}
