package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// newIntent asks for something; id must be another one each time.
func newIntent(id string, a marker.Action) marker.Intent {
	now := time.Now().UTC().Truncate(time.Second)
	return marker.Intent{ID: id, Action: a, Time: now, Until: now.Add(time.Hour)}
}

// update takes one node through an update as a controller does that knows no limit and has nothing to
// drain. Its agent answers busy and ready, busy and ready, and ready.
func (w *proxied) update(ctx context.Context, i int) error {
	version := fmt.Sprintf("1.%d.0", w.minor)
	boot := w.hosts[i].offer(version)
	for _, step := range []struct {
		action   marker.Action
		cordoned bool
	}{{marker.ActionPrepareUpdate, false}, {marker.ActionRebootUpdate, true}, {marker.ActionStabilize, false}} {
		wanted := newIntent(fmt.Sprintf("%s-%s", step.action, boot), step.action)
		if step.action != marker.ActionStabilize {
			wanted.Target = version
		}
		if step.cordoned {
			wanted.RebootFrom = boot
		}
		if err := w.patch(ctx, i, marker.Encode(marker.Marks{Intent: wanted}), step.cordoned); err != nil {
			return err
		}
		var report marker.Report
		err := w.agents[i].await(ctx, func(a *watchedNode) bool {
			report, _ = marker.DecodeReport(a.answered.Annotations)
			s := report.Answer(wanted.ID)
			return s == marker.StateReady || s == marker.StateError
		})
		if err != nil {
			return errors.WithMessagef(err, "%s of node %d", step.action, i)
		}
		if report.State == marker.StateError {
			return errors.Errorf("%s of node %d: the agent says %q", step.action, i, report.Message)
		}
	}
	return nil
}

// patch writes annotations and the cordon as the controller does; what it doesn't mention of its own is taken
// away.
func (w *proxied) patch(ctx context.Context, i int, set map[marker.Key]string, cordoned bool) error {
	annotations := map[marker.Key]*string{}
	for _, k := range marker.Keys(marker.WriterController) {
		annotations[k] = nil
		if v, ok := set[k]; ok {
			annotations[k] = &v
		}
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}, "spec": map[string]any{"unschedulable": cordoned}})
	if err != nil {
		return errors.Wrap(err, "encoding a patch")
	}
	w.pen <- struct{}{}
	defer func() { <-w.pen }()
	_, err = w.client.CoreV1().Nodes().Patch(ctx, nodeName(i), types.MergePatchType, body, metav1.PatchOptions{})
	return errors.Wrap(err, "patching a node")
}
