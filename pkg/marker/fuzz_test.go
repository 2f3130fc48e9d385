package marker

import (
	"reflect"
	"testing"

	"gotest.tools/v3/assert"
)

// FuzzDecode: whatever stands on a node, Decode doesn't panic, and what it could read is written and
// read again as the same.
func FuzzDecode(f *testing.F) {
	f.Add("prepare-update", "17-abc", "2026-09-20T10:00:00Z", "1.27.0", "boot-1", inHands()["bottlerocket.aws/disruption"],
		inHands()["bottlerocket.aws/failure"], inHands()["bottlerocket.aws/history"], "Draining: x", "ready", "message", "1")
	f.Add("stabilize", "1", "9999-12-31T23:59:59-01:00", "1.2.3 ", "", `{"since":"9999-12-31T23:59:59-01:00","Since":1,"x":"<"}`,
		`{"versions":null}`, `[null]`, ": ", "busy", "a\nb", "+1")
	f.Fuzz(func(t *testing.T, action, id, at, version, boot, disruption, failure, history, waiting, state, message, protocol string) {
		a := map[string]string{}
		for k, v := range map[Key]string{
			KeyActionWanted: action, KeyIntentID: id, KeyIntentTime: at, KeyIntentUntil: at, KeyTargetVersion: version,
			KeyRebootFrom: boot, KeyDisruption: disruption, KeyFailure: failure, KeyHistory: history, KeyWaitingFor: waiting,
			KeyActiveID: id, KeyActionState: state, KeyMessage: message, KeyProtocol: protocol, KeyBootID: boot,
			KeyCurrentVersion: version, KeyAvailableVersion: version, KeyPaused: message,
		} {
			if v != "" {
				a[string(k)] = v
			}
		}
		m, problems := Decode(a)
		if r, problems := DecodeReport(a); len(problems) == 0 {
			r.Message = Clip(r.Message, MaxMessage)
			again, problems := DecodeReport(asRead(EncodeReport(r)))
			assert.Equal(t, len(problems), 0, "%v", problems)
			assert.Equal(t, again, r)
		}
		if len(problems) > 0 {
			return
		}
		written := Encode(m)
		again, problems := Decode(asRead(written))
		assert.Equal(t, len(problems), 0, "%v from %v", problems, written)
		assert.DeepEqual(t, Encode(again), written)
		thrice, _ := Decode(asRead(Encode(again)))
		assert.Assert(t, reflect.DeepEqual(thrice, again))
	})
}
