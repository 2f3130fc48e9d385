package nodesim

import (
	"context"
	"path"
	"time"

	"github.com/pkg/errors"
	authnv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// renewAt is the part of a token's life after which it is renewed.
const renewAt = 0.8

// keepToken asks for a token bound to the pod, with the rights of the node's
// kubelet, and for the next one in time.
func (r *podRun) keepToken(ctx context.Context, p corev1.ServiceAccountTokenProjection, set func(files)) {
	for {
		began := time.Now()
		token, err := r.requestToken(ctx, p)
		if err != nil {
			r.trouble(err)
			if !pause(ctx, retryAfter) {
				return
			}
			continue
		}
		set(files{path.Clean(p.Path): []byte(token.Token)})
		life := token.ExpirationTimestamp.Sub(began)
		if !pause(ctx, max(time.Second, time.Duration(float64(life)*renewAt))) {
			return
		}
	}
}

func (r *podRun) requestToken(ctx context.Context, p corev1.ServiceAccountTokenProjection) (*authnv1.TokenRequestStatus, error) {
	pod := r.seen()
	request := &authnv1.TokenRequest{Spec: authnv1.TokenRequestSpec{
		ExpirationSeconds: p.ExpirationSeconds,
		BoundObjectRef:    &authnv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
	}}
	if p.Audience != "" {
		request.Spec.Audiences = []string{p.Audience}
	}
	answer, err := r.m.kubelet.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, pod.Spec.ServiceAccountName, request, metav1.CreateOptions{})
	if err != nil {
		return nil, errors.Wrap(err, "requesting a token")
	}
	return &answer.Status, nil
}
