package controller

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"
	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

// One line stands in the log for each step that changed a node, with what finds the node's history, and none at rest.
func TestLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newScripted(3)
		term := c.term()
		log, lines := test.NewNullLogger()
		term.c.Log = log
		_, err := term.Pass(t.Context())
		assert.NilError(t, err)
		assert.Equal(t, len(lines.AllEntries()), 3)
		for i, line := range lines.AllEntries() {
			assert.Equal(t, line.Level, logrus.InfoLevel)
			assert.Equal(t, line.Message, "Carried out a step")
			node := c.nodes[name(i)]
			assert.Equal(t, line.Data[telemetry.FieldNode], node.Name)
			assert.Equal(t, line.Data[telemetry.FieldPhase], "New")
			assert.Equal(t, line.Data[telemetry.FieldReason], "Managed")
			assert.Equal(t, line.Data[telemetry.FieldIntent], node.Marks.Intent.ID)
			assert.Assert(t, node.Marks.Intent.ID != "")
		}
		lines.Reset()
		for range 100 {
			time.Sleep(time.Minute)
			_, err := term.Pass(t.Context())
			assert.NilError(t, err)
		}
		assert.Equal(t, len(lines.AllEntries()), 0)
	})
}
