package kube_test

import (
	"fmt"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	"gotest.tools/v3/poll"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostile"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
)

// TestAttackEvents: the message of an Event is one printable line, of a length that every API of Events takes.
func TestAttackEvents(t *testing.T) {
	for name, word := range hostile.Words() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := fake.NewClientset()
			e := kube.NewEvents(t.Context(), client, "bottlerocket", "host")
			defer e.Stop()
			e.Event("a", "uid", true, "Reason", word)
			e.Once("id", "a", "uid", false, "Reason", "b "+word)
			e.Notice(true, "Reason", "c "+word)
			var told []string
			poll.WaitOn(t, func(poll.LogT) poll.Result {
				list, err := client.CoreV1().Events("").List(t.Context(), metav1.ListOptions{})
				if err != nil || len(list.Items) < 3 {
					return poll.Continue("%d Events, %v", len(list.Items), err)
				}
				for _, event := range list.Items {
					told = append(told, event.Message)
				}
				return poll.Success()
			}, poll.WithTimeout(time.Minute))
			for _, message := range told {
				assert.NilError(t, hostile.Obeyed(message))
				assert.Assert(t, len(message) <= 1024)
			}
		})
	}
}

// TestAttackView: nothing that is decided on or shown of a Node is what a terminal obeys; only the values of others'
// annotations, which are put back as they were, and what the API server bounds.
func TestAttackView(t *testing.T) {
	for name, word := range hostile.Words() {
		for _, readable := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, readable %v", name, readable), func(t *testing.T) {
				v := kube.View(hostile.Node("a", word, readable))
				assert.Equal(t, v.BootID, "")
				assert.Equal(t, v.OSVersion, "")
				assert.Equal(t, v.Ready, false)
				if name != "no UTF-8" {
					assert.Equal(t, len(v.Problems) > 0, !readable, "%v", v.Problems)
				}
				m := v.Marks
				shown := []string{m.PausedReason, m.Report.Message, m.Report.OperatorVersion, m.Report.Available, m.Report.Current, m.Report.BootID,
					string(m.Intent.Action), m.Intent.ID, m.Intent.Target, m.HookID}
				if m.Waiting != nil {
					shown = append(shown, m.Waiting.Reason, m.Waiting.Message)
				}
				if m.Failure != nil {
					shown = append(append(append(shown, m.Failure.Reason, m.Failure.Message), m.Failure.Versions...), m.Failure.Broken...)
				}
				for _, a := range m.History {
					shown = append(shown, a.Version, string(a.Outcome), a.Reason)
				}
				for _, p := range v.Problems {
					shown = append(shown, p.String())
				}
				for _, s := range shown {
					assert.NilError(t, hostile.Obeyed(s))
					assert.Assert(t, len(s) < 400, "%q", s)
				}
			})
		}
	}
}
