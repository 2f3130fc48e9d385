package controller

import (
	"flag"
	"time"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/post"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

// Options are the controller's flags.
type Options struct {
	// Namespace is the operator's own.
	Namespace string
	// NodeName and PodName are where and as what this process runs.
	NodeName, PodName string
	// AgentSelector finds the pods of agents and runners in Namespace.
	AgentSelector string
	// Policy holds where the policy file says nothing.
	Policy policy.Settings
	// MaxConcurrentUpdate is MAX_CONCURRENT_UPDATE as users of the older operators set it: a number, or
	// unlimited. It takes the place of Policy's MaxUnavailable; empty: it isn't set.
	MaxConcurrentUpdate string
	// Lease times: a follower takes over LeaseDuration after the last renewal, a leader gives up after
	// RenewDeadline without one, and renews every RetryPeriod.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
	// BrupopMetrics adds gauges under the names that dashboards for Brupop use. Default true.
	BrupopMetrics bool
	// NotifyDir is where the Secret with the URLs of messages is mounted.
	NotifyDir string
	// Kubeconfig is empty inside a cluster.
	Kubeconfig string
	telemetry.Options
}

// DefaultOptions returns the defaults.
func DefaultOptions() Options {
	return Options{
		Namespace:     kube.Namespace,
		AgentSelector: kube.AgentSelector,
		Policy:        policy.DefaultSettings(),
		LeaseDuration: 45 * time.Second,
		RenewDeadline: 30 * time.Second,
		RetryPeriod:   10 * time.Second,
		BrupopMetrics: true,
		NotifyDir:     "/var/run/secrets/bottlerocket.aws/notify",
		Options:       telemetry.DefaultOptions(),
	}
}

// AddFlags binds the options to fs.
func (o *Options) AddFlags(fs *flag.FlagSet) {
	fs.StringVar(&o.Namespace, "namespace", o.Namespace, "the operator's own namespace (default $POD_NAMESPACE)")
	fs.StringVar(&o.NodeName, "node-name", o.NodeName, "the node that this pod runs on, which is updated last (default $NODE_NAME)")
	fs.StringVar(&o.PodName, "pod-name", o.PodName, "this pod's name, for the lease (default $POD_NAME)")
	fs.StringVar(&o.AgentSelector, "agent-selector", o.AgentSelector, "label selector of the pods of agents and runners")
	fs.DurationVar(&o.LeaseDuration, "lease-duration", o.LeaseDuration, "a follower takes over after so long without a renewal")
	fs.DurationVar(&o.RenewDeadline, "lease-renew-deadline", o.RenewDeadline, "a leader gives up after so long without a renewal")
	fs.DurationVar(&o.RetryPeriod, "lease-retry-period", o.RetryPeriod, "pause between renewals")
	fs.BoolVar(&o.BrupopMetrics, "brupop-metrics", o.BrupopMetrics, "serve brupop_hosts_state and brupop_hosts_version too")
	fs.StringVar(&o.NotifyDir, "notify-dir", o.NotifyDir, "where the Secret "+post.Secret+" is mounted, whose keys hold the URLs that messages are sent to")
	fs.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "kubeconfig file, outside a cluster")
	o.Options.AddFlags(fs, "metrics, probes and the plan")
}

// Validate returns the first thing that is wrong, with the remedy.
func (o Options) Validate() error {
	switch {
	case o.Namespace == "":
		return errors.New("flag -namespace is empty: give the operator's own namespace")
	case o.PodName == "":
		return errors.New("no pod name: give -pod-name or set POD_NAME")
	case o.NodeName == "":
		return errors.New("no node name: give -node-name or set NODE_NAME")
	case o.AgentSelector == "":
		return errors.New("flag -agent-selector is empty: give the label selector of the agents' pods")
	case o.RetryPeriod <= 0 || o.RenewDeadline <= o.RetryPeriod*6/5 || o.LeaseDuration <= o.RenewDeadline:
		return errors.Errorf("lease times %s, %s, %s: -lease-duration must exceed -lease-renew-deadline, and that 1.2 times -lease-retry-period",
			o.LeaseDuration, o.RenewDeadline, o.RetryPeriod)
	}
	if _, err := o.defaults(); err != nil {
		return err
	}
	return o.Options.Validate()
}

// defaults are the settings where the policy file says nothing.
func (o Options) defaults() (set policy.Settings, err error) {
	set = o.Policy
	if o.MaxConcurrentUpdate != "" {
		set.MaxUnavailable, err = policy.ParseLimit(o.MaxConcurrentUpdate)
	}
	return set, errors.WithMessage(err, "MAX_CONCURRENT_UPDATE in the environment")
}
