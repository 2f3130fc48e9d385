package fleet

import "time"

// LookFor is what a live look at a node's pods is for.
type LookFor string

// What is looked for.
const (
	// LookBaseline: which workloads have Ready pods on the node, before any of them is evicted.
	LookBaseline LookFor = "baseline"
	// LookVolumes: if volumes of the pods that were evicted are still attached.
	LookVolumes LookFor = "volumes"
	// LookPods: if certain pods are Ready on the node itself.
	LookPods LookFor = "pods"
	// LookWorkloads: if the workloads of the baseline are as Ready as they were.
	LookWorkloads LookFor = "workloads"
)

// Look is what this process found when it last looked, in the current disruption of a node.
type Look struct {
	For LookFor
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
func (l *Look) Well() bool { return l.Unwell == "" && l.Failed == "" }
