package fleet

import "time"

// CheckFor is what a live look at a node's pods is for.
type CheckFor string

// What is looked for.
const (
	// CheckBaseline: which workloads have Ready pods on the node, before any of them is evicted.
	CheckBaseline CheckFor = "baseline"
	// CheckVolumes: if volumes of the pods that were evicted are still attached.
	CheckVolumes CheckFor = "volumes"
	// CheckPods: if certain pods are Ready on the node itself.
	CheckPods CheckFor = "pods"
	// CheckWorkloads: if the workloads of the baseline are as Ready as they were.
	CheckWorkloads CheckFor = "workloads"
)

// Checked is what this process found when it last looked, in the current disruption of a node.
type Checked struct {
	For CheckFor
	// At is when it was found.
	At time.Time
	// Workloads are those of the baseline, with how many Ready pods each had in the whole cluster.
	Workloads map[string]int
	// Attachments are the names of the volume attachments that are waited for.
	Attachments []string
	// Unwell is a sentence on the first thing that isn't well; empty if all is.
	Unwell string
	// Failed is a sentence on why nothing could be seen; nothing is known then.
	Failed string
	// Next is when another look is worth while.
	Next time.Time
}

// Well tells if all was seen, and all is well.
func (c *Checked) Well() bool { return c.Unwell == "" && c.Failed == "" }
