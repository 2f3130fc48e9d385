package plan

import "time"

// Rollout is what is remembered of one version's rollout: from when the first node was on its way to it until none is,
// and none will go by itself.
type Rollout struct {
	Version string    `json:"version"`
	Began   time.Time `json:"began"`
	// Ended is zero while it is under way.
	Ended time.Time `json:"ended,omitzero"`
	// Most is how many nodes were to go to it at once, at most.
	Most int `json:"most"`
	// Waits is for how long nodes waited by each reason before they were taken out of service: the sum of all nodes'
	// times, in seconds.
	Waits map[Reason]int `json:"waits,omitempty"`
	// Unseen is for how many seconds no controller saw what they waited for.
	Unseen int `json:"unseen,omitempty"`
}

// UnderWay reports whether the rollout has not ended.
func (r *Rollout) UnderWay() bool { return r.Ended.IsZero() }
