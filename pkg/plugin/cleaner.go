package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner/lifecycle"
)

// cleaner cleans one node at a time.
type cleaner struct {
	*plugin
	*cleanOptions
	client kubernetes.Interface
}

// cleaned is what became of a node.
type cleaned struct {
	// parts say what was done.
	parts []string
	// left is why nothing was.
	left string
	// notes are what people should know beside that.
	notes []string
}

func (c *cleaned) unchanged() bool { return len(c.parts) == 0 && c.left == "" }

func (c *cleaned) String() string {
	switch {
	case c.left != "":
		return "left: " + c.left
	case c.unchanged():
		return "unchanged"
	}
	return "cleaned: " + strings.Join(c.parts, ", ")
}

// clean cleans a node. Where something else wrote to it in between, it is looked at anew.
func (c *cleaner) clean(ctx context.Context, n *corev1.Node) (done cleaned, err error) {
	name, conflict := n.Name, func(err error) bool { return errors.Is(err, kube.ErrConflict) }
	err = retry.OnError(retry.DefaultBackoff, conflict, func() (err error) {
		if n == nil {
			n, err = c.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				done = cleaned{parts: []string{"it is gone"}}
				return nil
			}
			if err != nil {
				return errors.Wrapf(err, "reading node %q", name)
			}
		}
		done, err = c.write(ctx, n)
		n = nil
		return err
	})
	return done, err
}

// write cleans a node as it was read.
func (c *cleaner) write(ctx context.Context, n *corev1.Node) (cleaned, error) {
	v := kube.View(n)
	if why := c.leaves(&v); why != "" {
		return cleaned{left: why}, nil
	}
	change := lifecycle.Clean(&v)
	done := effect(n, &v, change)
	if !done.unchanged() && c.sends() {
		if _, err := kube.WriteOnce(ctx, c.client, n, change, c.patchOptions()); err != nil {
			return done, err
		}
	}
	if !c.labels {
		return done, nil
	}
	removed, err := c.removeUsers(ctx, n)
	done.parts = append(done.parts, removed...)
	return done, err
}

func (c *cleaner) patchOptions() metav1.PatchOptions {
	return metav1.PatchOptions{FieldManager: fieldManager, DryRun: c.options()}
}

// leaves says why a node isn't touched.
func (c *cleaner) leaves(n *fleet.Node) string {
	switch {
	case len(n.Problems) > 0 && !c.forced(forceUnreadable):
		return fmt.Sprintf("annotation %s; correct or remove it, or give --force=%s", n.Problems[0], forceUnreadable)
	case len(n.Problems) == 0 && lifecycle.RebootBegun(n) && !c.forced(forceRebooting):
		return fmt.Sprintf("its reboot has begun; clean it when it is back, or give --force=%s", forceRebooting)
	}
	return ""
}

// removeUsers takes away what users have set for the operator, and says what that was.
func (c *cleaner) removeUsers(ctx context.Context, n *corev1.Node) (removed []string, err error) {
	stands := map[marker.Kind]map[string]string{marker.KindLabel: n.Labels, marker.KindAnnotation: n.Annotations}
	remove := map[marker.Kind]map[marker.Key]any{marker.KindLabel: {}, marker.KindAnnotation: {}}
	for _, e := range marker.Table() {
		if _, there := stands[e.Kind][string(e.Key)]; there && e.Writer == marker.WriterUser {
			remove[e.Kind][e.Key] = nil
			removed = append(removed, fmt.Sprintf("%s %s removed", e.Kind, e.Key))
		}
	}
	if len(removed) == 0 || !c.sends() {
		return removed, nil
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"labels": remove[marker.KindLabel], "annotations": remove[marker.KindAnnotation]}})
	if err != nil {
		return removed, err
	}
	_, err = c.client.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, body, c.patchOptions())
	return removed, errors.Wrapf(err, "writing node %q", n.Name)
}
