package controlplane

import (
	"context"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/process"
	"github.com/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// awaitDefaults waits for what the controller manager puts into a namespace
// before a pod can be created there.
func (c *ControlPlane) awaitDefaults(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.AdminConfig())
	if err != nil {
		return errors.Wrap(err, "making a client")
	}
	return c.AwaitNamespace(ctx, client, metav1.NamespaceDefault)
}

// AwaitNamespace waits until a namespace has its default service account and
// its copy of the cluster's certificate authority.
func (c *ControlPlane) AwaitNamespace(ctx context.Context, client kubernetes.Interface, namespace string) error {
	if c.controllerManager == nil {
		return errors.New("without a controller manager a namespace is never filled")
	}
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		_, err := client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		if err == nil {
			_, err = client.CoreV1().ConfigMaps(namespace).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
		}
		if err == nil {
			return nil
		}
		select {
		case <-c.controllerManager.Done():
			return errors.Errorf("kube-controller-manager ended: %s",
				tail(process.LogTail(c.logPath("kube-controller-manager"), 4096), 10))
		case <-ctx.Done():
			return errors.Wrapf(err, "waiting for the controller manager to fill namespace %q", namespace)
		case <-time.After(readyPoll):
		}
	}
}
