package fleet

import "time"

// CheckFor is what a live look at a node is for.
type CheckFor string

// The looks.
const (
	// CheckBaseline: which workloads have Ready pods on the node, before any of them is evicted.
	CheckBaseline CheckFor = "baseline"
	// CheckVolumes: whether volumes of the evicted pods are still attached.
	CheckVolumes CheckFor = "volumes"
	// CheckPods: whether the pods that the policy names are Ready on the node, and what CheckApplied is for, if it is
	// asked for that too.
	CheckPods CheckFor = "pods"
	// CheckWorkloads: whether the workloads of the baseline have as many Ready pods as before.
	CheckWorkloads CheckFor = "workloads"
	// CheckApplied: whether the apply pod of the current intent says that it brought the content.
	CheckApplied CheckFor = "applied"
)

// Checked is what this process found at its last live look in the current disruption of a node.
type Checked struct {
	For CheckFor
	// At is when it was found.
	At time.Time
	// Workloads are those of the baseline, and how many Ready pods each had in the whole cluster.
	Workloads map[string]int
	// Attachments are the names of the volume attachments that are awaited.
	Attachments []string
	// Digest is that of the content that was looked for; empty if none was.
	Digest string
	// Problem is a sentence on the first thing that is not as awaited; empty if there is none.
	Problem string
	// Failed is a sentence on why the look failed; nothing is known then.
	Failed string
	// Next is when to look again.
	Next time.Time
}

// Passed reports whether the look succeeded and found all as awaited.
func (c *Checked) Passed() bool { return c.Problem == "" && c.Failed == "" }
