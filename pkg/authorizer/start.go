package authorizer

import (
	"context"
	"io"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/sirupsen/logrus"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube/access"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

// Start runs a proxy with its probes and metrics until ctx ends; it logs to out. Options must be valid.
func Start(ctx context.Context, o Options, out io.Writer) error {
	log, err := o.Logger(out)
	if err != nil {
		return err
	}
	config, err := access.Config(o.Kubeconfig, "bottlerocket-update-operator/"+telemetry.Version+" proxy")
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	telemetry.RegisterBuildInfo(registry, "proxy")
	registry.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewGoCollector())
	p, err := New(o, config, registry, log)
	if err != nil {
		return err
	}
	p.handler.enforcer.Test = func(ctx context.Context, node string) (bool, error) { return access.Restricted(ctx, p.client, node) }
	log.WithFields(logrus.Fields{telemetry.FieldVersion: telemetry.Version, telemetry.FieldAddress: o.ServeAddress}).Info("Starting the proxy")
	return telemetry.RunAndServe(ctx, p.Run, o.ListenAddress, telemetry.Config{Gatherer: registry, Ready: p.Ready, Log: log})
}
