package manifest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// The Nodes on which labels are attacked: one that the controller may label, and others that it may not, each for one
// reason.
const (
	newcomer = "newcomer"
	stranger = "stranger"
	oldTimer = "old-timer"
	returner = "returner"
	planned  = "planned"
	// lockedNode is of a locked host.
	lockedNode = "locked"
)

func (w *wall) fillNewcomers(t *testing.T) {
	t.Helper()
	for _, n := range []corev1.Node{
		{ObjectMeta: metav1.ObjectMeta{Name: newcomer}},
		{ObjectMeta: metav1.ObjectMeta{Name: stranger}, Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{OSImage: "Windows Server 2022 with Bottlerocket OS 1.50.0"}}},
		{ObjectMeta: metav1.ObjectMeta{Name: oldTimer, Labels: map[string]string{string(marker.KeyPlatformVersion): "0"}}},
		{ObjectMeta: metav1.ObjectMeta{Name: planned, Labels: map[string]string{string(marker.KeyInterfaceVersion): "plan"}}},
		{ObjectMeta: metav1.ObjectMeta{Name: lockedNode, Labels: map[string]string{string(marker.KeyLocked): "true"}, Annotations: map[string]string{string(marker.KeyLock): aLock}}},
		{ObjectMeta: metav1.ObjectMeta{Name: freshNode}, Spec: corev1.NodeSpec{Taints: freshTaints()}},
		{ObjectMeta: metav1.ObjectMeta{Name: returner, Annotations: map[string]string{autoLabelled: "then"}}},
	} {
		image := n.Status.NodeInfo.OSImage
		if image == "" {
			image = "Bottlerocket OS 1.50.0 (aws-k8s-1.36)"
		}
		_, err := w.admin.CoreV1().Nodes().Create(t.Context(), &n, metav1.CreateOptions{})
		assert.NilError(t, err)
		// A patch, as the controller manager writes to new Nodes too.
		status, err := json.Marshal(map[string]any{"status": map[string]any{"nodeInfo": map[string]any{"osImage": image}}})
		assert.NilError(t, err)
		_, err = w.admin.CoreV1().Nodes().Patch(t.Context(), n.Name, types.StrategicMergePatchType, status, metav1.PatchOptions{}, "status")
		assert.NilError(t, err)
	}
}

// labelPatch is the patch that labels a node and marks it as that; nil leaves one of the two out.
func labelPatch(label, mark any) string {
	metadata := map[string]any{}
	if label != nil {
		metadata["labels"] = map[string]any{string(marker.KeyInterfaceVersion): label}
	}
	if mark != nil {
		metadata["annotations"] = map[string]any{autoLabelled: mark}
	}
	body, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		panic(err)
	}
	return string(body)
}

// labelling are attacks with the one label that the controller's account may set.
func labelling() []attack {
	on := func(node, name, body, says string) attack {
		return onNode(Controller, name, node, types.MergePatchType, body, says)
	}
	const label, mark = "label ", "auto-labelled"
	return []attack{
		on(newcomer, "a node labelled without the mark", labelPatch("2.0.0", nil), label),
		on(newcomer, "a node labelled for plans", labelPatch("plan", "now"), label),
		on(newcomer, "a node labelled, and another label with it",
			fmt.Sprintf(`{"metadata":{"labels":{%q:"2.0.0","example.com/new":"v"},"annotations":{%q:"now"}}}`, marker.KeyInterfaceVersion, autoLabelled), label),
		on(newcomer, "the older label", fmt.Sprintf(`{"metadata":{"labels":{%q:"1.0.0"},"annotations":{%q:"now"}}}`, marker.KeyPlatformVersion, autoLabelled), label),
		on(newcomer, "a mark without end", labelPatch("2.0.0", strings.Repeat("v", 4097)), mark),
		on(stranger, "a node of another system labelled", labelPatch("2.0.0", "now"), label),
		on(oldTimer, "a node labelled beside the older label", labelPatch("2.0.0", "now"), label),
		on(planned, "a node of plans labelled", labelPatch("2.0.0", "now"), label),
		on(returner, "a node labelled again", labelPatch("2.0.0", nil), label),
		on(returner, "a node labelled and marked again", labelPatch("2.0.0", "now"), mark),
		on(returner, "the mark changed", labelPatch(nil, "now"), mark),
		on(returner, "the mark removed", setAnnotation(autoLabelled, nil), mark),
		on(wallNode, "the label changed, with the mark", labelPatch("plan", "now"), mark),
		on(wallNode, "a mark on a node in care", labelPatch(nil, "now"), mark),
		on(wallNode, "the label removed, with the mark", fmt.Sprintf(`{"metadata":{"labels":{%q:null},"annotations":{%q:"now"}}}`, marker.KeyInterfaceVersion, autoLabelled), mark),
	}
}

// labelHoles are what holds these attacks.
func labelHoles() [][3]string {
	const label, mark = "'bottlerocket.aws/updater-interface-version'", "'bottlerocket.aws/auto-labelled'"
	return [][3]string{
		{"variables.hasLabels[?" + label + "] == optional.of('2.0.0')", label + " in variables.hasLabels", "a node labelled for plans"},
		{" && !(" + label + " in variables.hadLabels)", "", "a node of plans labelled"},
		{" && !('bottlerocket.aws/platform-version' in variables.hadLabels)", "", "a node labelled beside the older label"},
		{" && " + mark + " in variables.has && ", " && ", "a node labelled without the mark"},
		{" && !(" + mark + " in variables.had) && variables", " && variables", "a node labelled again"},
		{".startsWith('Bottlerocket OS ')", ".contains('Bottlerocket OS ')", "a node of another system labelled"},
		{"k == " + label + " && variables.enrolls", "variables.enrolls", "a node labelled, and another label with it"},
		{" || !(" + mark + " in variables.had) && ", " || ", "the mark changed"},
		{"variables.enrolls || !(variables.own + variables.agents).exists(o, o in variables.has)", "true", "a mark on a node in care"},
		{"(variables.own + variables.marks + [" + mark + "])", "(variables.own + variables.marks)", "a mark without end"},
	}
}

// The controller may label a Bottlerocket node that was never labelled, and let go of a node with the mark that keeps it
// from being labelled; a user may do both again.
func TestWallLetsLabel(t *testing.T) {
	w := newWall(t, Namespace)
	patch := func(user, node, body string) {
		t.Helper()
		client := w.admin
		if user != "" {
			client = w.users[user]
		}
		_, err := client.CoreV1().Nodes().Patch(t.Context(), node, types.MergePatchType, []byte(body), metav1.PatchOptions{})
		assert.NilError(t, err, body)
	}
	patch(Controller, newcomer, labelPatch("2.0.0", "2026-11-23T10:00:00Z"))
	patch(Controller, newcomer, setAnnotation(string(marker.KeyIntentID), "i"))
	// Let go of, it keeps the mark, whatever wrote it.
	patch("", newcomer, fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, marker.KeyInterfaceVersion))
	patch(Controller, newcomer, setAnnotation(string(marker.KeyIntentID), nil))
	patch("", newcomer, labelPatch("2.0.0", "\n"))
	patch(Controller, newcomer, setAnnotation(string(marker.KeyIntentID), "i"))
	patch("", newcomer, setAnnotation(autoLabelled, nil))
	// One that a user labelled gets it then.
	patch(Controller, newcomer, fmt.Sprintf(`{"metadata":{"annotations":{%q:null,%q:"now"}}}`, marker.KeyIntentID, autoLabelled))
}
