package manifest

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube/access"
)

// TestAttackWallForged: a node's root that puts on its Node what was asked of it, by the audit log, can't have the
// operator say that there is no wall.
func TestAttackWallForged(t *testing.T) {
	w := newWall(t, Namespace)
	asked := &recorded{}
	config, err := w.cp.UserConfig("system:serviceaccount:"+Namespace+":update-operator-"+Proxy, "system:authenticated")
	assert.NilError(t, err)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		asked.next = next
		return asked
	})
	client, err := kubernetes.NewForConfig(config)
	assert.NilError(t, err)
	for node, value := range map[string]string{wallNode: "asked", crowdedNode: "any"} {
		walled, err := access.Restricted(t.Context(), client, node)
		assert.NilError(t, err)
		assert.Assert(t, walled)
		var question corev1.Node
		assert.NilError(t, json.Unmarshal(asked.body, &question))
		assert.Equal(t, len(question.Annotations), 1, "%s", asked.body)
		for key := range question.Annotations {
			_, err = w.admin.CoreV1().Nodes().Patch(t.Context(), node, types.MergePatchType, []byte(setAnnotation(key, value)), metav1.PatchOptions{})
			assert.NilError(t, err)
		}
		walled, err = access.Restricted(t.Context(), client, node)
		assert.NilError(t, err)
		assert.Check(t, walled, "%s is on node %q", asked.body, node)
	}
}

// recorded keeps the body of the last request.
type recorded struct {
	next http.RoundTripper
	body []byte
}

func (r *recorded) RoundTrip(request *http.Request) (*http.Response, error) {
	body, err := request.GetBody()
	if err != nil {
		return nil, err
	}
	if r.body, err = io.ReadAll(body); err != nil {
		return nil, err
	}
	return r.next.RoundTrip(request)
}
