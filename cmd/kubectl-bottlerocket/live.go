package main

import (
	"context"
	"encoding/json"
	"net"
	"time"

	"github.com/pkg/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// liveWithin is how long the leader's answer is awaited: its host may be the one that is down.
const liveWithin = 10 * time.Second

// plan asks the leader for its own plan, which it serves as /plan. Only the leader knows what it remembers: which pod a
// drain waits for, which alerts stand, which policy was good before.
func (l *leader) plan(ctx context.Context, client kubernetes.Interface, namespace string) (plan.Plan, error) {
	var out plan.Plan
	_, port, err := net.SplitHostPort(l.options.ListenAddress)
	if err != nil {
		return out, errors.Wrap(err, "reading the controller's flag -listen")
	}
	ctx, cancel := context.WithTimeout(ctx, liveWithin)
	defer cancel()
	// Pods' own ProxyGet doesn't say why it is refused.
	body, err := client.CoreV1().RESTClient().Get().Namespace(namespace).Resource("pods").Name(utilnet.JoinSchemeNamePort("http", l.name, port)).
		SubResource("proxy").Suffix("plan").Param("format", "json").SetHeader("Accept", "application/json").Do(ctx).Raw()
	if err != nil {
		return out, errors.Wrapf(err, "asking pod %s/%s", namespace, l.name)
	}
	return out, errors.Wrapf(json.Unmarshal(body, &out), "reading the answer of pod %s/%s", namespace, l.name)
}
