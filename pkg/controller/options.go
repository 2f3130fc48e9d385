package controller

import (
	"flag"
	"time"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

// Options are the controller's flags.
type Options struct {
	// Namespace is the operator's own.
	Namespace string
	// NodeName and PodName are where and as what this process runs.
	NodeName, PodName string
	// AgentSelector finds the agents' pods in Namespace.
	AgentSelector string
	// Policy is who may go where the policy file says nothing.
	Policy policy.Settings
	// MaxConcurrentUpdate is MAX_CONCURRENT_UPDATE as users of the older operators set it: a number, or
	// unlimited. It takes the place of the default of -max-unavailable; empty: it isn't set.
	MaxConcurrentUpdate string
	// Lease times: a follower takes over LeaseDuration after the last renewal, a leader gives up after
	// RenewDeadline without one, and renews every RetryPeriod.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
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
		Options:       telemetry.DefaultOptions(),
	}
}

// AddFlags binds the options to fs.
func (o *Options) AddFlags(fs *flag.FlagSet) {
	// One that can't be read is told of by Validate.
	_ = o.Policy.MaxUnavailable.Set(o.MaxConcurrentUpdate)
	fs.StringVar(&o.Namespace, "namespace", o.Namespace, "the operator's own namespace (default $POD_NAMESPACE)")
	fs.StringVar(&o.NodeName, "node-name", o.NodeName, "the node that this pod runs on, which is updated last (default $NODE_NAME)")
	fs.StringVar(&o.PodName, "pod-name", o.PodName, "this pod's name, for the lease (default $POD_NAME)")
	fs.StringVar(&o.AgentSelector, "agent-selector", o.AgentSelector, "label selector of the agents' pods")
	p := &o.Policy
	fs.Var(&p.MaxUnavailable, "max-unavailable", "how many nodes may be out of service at once: a number, a percentage, or unlimited")
	fs.Var(&p.MaxLost, "max-lost", "how many Lost nodes don't stop the others: a number or a percentage; with more nothing starts")
	fs.IntVar(&p.MaxStaging, "max-staging", p.MaxStaging, "how many nodes may download and write an update at once")
	fs.DurationVar(&p.Soak, "soak", p.Soak, "how long a node must be Ready after its update before the next one starts")
	fs.DurationVar(&p.Deadlines.Prepare, "prepare-deadline", p.Deadlines.Prepare, "how long staging may take")
	fs.DurationVar(&p.Drain, "drain-deadline", p.Drain, "how long a drain may take before the node is given back")
	fs.DurationVar(&p.Deadlines.Reboot, "reboot-deadline", p.Deadlines.Reboot, "how long a reboot may take before the node is Lost")
	fs.DurationVar(&p.Deadlines.Return, "return-deadline", p.Deadlines.Return, "how long a rebooted node may take to become Ready before it is Lost")
	fs.DurationVar(&p.RetryBase, "retry-base", p.RetryBase, "wait after a node's first failure, doubled by each further one")
	fs.DurationVar(&p.RetryMax, "retry-max", p.RetryMax, "longest wait after failures")
	fs.DurationVar(&p.HandsOff, "hands-off", p.HandsOff, "how long a node is left alone after somebody uncordoned it during its drain")
	fs.DurationVar(&o.LeaseDuration, "lease-duration", o.LeaseDuration, "a follower takes over after so long without a renewal")
	fs.DurationVar(&o.RenewDeadline, "lease-renew-deadline", o.RenewDeadline, "a leader gives up after so long without a renewal")
	fs.DurationVar(&o.RetryPeriod, "lease-retry-period", o.RetryPeriod, "pause between renewals")
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
	if o.MaxConcurrentUpdate != "" {
		if _, err := policy.ParseLimit(o.MaxConcurrentUpdate); err != nil {
			return errors.Errorf("MAX_CONCURRENT_UPDATE in the environment: %v", err)
		}
	}
	if err := o.Options.Validate(); err != nil {
		return err
	}
	return o.Policy.Validate()
}
