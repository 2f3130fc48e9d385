package nodesim

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// A watch that was cut off while one cordon followed another must not make two at once of them.
func TestObserverTakesAListAsOne(t *testing.T) {
	node := func(name string, cordoned bool) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{Unschedulable: cordoned}}
	}
	lists := [][]corev1.Node{
		{node("a", false), node("b", true)},
		{node("a", true), node("b", false)},
	}
	var listed atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") != "" {
			if int(listed.Load()) >= len(lists) {
				<-r.Context().Done()
			}
			return
		}
		n := min(int(listed.Add(1)), len(lists))
		assert.Check(t, json.NewEncoder(w).Encode(corev1.NodeList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"},
			ListMeta: metav1.ListMeta{ResourceVersion: "7"},
			Items:    lists[n-1],
		}))
	}))
	defer server.Close()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	assert.NilError(t, err)
	o := Observe(t.Context(), client)
	defer o.Close()
	r := rig{T: t}
	r.await("both lists", func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return o.nodes["a"]
	})
	assert.Equal(t, o.MaxUnschedulable(), 1)
}
