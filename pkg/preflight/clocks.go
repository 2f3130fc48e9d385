package preflight

import (
	"fmt"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plain"
)

// skew is by how much clocks may differ. A node's Lease is renewed every 10 s, and an answer is on its way for a while.
const skew = time.Minute

const setClock = "look at time synchronization: chronyc tracking, or timedatectl"

func clock(s *Snapshot) []Finding {
	if b := blind(s.Clock); b != nil {
		return b
	}
	off := s.Clock.Value.Server.Sub(s.Clock.Value.Here)
	if off.Abs() > skew {
		return warned("the API server's clock and this machine's differ by "+apart(off)+": times that are shown here are off", setClock)
	}
	return well("the API server's clock and this machine's agree")
}

func nodeClocks(s *Snapshot) []Finding {
	if b := blind(s.Clock, s.Nodes, s.Renewed); b != nil {
		return b
	}
	var off []string
	seen := 0
	for i := range s.Nodes.Value {
		n := &s.Nodes.Value[i]
		at, known := s.Renewed.Value[n.Name]
		if !n.Concerned() || !n.Ready || !known {
			continue
		}
		seen++
		if d := at.Sub(s.Clock.Value.Server); d.Abs() > skew {
			off = append(off, n.Name+" ("+apart(d)+")")
		}
	}
	if len(off) > 0 {
		return warned("Leases of Ready nodes are renewed at times far from the API server's clock on "+of(off,
			"node")+": their clocks are off, or their kubelets hang",
			setClock+" on the node; on Bottlerocket settings.ntp")
	}
	return well(fmt.Sprintf("the clocks of %s agree with the API server's", count(seen, "node")))
}

func apart(d time.Duration) string { return plain.Duration(d.Abs().Round(time.Second)).String() }
