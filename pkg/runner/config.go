package runner

import (
	"math/rand/v2"
	"net/http"

	"github.com/sirupsen/logrus"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/channel"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
)

// Config is what a Runner is made from.
type Config struct {
	Options Options
	Client  kubernetes.Interface
	// Informer returns what watches a source, not yet running.
	Informer func(Source) kube.Informer
	// Queue returns the queue of the nodes that are due.
	Queue func(workqueue.TypedRateLimiter[string]) workqueue.TypedRateLimitingInterface[string]
	Time  Time
	// Channels is the way to the channels of plans, Random spreads the requests for them.
	Channels http.RoundTripper
	Random   func() float64
	Metrics  *Metrics
	Log      logrus.FieldLogger
}

// NewConfig is that of a process of its own.
func NewConfig(o Options, client kubernetes.Interface, metrics *Metrics, log logrus.FieldLogger) Config {
	return Config{Options: o, Client: client, Informer: func(s Source) kube.Informer { return s.informer(client) },
		Queue: workqueue.NewTypedRateLimitingQueue[string], Time: Clock(), Channels: channel.NewTransport(), Random: rand.Float64, Metrics: metrics, Log: log}
}
