package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner/lifecycle"
)

// cleanup is what clean does to one node. It is computed first and applied then, so that a dry run prints the same.
type cleanup struct {
	node *corev1.Node
	// left is why the node is left as it is; empty if it is not.
	left string
	// change removes what the operator put on the node, and undoes what it did to it.
	change *plan.Change
	// users are the labels and annotations to remove that users have set for the operator.
	users []marker.Entry
	// parts say what is done, and notes what to know besides.
	parts, notes []string
}

// cleanup returns what these options do to a node.
func (o *cleanOptions) cleanup(n *corev1.Node) cleanup {
	v := kube.View(n)
	switch {
	case len(v.Problems) > 0 && !o.forced(forceUnreadable):
		return cleanup{node: n, left: fmt.Sprintf("annotation %s; correct or remove it, or give --force=%s",
			v.Problems[0], forceUnreadable)}
	case len(v.Problems) == 0 && lifecycle.RebootBegun(&v) && !o.forced(forceRebooting):
		return cleanup{node: n, left: fmt.Sprintf("its reboot has begun; clean it when it is back, or give --force=%s",
			forceRebooting)}
	case lifecycle.LockStands(&v) && !o.forced(forceLock):
		l := v.Marks.Lock
		return cleanup{node: n, left: fmt.Sprintf("its host may be locked to %s, which only a command there takes back: apiclient set updates.version-lock=%s; then give --force=%s",
			l.Standing(), l.Before, forceLock)}
	}
	c := cleanup{node: n, change: lifecycle.Clean(&v)}
	c.describe(&v)
	if o.labels {
		c.users = usersEntries(n)
		for _, e := range c.users {
			c.parts = append(c.parts, fmt.Sprintf("%s %s removed", e.Kind, e.Key))
		}
	}
	return c
}

// describe adds what the change does, and what it leaves.
func (c *cleanup) describe(v *fleet.Node) {
	if c.change.Unschedulable != nil {
		c.parts = append(c.parts, "uncordoned")
	}
	if removed := len(c.change.Diff(c.node.Annotations)); removed > 0 {
		c.parts = append(c.parts, plural(removed, "annotation")+" removed")
	}
	if len(c.parts) == 0 {
		return
	}
	if kept := c.kept(v); kept != "" {
		c.parts = append(c.parts, kept)
	}
	resetting := v.Phase() == intent.PhaseResetting && v.Marks.Report.Answer(v.Marks.Intent.ID) != marker.StateReady
	if resetting || lifecycle.RebootBegun(v) {
		c.notes = append(c.notes,
			fmt.Sprintf("the host of node %q may have an update activated, which its next reboot goes into", v.Name))
	}
}

// kept says which marks stay on a node that was taken out of service, because the operator may not have put them there.
func (c *cleanup) kept(v *fleet.Node) string {
	if !v.Disrupted() {
		return ""
	}
	cordoned := v.Unschedulable && c.change.Unschedulable == nil
	unreadable := slices.ContainsFunc(v.Problems, func(p marker.Problem) bool { return p.Key == marker.KeyDisruption })
	if !unreadable {
		if cordoned {
			return "cordon kept, it was there before"
		}
		return ""
	}
	var marks []string
	if cordoned {
		marks = append(marks, "cordon")
	}
	if c.node.Labels[marker.LabelExcluded] == marker.OthersValue {
		marks = append(marks, "label "+marker.LabelExcluded)
	}
	for _, k := range marker.AutoscalerMarks() {
		if c.node.Annotations[k] == marker.OthersValue {
			marks = append(marks, "annotation "+k)
		}
	}
	if len(marks) == 0 {
		return ""
	}
	return strings.Join(marks, ", ") + " kept, it is not known what put it there"
}

// usersEntries returns which labels and annotations of a node users have set for the operator.
func usersEntries(n *corev1.Node) []marker.Entry {
	set := map[marker.Kind]map[string]string{marker.KindLabel: n.Labels, marker.KindAnnotation: n.Annotations}
	return slices.DeleteFunc(marker.Table(), func(e marker.Entry) bool {
		_, there := set[e.Kind][string(e.Key)]
		return !there || e.Writer != marker.WriterUser
	})
}

// apply writes the cleanup to the node. kube.ErrConflict means that the node was written to since it was read.
func (c *cleanup) apply(ctx context.Context, client kubernetes.Interface, dry *dryRun) error {
	if c.left != "" || !dry.sends() {
		return nil
	}
	o := metav1.PatchOptions{FieldManager: fieldManager, DryRun: dry.options()}
	if _, err := kube.WriteOnce(ctx, client, c.node, c.change, o); err != nil || len(c.users) == 0 {
		return err
	}
	remove := map[marker.Kind]map[marker.Key]any{marker.KindLabel: {}, marker.KindAnnotation: {}}
	for _, e := range c.users {
		remove[e.Kind][e.Key] = nil
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"labels": remove[marker.KindLabel], "annotations": remove[marker.KindAnnotation]}})
	if err != nil {
		return err
	}
	_, err = client.CoreV1().Nodes().Patch(ctx, c.node.Name, types.MergePatchType, body, o)
	return errors.Wrapf(err, "writing node %q", c.node.Name)
}

// unchanged reports whether there is nothing to clean.
func (c *cleanup) unchanged() bool { return len(c.parts) == 0 && c.left == "" }

// String is what is printed of the node.
func (c *cleanup) String() string {
	switch {
	case c.left != "":
		return "left: " + c.left
	case c.unchanged():
		return "unchanged"
	}
	return "cleaned: " + strings.Join(c.parts, ", ")
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
