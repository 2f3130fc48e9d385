package manifest

import (
	"encoding/json"
	"strings"
	"testing"

	"gotest.tools/v3/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

const aLock = `{"want":"1.50.0","before":"latest"}`

// lockPatch is the patch that writes the record of a lock and its label; "" leaves one of the two out, and "-" removes
// it.
func lockPatch(record, label string) string {
	metadata := map[string]any{}
	set := func(part, key, value string) {
		switch value {
		case "":
		case "-":
			metadata[part] = map[string]any{key: nil}
		default:
			metadata[part] = map[string]any{key: value}
		}
	}
	set("annotations", string(marker.KeyLock), record)
	set("labels", string(marker.KeyLocked), label)
	body, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		panic(err)
	}
	return string(body)
}

// locking are attacks with the label that brings an agent to a node.
func locking() []attack {
	on := func(node, name, body string) attack {
		return onNode(Controller, name, node, types.MergePatchType, body, "Label bottlerocket.aws/locked")
	}
	return []attack{
		on(newcomer, "the label of a lock without its record", lockPatch("", "true")),
		on(newcomer, "another value of that label", lockPatch(aLock, "yes")),
		on(stranger, "that label on a node of another system", lockPatch(aLock, "true")),
		on(lockedNode, "that label removed, and the record left", lockPatch("", "-")),
		onNode(Controller, "a record without end", newcomer, types.MergePatchType, lockPatch(strings.Repeat("v", 4097), "true"), "annotation bottlerocket.aws/lock is too long"),
	}
}

// lockHoles are what holds these attacks.
func lockHoles() [][3]string {
	const label, record = "'bottlerocket.aws/locked'", "'bottlerocket.aws/lock'"
	return [][3]string{
		{" && !(" + record + " in variables.has) ||", " ||", "that label removed, and the record left"},
		{"variables.hasLabels[?" + label + "] == optional.of('true') && " + record + " in variables.has", record + " in variables.has", "another value of that label"},
		{"optional.of('true') && " + record + " in variables.has &&", "optional.of('true') &&", "the label of a lock without its record"},
		{record + " in variables.has && variables.ofHost", record + " in variables.has", "that label on a node of another system"},
	}
}

// The controller may lock a Bottlerocket node, change what it wants, and end that: record and label in one patch.
func TestWallLetsLock(t *testing.T) {
	w := newWall(t, Namespace)
	for _, body := range []string{lockPatch(aLock, "true"), lockPatch(`{"want":"latest","before":"latest","giveBack":true}`, "true"), lockPatch("-", "-")} {
		_, err := w.users[Controller].CoreV1().Nodes().Patch(t.Context(), newcomer, types.MergePatchType, []byte(body), metav1.PatchOptions{})
		assert.NilError(t, err, body)
	}
}
