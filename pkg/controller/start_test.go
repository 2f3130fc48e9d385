package controller

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	restclient "k8s.io/client-go/rest"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
)

// A lease is renewed also while drains have used up all that the client allows itself.
func TestLeasesDoNotWaitForDrains(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	client, err := newClient(&restclient.Config{Host: server.URL, QPS: 1e-6, Burst: 1})
	assert.NilError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = client.CoreV1().Pods("default").Get(ctx, "a", metav1.GetOptions{})
	assert.Assert(t, apierrors.IsNotFound(err), err)
	_, err = client.CoreV1().Pods("default").Get(ctx, "a", metav1.GetOptions{})
	assert.ErrorContains(t, err, "rate limiter")
	_, err = client.CoordinationV1().Leases("default").Get(ctx, kube.LeaseName, metav1.GetOptions{})
	assert.Assert(t, apierrors.IsNotFound(err), err)
}
