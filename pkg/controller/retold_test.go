package controller_test

import (
	"testing"
	"time"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/controller"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// A leader that dies between a step and its Event leaves the telling to the next one (issue 14, 11), which repeats
// nothing that is told already.
func TestALeaderDiesBeforeItTells(t *testing.T) {
	f := newFleet(t, "a", "b")
	a := f.machines["a"]
	letGo := f.hold("a")
	drains := func(o *controller.Options) { o.Policy.Eviction.Predict, o.Policy.Drain = false, time.Hour }
	_, stop := f.control(drains)
	f.until("a is managed", a.updatedTo(v1))
	f.release(v2)
	f.until("a drains", a.drains)
	events := f.client.CoreV1().Events("default")
	told := func() []corev1.Event {
		list, err := events.List(t.Context(), metav1.ListOptions{FieldSelector: "reason=" + string(plan.ReasonCordoned) + ",involvedObject.name=a"})
		assert.NilError(t, err)
		return list.Items
	}
	f.until("the cordon is told", func() bool { return len(told()) == 1 })
	first := told()[0]
	stop()
	assert.NilError(t, events.Delete(t.Context(), first.Name, metav1.DeleteOptions{}))
	_, stop = f.control(drains)
	f.until("the next leader tells", func() bool { return len(told()) == 1 })
	assert.Equal(t, told()[0].Message, first.Message)
	stop()
	f.control(drains)
	letGo()
	f.until("a is updated", a.updatedTo(v2))
	assert.Equal(t, len(told()), 1, "%v", told())
	assert.Equal(t, told()[0].Count, int32(1))
}
