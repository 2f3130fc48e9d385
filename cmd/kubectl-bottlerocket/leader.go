package main

import (
	"context"
	"flag"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/pkg/errors"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/controller"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// leader is the controller that would carry a plan out.
type leader struct {
	// name is that of its pod; empty if nothing leads, or the pod is gone.
	name string
	// node is where it runs, and since when it leads; empty and zero if nobody knows.
	node  string
	since time.Time
	// options are its flags, or the defaults.
	options controller.Options
	// notes are what people should know of it.
	notes []string
}

// findLeader asks the Lease who leads, and its pod with which flags; without one, the Deployment.
func findLeader(ctx context.Context, client kubernetes.Interface, namespace string, now time.Time) leader {
	l := leader{options: controller.DefaultOptions()}
	spec, err := l.pod(ctx, client, namespace, now)
	if err == nil && spec == nil {
		spec, err = deployed(ctx, client, namespace)
	}
	if err != nil {
		l.note("the controller's flags are not known, so this goes by the defaults: %v", err)
		return l
	}
	if l.options, err = flagsOf(spec); err != nil {
		l.options = controller.DefaultOptions()
		l.note("the controller's flags can't be read, so this goes by the defaults: %v", err)
	}
	return l
}

func (l *leader) note(format string, args ...any) {
	l.notes = append(l.notes, errors.Errorf(format, args...).Error())
}

// pod is that of the leader; nil if nobody leads or the pod is gone.
func (l *leader) pod(ctx context.Context, client kubernetes.Interface, namespace string, now time.Time) (*corev1.PodSpec, error) {
	lease, err := client.CoordinationV1().Leases(namespace).Get(ctx, controller.LeaseName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		l.note("no controller has ever led in namespace %q: nothing happens until one does", namespace)
		return nil, nil
	case err != nil:
		l.note("nobody can tell which controller leads: %v", err)
		return nil, nil
	}
	name, leads := holder(lease, now)
	if !leads {
		l.note("no controller leads now: nothing happens until one does")
	}
	if name == "" {
		return nil, nil
	}
	if t := lease.Spec.AcquireTime; t != nil {
		l.since = t.Time
	}
	pod, err := client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, errors.Wrapf(err, "reading pod %s/%s", namespace, name)
	}
	l.node = pod.Spec.NodeName
	if leads {
		l.name = name
	}
	return &pod.Spec, nil
}

// holder is the name of the pod that a Lease names, and if it still leads, as far as this machine's clock tells.
func holder(lease *coordinationv1.Lease, now time.Time) (pod string, leads bool) {
	s := lease.Spec
	if s.HolderIdentity == nil || *s.HolderIdentity == "" {
		return "", false
	}
	// The part behind it tells apart two processes in one pod.
	pod = *s.HolderIdentity
	if i := strings.LastIndex(pod, "_"); i >= 0 {
		pod = pod[:i]
	}
	if s.RenewTime == nil || s.LeaseDurationSeconds == nil {
		return pod, true
	}
	return pod, now.Before(s.RenewTime.Add(2 * time.Duration(*s.LeaseDurationSeconds) * time.Second))
}

// deployed is how the next controller would be started.
func deployed(ctx context.Context, client kubernetes.Interface, namespace string) (*corev1.PodSpec, error) {
	d, err := client.AppsV1().Deployments(namespace).Get(ctx, controller.LeaseName, metav1.GetOptions{})
	if err != nil {
		return nil, errors.Wrapf(err, "reading Deployment %s/%s", namespace, controller.LeaseName)
	}
	return &d.Spec.Template.Spec, nil
}

// flagsOf reads the flags of the container that runs the controller.
func flagsOf(spec *corev1.PodSpec) (controller.Options, error) {
	for _, c := range spec.Containers {
		args := append(slices.Clone(c.Command), c.Args...)
		isFlag := func(a string) bool { return strings.HasPrefix(a, "-") }
		mode := slices.IndexFunc(args, func(a string) bool {
			name, _, _ := strings.Cut(strings.TrimLeft(a, "-"), "=")
			return isFlag(a) && name == "controller"
		})
		if mode < 0 {
			continue
		}
		first := slices.IndexFunc(args, isFlag)
		return parse(slices.Delete(args, mode, mode+1)[first:], c.Env)
	}
	return controller.Options{}, errors.New("no container of the controller's pod has the flag -controller")
}

func parse(args []string, env []corev1.EnvVar) (controller.Options, error) {
	o := controller.DefaultOptions()
	for _, e := range env {
		if e.Name != "MAX_CONCURRENT_UPDATE" {
			continue
		}
		if e.ValueFrom != nil {
			return o, errors.New("MAX_CONCURRENT_UPDATE comes from elsewhere")
		}
		if _, err := policy.ParseLimit(e.Value); err != nil && e.Value != "" {
			return o, errors.Errorf("MAX_CONCURRENT_UPDATE: %v", err)
		}
		o.MaxConcurrentUpdate = e.Value
	}
	fs := flag.NewFlagSet("controller", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	o.AddFlags(fs)
	if err := fs.Parse(args); err != nil {
		return o, errors.Wrap(err, "they are those of another version")
	}
	return o, o.Policy.Validate()
}
