package chaos

import (
	"flag"
	"log/slog"
	"testing"

	"gotest.tools/v3/assert"
	"k8s.io/klog/v2"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
)

var seed = flag.Uint64("seed", 12, "what the faults of TestChaos are drawn from")

type testLog struct{ t *testing.T }

func (l testLog) Write(line []byte) (int, error) {
	l.t.Helper()
	l.t.Logf("%s", line[:len(line)-1])
	return len(line), nil
}

// Every fault strikes once while twelve machines are updated three at a time.
func TestChaos(t *testing.T) {
	controlplane.SkipIfShort(t)
	// The machines' own watches complain of every outage.
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	result, err := Run(t.Context(), Config{Seed: *seed, Nodes: 12, Limit: 3, Times: 1, Progress: testLog{t}, Keep: t.ArtifactDir()})
	var total Total
	total.Add(result, err)
	t.Log(total)
	assert.NilError(t, err)
	for _, v := range result.Violations {
		t.Error(v)
	}
	assert.NilError(t, result.Err())
	f := result.Figures
	assert.Check(t, f.Cordons >= 12 && f.Updated >= 12 && f.Reboots >= 12 && f.Renewals > 0, "%+v", f)
	assert.Check(t, f.NodesOnVersion == 12 && f.NodesScheduled == 11, "%+v", f)
}
