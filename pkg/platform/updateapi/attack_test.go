package updateapi

import (
	"encoding/json"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostile"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent/next"
)

// TestAttackHost: whatever text a host sends, in any place, comes out as one short printable line.
func TestAttackHost(t *testing.T) {
	for name, word := range hostile.Words() {
		t.Run(name, func(t *testing.T) {
			quoted, err := json.Marshal(word)
			assert.NilError(t, err)
			said := string(quoted)
			var shown []string
			for _, c := range []canned{
				{status: 200, os: goodOS, body: `{"update_state":` + said + `}`},
				{status: 200, os: goodOS, body: `{"update_state":"Idle","available_updates":[` + said + `]}`},
				{status: 200, os: goodOS, body: `{"update_state":"Idle","most_recent_command":{"cmd_type":"refresh","cmd_status":"Failed","stderr":` + said + `}}`},
				{status: 200, os: goodOS, body: `{"update_state":"Idle","most_recent_command":{"cmd_type":` + said + `,"timestamp":` + said + `}}`},
				{status: 200, os: goodOS, body: `{"update_state":"Idle","most_recent_command":{"cmd_status":` + said + `}}`},
				{status: 200, os: goodOS, body: `{"update_state":"Idle","most_recent_command":{"exit_status":` + word + `}}`},
				{status: 500, os: goodOS, body: word}, {status: 200, os: word}, {status: 200, os: `{"version_id":` + said + `}`},
				{status: 200, os: `{"version_id":"1.26.1","variant_id":` + said + `}`}, {status: 200, os: `{"version_id":"1.26.1","arch":` + said + `}`},
			} {
				client := c.client(t)
				h, err := client.Observe(t.Context())
				if err != nil {
					shown = append(shown, err.Error())
				}
				shown = append(shown, h.Last.Problem, h.Last.Timestamp, h.Chosen, h.Staged, h.Version, h.Variant, h.Arch)
				if c.status == 500 {
					for _, command := range []next.Command{next.CommandPrepare, next.CommandReboot} {
						shown = append(shown, client.Start(t.Context(), command).Error())
					}
				}
			}
			for _, s := range shown {
				assert.NilError(t, hostile.Obeyed(s))
				assert.Assert(t, len(s) < 700, "%d bytes: %q", len(s), s)
			}
		})
	}
}
