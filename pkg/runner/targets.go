package runner

import (
	"context"
	"maps"
	"time"

	"github.com/pkg/errors"
	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/channel"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

// settle is how long changes of what plans mount are gathered, since they often come together.
const settle = 200 * time.Millisecond

// targets keeps the ConfigMap in which the controller reads what is known of the plans.
type targets struct {
	client    kubernetes.Interface
	namespace string
	time      Time
	plans     *plans
	keys      *keeper
	from      reader
	channels  *channel.Poller
	// stands is what the watch of the ConfigMap shows.
	stands  cache.Store
	changed chan struct{}
	metrics *Metrics
	log     logrus.FieldLogger
}

// look asks for another look; many before it begins are one.
func (t *targets) look() {
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// run looks whenever something changed, until ctx ends.
func (t *targets) run(ctx context.Context) {
	retry := retryMin
	for t.time.Rest(ctx, ever, t.changed) {
		t.time.Rest(ctx, settle, nil)
		err := t.pass(ctx)
		if err == nil || ctx.Err() != nil {
			retry = retryMin
			continue
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			t.log.WithField(telemetry.FieldError, err).Warn("Could not look at the plans; trying again")
		}
		t.time.Rest(ctx, retry, nil)
		retry = min(2*retry, retryMax)
		t.look()
	}
}

// pass computes what is known, and writes it if that is another than what stands.
func (t *targets) pass(ctx context.Context) error {
	all, known := t.plans.current()
	if !known {
		return nil
	}
	t.channels.Set(channels(all))
	ctx, cancel := t.time.Within(ctx, requestTime)
	defer cancel()
	key, err := t.keys.known(ctx)
	if err != nil {
		return err
	}
	there, err := t.shown()
	if err != nil {
		return err
	}
	want, err := t.data(ctx, all, key, there)
	if err != nil {
		return err
	}
	if there != nil && maps.Equal(there.Data, want) || there == nil && len(want) == 0 {
		return nil
	}
	// Another runner may have written it with another key: the one that the Secret has counts.
	if key, err = t.keys.read(ctx); err != nil {
		return err
	}
	wrote, err := t.write(ctx, func(stands *corev1.ConfigMap) (map[string]string, error) {
		want, err = t.data(ctx, all, key, stands)
		return want, err
	})
	if wrote {
		t.log.WithField(telemetry.FieldCount, len(want)).Info("Wrote what is known of the plans")
	}
	return err
}

// shown is the ConfigMap as the watch shows it; nil if it isn't there.
func (t *targets) shown() (*corev1.ConfigMap, error) {
	return stored[*corev1.ConfigMap](t.stands, t.namespace+"/"+kube.PlanTargetsConfigMap)
}

// decode reads a ConfigMap, or nil.
func decode(c *corev1.ConfigMap) map[string]fleet.PlanTarget {
	if c == nil {
		return nil
	}
	return kube.DecodePlanTargets(c.Data)
}

// data is the content of the ConfigMap, where nil or another one stands.
func (t *targets) data(ctx context.Context, all []policy.Plan, key []byte, stands *corev1.ConfigMap) (map[string]string, error) {
	before := decode(stands)
	out, unresolved := make(map[string]string, len(all)), 0
	for i := range all {
		f, err := look(ctx, t.from, key, &all[i])
		if err != nil {
			return nil, err
		}
		keep(&f.target, before[all[i].Name])
		if address := all[i].Target.Channel; address != "" {
			ofChannel(&f.target, before[all[i].Name], address, t.channels.Current()[address])
		}
		if f.target.Problem != "" {
			unresolved++
		}
		if out[all[i].Name], err = kube.EncodePlanTarget(f.target); err != nil {
			return nil, err
		}
	}
	t.metrics.unresolved.Set(float64(unresolved))
	return out, nil
}

// ofChannel adds what a plan's channel shows. A channel that goes back is not followed: what it has shown stands until
// the plan names another channel, in the ConfigMap beyond this process too.
func ofChannel(t *fleet.PlanTarget, before fleet.PlanTarget, address string, shows channel.Result) {
	t.Channel, t.Version = address, shows.Version
	if before.Channel == address && before.Version != "" {
		order, ordered := marker.ComparePlanTargets(before.Version, shows.Version)
		if shows.Version == "" || ordered && order > 0 {
			t.Version = before.Version
		}
	}
	if t.Problem == "" && (t.Version == "" || shows.Problem != "") {
		t.Problem = shows.Problem
		if t.Problem == "" {
			t.Problem = "the channel has not been read yet"
		}
	}
}

// channels are those of all plans.
func channels(all []policy.Plan) []string {
	var out []string
	for i := range all {
		if address := all[i].Target.Channel; address != "" {
			out = append(out, address)
		}
	}
	return out
}

// write makes the ConfigMap hold what compute returns for the one that stands, and reports whether it was written.
func (t *targets) write(ctx context.Context, compute func(stands *corev1.ConfigMap) (map[string]string, error)) (bool, error) {
	configs := t.client.CoreV1().ConfigMaps(t.namespace)
	config, err := configs.Get(ctx, kube.PlanTargetsConfigMap, metav1.GetOptions{})
	missing := apierrors.IsNotFound(err)
	switch {
	case missing:
		config = nil
	case err != nil:
		return false, errors.Wrapf(err, "reading ConfigMap %s/%s", t.namespace, kube.PlanTargetsConfigMap)
	}
	data, err := compute(config)
	switch {
	case err != nil:
		return false, err
	case missing:
		_, err = configs.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: kube.PlanTargetsConfigMap, Namespace: t.namespace},
			Data: data}, metav1.CreateOptions{FieldManager: fieldManager})
	case maps.Equal(config.Data, data):
		return false, nil
	default:
		config.Data = data
		_, err = configs.Update(ctx, config, metav1.UpdateOptions{FieldManager: fieldManager})
	}
	return err == nil, errors.Wrapf(err, "writing ConfigMap %s/%s", t.namespace, kube.PlanTargetsConfigMap)
}
