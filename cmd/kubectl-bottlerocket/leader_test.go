package main

import (
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/controller"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

func started(args []string, env ...corev1.EnvVar) corev1.PodSpec {
	return corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{
		{Name: "sidecar", Args: []string{"-max-unavailable=9"}},
		{Name: "controller", Command: []string{"/bottlerocket-update-operator"}, Args: args, Env: env}}}
}

// The plan goes by the flags of who leads; without one, of who would; and says so where it can't.
func TestLeader(t *testing.T) {
	pod := func(s corev1.PodSpec) runtime.Object {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c-1"}, Spec: s}
	}
	deployment := func(s corev1.PodSpec) runtime.Object {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: controller.LeaseName},
			Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: s}}}
	}
	lease := func(holder string, renewed time.Duration) runtime.Object {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: controller.LeaseName}, Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: new(int32(45)), AcquireTime: &metav1.MicroTime{Time: ago(time.Hour)},
			RenewTime: &metav1.MicroTime{Time: ago(renewed)}}}
	}
	for _, tc := range []struct {
		name    string
		objects []runtime.Object
		node    string
		limit   policy.Limit
		notes   string
	}{
		{"a leader", []runtime.Object{lease("c-1_x", 0), pod(started([]string{"-controller", "-max-unavailable=3"})), deployment(started([]string{"-controller"}))},
			"n", policy.Count(3), ""},
		{"one that has gone without a word", []runtime.Object{lease("c-1_x", time.Hour), pod(started([]string{"--controller=true", "--max-unavailable", "3"}))},
			"n", policy.Count(3), "no controller leads now: nothing happens until one does"},
		{"one that gave the lead up", []runtime.Object{lease("", 0), deployment(started([]string{"-max-unavailable=25%", "-controller"}))},
			"", policy.Percent(25), "no controller leads now: nothing happens until one does"},
		{"a pod that is gone", []runtime.Object{lease("c-1_x", 0), deployment(started([]string{"-controller"}))}, "", policy.Count(1), ""},
		{"the old name of the limit", []runtime.Object{lease("c-1_x", 0), pod(started([]string{"-controller"}, corev1.EnvVar{Name: "MAX_CONCURRENT_UPDATE", Value: "unlimited"}))},
			"n", policy.Unlimited, ""},
		{"the old name, and a flag", []runtime.Object{lease("c-1_x", 0), pod(started([]string{"-controller", "-max-unavailable=2"}, corev1.EnvVar{Name: "MAX_CONCURRENT_UPDATE", Value: "4"}))},
			"n", policy.Count(2), ""},
		{"the old name, by reference", []runtime.Object{lease("c-1_x", 0), pod(started([]string{"-controller"}, corev1.EnvVar{Name: "MAX_CONCURRENT_UPDATE", ValueFrom: &corev1.EnvVarSource{}}))},
			"n", policy.Count(1), "MAX_CONCURRENT_UPDATE comes from elsewhere"},
		{"flags of a newer build", []runtime.Object{lease("c-1_x", 0), pod(started([]string{"-controller", "-max-unavailable=2", "-novelty"}))},
			"n", policy.Count(1), "flag provided but not defined: -novelty"},
		{"no controller at all", nil, "", policy.Count(1), "no controller has ever led"},
		{"another pod of that name", []runtime.Object{lease("c-1_x", 0), pod(corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "x"}}})},
			"n", policy.Count(1), "no container of the controller's pod has the flag -controller"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := findLeader(t.Context(), fake.NewClientset(tc.objects...), "ns", noon)
			assert.Equal(t, l.node, tc.node)
			assert.Equal(t, l.options.Policy.MaxUnavailable, tc.limit)
			notes := strings.Join(l.notes, "\n")
			assert.Assert(t, strings.Contains(notes, tc.notes) && (tc.notes != "" || notes == ""), notes)
			assert.Assert(t, l.options.AgentSelector != "")
		})
	}
}
