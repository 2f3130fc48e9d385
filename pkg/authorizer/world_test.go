package authorizer

import (
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// What the tests of the rule start from.
var (
	noon  = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	agent = Identity{NodeName: "node-1", NodeUID: "uid-1", PodName: "agent-1", PodUID: "pod-uid-1"}
)

const (
	intentID = "intent-7"
	target   = "1.20.0"
	oldBoot  = "boot-old"
	newBoot  = "boot-new"
)

// intentOf returns the annotations of a node on which an intent stands, for an hour from noon.
func intentOf(action marker.Action) map[string]string {
	out := map[string]string{}
	for k, v := range marker.Encode(marker.Marks{Intent: marker.Intent{
		ID: intentID, Action: action, Time: noon, Until: noon.Add(time.Hour), Target: target, RebootFrom: oldBoot,
	}}) {
		out[string(k)] = v
	}
	return out
}

func liveNode(annotations map[string]string) Live {
	return Live{Name: agent.NodeName, UID: agent.NodeUID, ResourceVersion: "10", Annotations: annotations, Unschedulable: true}
}

func value(s string) *string { return &s }

// answer returns the patch that answers an intent.
func answer(id string, s marker.State, facts map[marker.Key]string) Patch {
	p := Patch{ResourceVersion: "10", Annotations: map[string]*string{
		string(marker.KeyActiveID): value(id), string(marker.KeyActionState): value(string(s)), string(marker.KeyMessage): nil,
	}}
	if s == marker.StateError {
		p.Annotations[string(marker.KeyMessage)] = value("it broke")
	}
	for k, v := range facts {
		p.Annotations[string(k)] = value(v)
	}
	return p
}

// with returns annotations with some set, or deleted where the value is empty.
func with(annotations map[string]string, pairs ...string) map[string]string {
	out := map[string]string{}
	for k, v := range annotations {
		out[k] = v
	}
	for i := 0; i < len(pairs); i += 2 {
		if out[pairs[i]] = pairs[i+1]; pairs[i+1] == "" {
			delete(out, pairs[i])
		}
	}
	return out
}
