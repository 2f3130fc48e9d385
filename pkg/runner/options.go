package runner

import (
	"flag"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

// Options are the runner's flags.
type Options struct {
	// Namespace is the operator's own, PlansNamespace that of PodTemplates and their pods.
	Namespace, PlansNamespace string
	// SecretName is the Secret with the key of digests, in Namespace.
	SecretName string
	// Kubeconfig is empty inside a cluster.
	Kubeconfig string
	telemetry.Options
}

// DefaultOptions returns the defaults.
func DefaultOptions() Options {
	return Options{Namespace: kube.Namespace, PlansNamespace: kube.PlansNamespace, SecretName: "update-operator-runner", Options: telemetry.DefaultOptions()}
}

// AddFlags binds the options to fs.
func (o *Options) AddFlags(fs *flag.FlagSet) {
	fs.StringVar(&o.Namespace, "namespace", o.Namespace, "the operator's own namespace (default $POD_NAMESPACE)")
	fs.StringVar(&o.PlansNamespace, "plans-namespace", o.PlansNamespace, "namespace of the PodTemplates of plans, of what these mount, and of their pods")
	fs.StringVar(&o.SecretName, "digest-secret", o.SecretName, "Secret that holds the key of digests")
	fs.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "kubeconfig file, outside a cluster")
	o.Options.AddFlags(fs, "metrics and probes")
}

// Validate returns the first mistake, with the remedy.
func (o Options) Validate() error {
	for _, f := range []struct{ name, value string }{
		{"namespace", o.Namespace}, {"plans-namespace", o.PlansNamespace}, {"digest-secret", o.SecretName},
	} {
		if f.value == "" {
			return errors.Errorf("flag -%s is empty: give a value or leave the flag out", f.name)
		}
	}
	if o.PlansNamespace == o.Namespace {
		return errors.Errorf("flag -plans-namespace is the operator's own namespace, %q: pods of plans need one of their own", o.Namespace)
	}
	return o.Options.Validate()
}
