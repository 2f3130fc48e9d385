package runner

import (
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/file"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

// plans are those of the last policy that could be read: one with a mistake, or one that was deleted, changes nothing.
type plans struct {
	log logrus.FieldLogger

	mu    sync.Mutex
	known bool
	all   []policy.Plan
	// unreadable is what was logged last of a policy that can't be read.
	unreadable string
}

// handler takes in what the watch of the policy shows, then calls changed.
func (p *plans) handler(changed func()) cache.ResourceEventHandler {
	receive := func(obj any) {
		if config, ok := obj.(*corev1.ConfigMap); ok {
			p.receive(config)
			changed()
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: receive, UpdateFunc: func(_, obj any) { receive(obj) }}
}

func (p *plans) receive(config *corev1.ConfigMap) {
	set, err := file.Decode([]byte(config.Data[kube.PolicyKey]), policy.DefaultSettings(), time.LoadLocation)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.known, p.all, p.unreadable = true, set.Plans, ""
		return
	}
	if text := err.Error(); text != p.unreadable {
		p.unreadable = text
		p.log.WithField(telemetry.FieldError, err).Warn("The policy can't be read; its last good plans stay")
	}
}

// current returns the plans; false: no policy was read yet.
func (p *plans) current() ([]policy.Plan, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all, p.known
}

// named returns the plan with a name; nil if there is none.
func named(all []policy.Plan, name string) *policy.Plan {
	if i := slices.IndexFunc(all, func(p policy.Plan) bool { return p.Name == name }); i >= 0 {
		return &all[i]
	}
	return nil
}
