package rule

import (
	"maps"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// S5, S6: what a wish to lock the host changes of the rule, and what it doesn't.
func TestJudgeLock(t *testing.T) {
	const (
		wanted = `{"want":"1.27.0","before":"latest"}`
		back   = `{"want":"latest","before":"latest","asked":["1.27.0"],"giveBack":true}`
	)
	stabilize, prepare, reboot := marker.ActionStabilize, marker.ActionPrepareUpdate, marker.ActionRebootUpdate
	on := func(keys ...string) map[string]string {
		out := map[string]string{}
		for i := 0; i < len(keys); i += 2 {
			out[marker.Prefix+keys[i]] = keys[i+1]
		}
		return out
	}
	for _, tc := range []struct {
		name   string
		action marker.Action
		node   map[string]string
		late   time.Duration
		want   Reason
	}{
		{name: "a lock", action: stabilize, node: on("lock", wanted)},
		{name: "a lock given back", action: stabilize, node: on("lock", back)},
		{name: "no lock", action: stabilize},
		{name: "a lock, paused", action: stabilize, node: on("lock", wanted, "paused", ""), want: ReasonPaused},
		{name: "no lock, paused", action: stabilize, node: on("paused", ""), want: ReasonPaused},
		{name: "a lock given back, paused", action: stabilize, node: on("lock", back, "paused", "why")},
		{name: "a lock given back, paused, too late", action: stabilize, node: on("lock", back, "paused", ""), late: 10 * time.Minute, want: ReasonUntil},
		{name: "a lock given back, paused, after an error", action: stabilize, want: ReasonAfterError,
			node: on("lock", back, "paused", "", "active-id", "i-1", "action-state", "error", "message", "m")},
		{name: "a lock given back, paused, after ready", action: stabilize, want: ReasonAfterAnswer,
			node: on("lock", back, "paused", "", "active-id", "i-1", "action-state", "ready")},
		{name: "a lock that can't be read", action: stabilize, node: on("lock", "{"), want: ReasonIntent},
		{name: "a lock that can't be read, paused", action: stabilize, node: on("lock", `{"want":"x","before":"latest","giveBack":true}`, "paused", ""), want: ReasonIntent},
		{name: "a lock whose give-back can't be read, paused", action: stabilize, node: on("lock", `{"want":"latest","before":"latest","giveBack":"true"}`, "paused", ""), want: ReasonIntent},
		{name: "a lock too long to be read, paused", action: stabilize, node: on("lock", `{"giveBack":true,"want":"latest","before":"latest","x":"`+string(make([]byte, 1<<20))+`"}`, "paused", ""), want: ReasonIntent},
		{name: "to prepare beside a lock that is given back, paused", action: prepare, node: on("lock", back, "paused", ""), want: ReasonPaused},
		{name: "to reboot beside a lock that is given back, paused", action: reboot, node: on("lock", back, "paused", ""), want: ReasonPaused},
		{name: "to prepare beside a lock that can't be read", action: prepare, node: on("lock", "{")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := Live{Name: "n", UID: "u", ResourceVersion: "10", Unschedulable: true, Annotations: map[string]string{}}
			for k, v := range marker.Encode(marker.Marks{Intent: marker.Intent{ID: "i-1", Action: tc.action, Time: noon,
				Until: noon.Add(5 * time.Minute), Target: "1.27.0", RebootFrom: oldBoot}}) {
				l.Annotations[string(k)] = v
			}
			maps.Copy(l.Annotations, tc.node)
			w := write(l, marker.Report{State: marker.StateBusy, BootID: oldBoot})
			w.Now = noon.Add(tc.late)
			refusal := Judge(w)
			got := Reason("")
			if refusal != nil {
				got = refusal.Reason
			}
			assert.Equal(t, got, tc.want, "%v", refusal)
			if tc.late == 0 {
				// What a lock is about doesn't change what else may be answered.
				w = write(l, marker.Report{State: marker.StateError, Message: "m", BootID: oldBoot})
				assert.Assert(t, Judge(w) == nil)
			}
		})
	}
}
