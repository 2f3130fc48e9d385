package manifest

import (
	"testing"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// freshNode is a new node, with the taint for that between two others. One of these has its key, and one its effect.
const freshNode = "fresh"

func freshTaints() []corev1.Taint {
	return []corev1.Taint{
		{Key: marker.TaintFresh, Value: "x", Effect: corev1.TaintEffectNoExecute},
		{Key: marker.TaintFresh, Effect: corev1.TaintEffectNoSchedule},
		{Key: "example.com/startup", Value: "x", Effect: corev1.TaintEffectNoSchedule},
	}
}

const (
	keepExecute = `{"key":"bottlerocket.aws/fresh","value":"x","effect":"NoExecute"}`
	keepFresh   = `{"key":"bottlerocket.aws/fresh","effect":"NoSchedule"}`
	keepStartup = `{"key":"example.com/startup","value":"x","effect":"NoSchedule"}` + notReady
	// notReady is what an API server adds to each new node.
	notReady = `,{"key":"node.kubernetes.io/not-ready","effect":"NoSchedule"}`
)

// untainting are attacks with the taints of a new node.
func untainting() []attack {
	on := func(node, name, taints string) attack {
		return onNode(Controller, name, node, types.MergePatchType, `{"spec":{"taints":`+taints+`}}`, "spec.taints")
	}
	return []attack{
		on(freshNode, "all taints taken off", "null"),
		on(freshNode, "the taint of new nodes with another effect taken off", "["+keepFresh+","+keepStartup+"]"),
		on(freshNode, "another's startup taint taken off with it", "["+keepExecute+"]"),
		on(freshNode, "a taint changed as it goes", `[`+keepExecute+`,{"key":"example.com/startup","value":"y","effect":"NoSchedule"}`+notReady+`]`),
		on(freshNode, "a taint added as it goes", `[`+keepExecute+`,`+keepStartup+`,{"key":"a","effect":"NoExecute"}]`),
		on(freshNode, "both taints of that key taken off", "["+keepStartup+"]"),
		on(newcomer, "the taint of new nodes put on", "["+keepFresh+notReady+"]"),
	}
}

// freshHoles are what holds these attacks.
func freshHoles() [][3]string {
	const all = ".filter(t, !(t.key == 'bottlerocket.aws/fresh' && t.effect == 'NoSchedule'))"
	return [][3]string{
		{"object.spec.?taints.orValue([]) == oldObject.spec.?taints.orValue([])" + all, "true", "all taints taken off"},
		{" && t.effect == 'NoSchedule'", "", "both taints of that key taken off"},
		{"t.key == 'bottlerocket.aws/fresh' && ", "", "another's startup taint taken off with it"},
	}
}

// The controller may take that taint off, and put nothing back.
func TestWallLetsUntaint(t *testing.T) {
	w := newWall(t, Namespace)
	n, err := w.users[Controller].CoreV1().Nodes().Patch(t.Context(), freshNode, types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"bottlerocket.aws/fresh":"{}"}},"spec":{"taints":[`+keepExecute+`,`+keepStartup+`]}}`), metav1.PatchOptions{})
	assert.NilError(t, err)
	assert.Equal(t, len(n.Spec.Taints), 3)
}
