package controller

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/drain"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/notice"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// Cluster is the fleet and the slot list; *kube.Cluster is one.
type Cluster interface {
	// Nodes returns all nodes, none older than this process's last write to it, sorted by name.
	Nodes(ctx context.Context) ([]fleet.Node, error)
	// Write changes one node if nothing was written to it since, else it is kube.ErrConflict.
	Write(ctx context.Context, node string, c *plan.Change) error
	// State returns what the controller's own object says, as last seen, and ForgetSlots makes the next look a live one.
	// ChangeSlots changes the slot holders by compare-and-swap, and so do RecordVersions and RecordPolicy with the
	// versions that are known and that there is a policy.
	State(ctx context.Context) (kube.State, error)
	ChangeSlots(ctx context.Context, add map[string]string, remove []string) error
	ForgetSlots()
	RecordVersions(ctx context.Context, saw, named []string, now time.Time) error
	RecordPolicy(ctx context.Context, now time.Time) error
	// RecordRollouts does so with what is remembered of rollouts.
	RecordRollouts(ctx context.Context, text string) error
	// RecordNotices does the same with what messages tell, if what is kept of it is still as before.
	RecordNotices(ctx context.Context, before, after string) error
	// Check looks live at what a node carries.
	Check(ctx context.Context, node string, q plan.LiveCheck) (fleet.Checked, error)
	// Live looks at a node as it is right now; false: it is gone. Nodes shows nothing older afterwards.
	Live(ctx context.Context, node string) (fleet.Node, bool, error)
	// Exists looks live, and so does Alone: if the node is the only one of its cluster that isn't on its way out.
	Exists(ctx context.Context, node, uid string) (bool, error)
	Alone(ctx context.Context, uid string) (bool, error)
}

// Policies is what the policy says now; *kube.Policy is one.
type Policies interface {
	Current() kube.PolicyState
}

// Drainer makes eviction passes; *drain.Drainer is one.
type Drainer interface {
	Pass(ctx context.Context, node string, e policy.Eviction, force bool, most int) (drain.Result, error)
	// Forecast looks live at what would keep a node that isn't cordoned yet from being drained.
	Forecast(ctx context.Context, node string, e policy.Eviction) (fleet.Obstacle, string, error)
	// Pods lists live what is left to evict.
	Pods(ctx context.Context, node string, e policy.Eviction) ([]corev1.Pod, error)
}

// Alerts asks which alerts stand; alert.Prometheus is one.
type Alerts interface {
	Ask(ctx context.Context, url, query string) ([]fleet.Alert, error)
}

// Sender sends messages; *post.Sender is one.
type Sender interface {
	// Send sends a message to the URL that the policy names by a key.
	Send(ctx context.Context, key string, m notice.Message) (notice.Result, error)
}

// Events writes Events on Nodes and on the policy's ConfigMap; *kube.Events is one.
type Events interface {
	Event(node, uid string, warning bool, reason, message string)
	// Once is Event, of which all processes together write one by an id.
	Once(id, node, uid string, warning bool, reason, message string)
	// Notice is about the policy, not a node.
	Notice(warning bool, reason, message string)
}
