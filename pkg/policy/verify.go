package policy

import (
	"fmt"
	"time"
)

// Verify is what must be well after an update, beside the node.
type Verify struct {
	// Pods must be Ready on the node itself before it takes others again, and still when its soak is over.
	Pods []PodSelector `yaml:"pods"`
	// Deadline is how long pods and workloads are waited for. Default 10 min.
	Deadline time.Duration `yaml:"deadline"`
	// OnWorkloads is what becomes of a node when the workloads that it had are less Ready than before, by the deadline.
	// Default FailOnWorkloads.
	OnWorkloads OnWorkloads `yaml:"onWorkloads" words:"fail,ignore"`
}

// OnWorkloads is what is made of workloads that are less Ready than before.
type OnWorkloads string

// What is made of them.
const (
	// FailOnWorkloads: they are waited for, and by the deadline the attempt ends as failed, which counts against the
	// version if nothing else can be to blame.
	FailOnWorkloads OnWorkloads = "fail"
	// IgnoreWorkloads: they are not looked at.
	IgnoreWorkloads OnWorkloads = "ignore"
)

func (v Verify) validate(m *mistakes) {
	m.positive("verify.deadline", v.Deadline)
	for i, s := range v.Pods {
		if len(s.Selector) == 0 {
			m.add(fmt.Sprintf("verify.pods[%d]", i), "chooses every pod: name those that must be Ready by their labels, with a podSelector")
		}
	}
}
