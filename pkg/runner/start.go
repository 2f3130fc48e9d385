package runner

import (
	"context"
	"io"

	"github.com/pkg/errors"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/sirupsen/logrus"
	"k8s.io/client-go/kubernetes"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube/access"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

// Start runs a runner with its probes and metrics until ctx ends; it logs to out. Options must be valid.
func Start(ctx context.Context, o Options, out io.Writer) error {
	log, err := o.Logger(out)
	if err != nil {
		return err
	}
	config, err := access.Config(o.Kubeconfig, "bottlerocket-update-operator/"+telemetry.Version+" runner")
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return errors.Wrap(err, "making a client of the API server")
	}
	registry := prometheus.NewRegistry()
	telemetry.RegisterBuildInfo(registry, "runner")
	registry.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewGoCollector())
	r, err := New(NewConfig(o, client, NewMetrics(registry), log))
	if err != nil {
		return err
	}
	r.enforcer.Test = func(ctx context.Context, node string) (bool, error) {
		return access.RunnerRestricted(ctx, client, o.Namespace, o.PlansNamespace, node)
	}
	log.WithField(telemetry.FieldVersion, telemetry.Version).Info("Starting the runner")
	return telemetry.RunAndServe(ctx, r.Run, o.ListenAddress, telemetry.Config{Gatherer: registry, Ready: r.Ready, Log: log})
}

func notRestricted(log logrus.FieldLogger) {
	log.Error("No admission policy holds the runner's account to what is its own to write and to create: apply components/plans/plans.yaml whole, " +
		"and check that the policies whose names begin with update-operator-runner match this account")
}
