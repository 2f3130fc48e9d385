package plan

import (
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plain"
)

// Group is one of the policy's groups as a plan shows it: when it may go, and how far it is. The one without a name is
// of the nodes in no group.
type Group struct {
	Name string `json:"name"`
	// After names the groups that go first, and AfterSoak for how long they must have had the version.
	After     []string       `json:"after,omitempty"`
	AfterSoak plain.Duration `json:"afterSoak,omitzero"`
	// Paused is why nothing of it starts.
	Paused *string `json:"paused,omitempty"`
	Window Window  `json:"window"`
	Nodes  int     `json:"nodes"`
	// Each node is one of these: a step would be taken on it now; it has what is offered; it is staging, staged or out
	// of service; or it waits before all that.
	UpToDate   int `json:"upToDate"`
	Starting   int `json:"starting"`
	InProgress int `json:"inProgress"`
	Waiting    int `json:"waiting"`
}

// Window is a group's calendar.
type Window struct {
	Open bool `json:"open"`
	// Frozen is the reason of the freeze that holds.
	Frozen *string `json:"frozen,omitempty"`
	// Opens is the next opening, and Closes the next closing; of an open one the closing comes first.
	Opens  time.Time `json:"opens,omitzero"`
	Closes time.Time `json:"closes,omitzero"`
}
