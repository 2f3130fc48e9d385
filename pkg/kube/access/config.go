package access

import (
	"github.com/pkg/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Config returns how to reach the API server: by the kubeconfig file, or by the pod's own service
// account when path is empty.
func Config(path, userAgent string) (*rest.Config, error) {
	var c *rest.Config
	var err error
	if path == "" {
		c, err = rest.InClusterConfig()
		err = errors.Wrap(err, "reading the pod's service account (outside a cluster give -kubeconfig)")
	} else {
		c, err = clientcmd.BuildConfigFromFlags("", path)
		err = errors.Wrapf(err, "reading kubeconfig %q", path)
	}
	if err != nil {
		return nil, err
	}
	c.UserAgent = userAgent
	c.ContentType = "application/vnd.kubernetes.protobuf"
	c.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	// Priority and fairness of the API server sets the pace; this only bounds a runaway loop.
	// A fleet of 5,000 nodes that is labelled at once takes a write and an event for each.
	c.QPS, c.Burst = 200, 400
	return c, nil
}
