package plugin

import (
	"context"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/file"
)

// policyConfigMap reads the ConfigMap with the policy; nil if there is none.
func (p *plugin) policyConfigMap(ctx context.Context, client kubernetes.Interface) (*corev1.ConfigMap, error) {
	config, err := client.CoreV1().ConfigMaps(p.namespace()).Get(ctx, kube.PolicyConfigMap, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return config, errors.Wrapf(err, "reading ConfigMap %s/%s", p.namespace(), kube.PolicyConfigMap)
}

// decodePolicy returns the policy in a ConfigMap; the defaults if that is nil.
func decodePolicy(config *corev1.ConfigMap) (policy.Settings, error) {
	if config == nil {
		return policy.DefaultSettings(), nil
	}
	return file.Decode([]byte(config.Data[kube.PolicyKey]), policy.DefaultSettings(), time.LoadLocation)
}
