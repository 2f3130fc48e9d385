package runner

import (
	"context"

	"github.com/pkg/errors"
	"github.com/sirupsen/logrus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/authorizer/rule"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/runner/next"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

// report writes a report, if the rule allows it on the node as it was just read. After a conflict the node is looked at
// again.
func (r *Runner) report(ctx context.Context, l *looked, step next.Step) error {
	n := l.node
	patch := rule.Patch{ResourceVersion: n.ResourceVersion, Annotations: make(map[string]*string, len(step.Changes))}
	for k, v := range step.Changes {
		patch.Annotations[string(k)] = v
	}
	if refusal := rule.Judge(rule.Write{NodeName: l.Node.Name, NodeUID: l.Node.UID, Patch: patch, Now: r.time.Now(), Live: rule.Live{
		Name: n.Name, UID: string(n.UID), ResourceVersion: n.ResourceVersion, Annotations: n.Annotations, Unschedulable: n.Spec.Unschedulable,
	}}); refusal != nil {
		return errors.Errorf("the report is not allowed: %s: %s", refusal.Reason, refusal.Message)
	}
	body, err := patch.Body()
	if err != nil {
		return err
	}
	_, err = r.client.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: fieldManager})
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return errors.Wrapf(err, "writing to node %q", n.Name)
	}
	if _, answers := step.Changes[marker.KeyActionState]; answers {
		log := r.log.WithFields(logrus.Fields{
			telemetry.FieldNode: n.Name, telemetry.FieldIntent: l.Node.Intent.ID, telemetry.FieldAction: l.Node.Intent.Action,
			telemetry.FieldTarget: l.Node.Intent.Target, telemetry.FieldState: step.Report.State,
		})
		if step.Report.State == marker.StateError {
			log = log.WithFields(logrus.Fields{telemetry.FieldReason: step.Report.Reason, telemetry.FieldMessage: step.Report.Message})
		}
		log.Info("Answered an intent")
	}
	return nil
}
