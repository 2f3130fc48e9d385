package controller

import (
	"context"
	"io"
	"net/http"

	"github.com/pkg/errors"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/sirupsen/logrus"
	"k8s.io/client-go/kubernetes"
	typedcoordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	restclient "k8s.io/client-go/rest"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube/access"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

// Start runs a controller with its probes, metrics and plan until ctx ends; it logs to out. Options
// must be valid.
func Start(ctx context.Context, o Options, out io.Writer) error {
	log, err := o.Logger(out)
	if err != nil {
		return err
	}
	config, err := access.Config(o.Kubeconfig, "bottlerocket-update-operator/"+telemetry.Version+" controller")
	if err != nil {
		return err
	}
	client, err := newClient(config)
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	telemetry.RegisterBuildInfo(registry, "controller")
	registry.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewGoCollector())
	c, err := New(o, client, registry, log)
	if err != nil {
		return err
	}
	c.restricted = func(ctx context.Context, node string) (bool, error) {
		return access.ControllerRestricted(ctx, client, c.options.Namespace, node)
	}
	log.WithFields(logrus.Fields{telemetry.FieldVersion: telemetry.Version, telemetry.FieldNode: o.NodeName}).Info("Starting the controller")
	return telemetry.RunAndServe(ctx, c.Run, o.ListenAddress, telemetry.Config{
		Gatherer: registry, Ready: c.Ready, Healthy: c.Healthy, Log: log,
		Handlers: map[string]http.Handler{"/plan": PlanHandler(c)},
	})
}

// newClient returns a client whose requests for Leases don't wait for its others: many drains at once may use up what
// it allows itself, and that must not cost it the lead.
func newClient(config *restclient.Config) (kubernetes.Interface, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, errors.Wrap(err, "making a client of the API server")
	}
	leases, err := typedcoordination.NewForConfig(config)
	if err != nil {
		return nil, errors.Wrap(err, "making a client of the API server for Leases")
	}
	return electing{client, leases}, nil
}

type electing struct {
	kubernetes.Interface
	leases typedcoordination.CoordinationV1Interface
}

// CoordinationV1 implements kubernetes.Interface.
func (e electing) CoordinationV1() typedcoordination.CoordinationV1Interface { return e.leases }
