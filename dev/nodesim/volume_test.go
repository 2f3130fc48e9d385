package nodesim

import (
	"os"
	"path/filepath"
	"testing"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	assert.NilError(t, err)
	return string(b)
}

func TestVolumeIsReadyWithItsLastSourceAndChangesAtOnce(t *testing.T) {
	dir, changes := t.TempDir(), 0
	v := newVolume(dir, 2, func() { changes++ })
	v.set(0, files{"token": []byte("one")})
	ready, err := v.ready()
	assert.NilError(t, err)
	assert.Assert(t, !ready)
	v.set(1, files{"ca.crt": []byte("ca"), "deep/file": []byte("x")})
	ready, err = v.ready()
	assert.NilError(t, err)
	assert.Assert(t, ready)
	v.set(0, files{"token": []byte("two")})
	assert.Equal(t, read(t, filepath.Join(dir, "token")), "two")
	assert.Equal(t, read(t, filepath.Join(dir, "ca.crt")), "ca")
	assert.Equal(t, read(t, filepath.Join(dir, "deep", "file")), "x")
	assert.Equal(t, changes, 3)
	entries, err := filepath.Glob(filepath.Join(dir, "..[0-9]*"))
	assert.NilError(t, err)
	assert.Equal(t, len(entries), 1, "older files stay behind: %v", entries)
}

func TestPick(t *testing.T) {
	data := map[string][]byte{"a": []byte("1"), "b": []byte("2")}
	assert.Equal(t, len(pick(data, nil)), 2)
	got := pick(data, []corev1.KeyToPath{{Key: "a", Path: "x/y"}, {Key: "absent", Path: "z"}})
	assert.DeepEqual(t, got, files{"x/y": []byte("1")})
}

func TestPathFollowsTheDeepestMount(t *testing.T) {
	p := Pod{
		Pod: &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{VolumeMounts: []corev1.VolumeMount{
			{Name: "outer", MountPath: "/etc/op"}, {Name: "inner", MountPath: "/etc/op/tls/"}, {Name: "odd", MountPath: "/odd"},
		}}}}},
		volumes: map[string]string{"outer": "/v/outer", "inner": "/v/inner"},
	}
	for in, want := range map[string]string{"/etc/op/a": "/v/outer/a", "/etc/op/tls/tls.crt": "/v/inner/tls.crt", "/etc/op/tls": "/v/inner"} {
		got, err := p.Path(in)
		assert.NilError(t, err)
		assert.Equal(t, got, want)
	}
	_, err := p.Path("/etc/operator")
	assert.ErrorContains(t, err, "no volume")
	_, err = p.Path("/odd/x")
	assert.ErrorContains(t, err, "isn't simulated")
}

func TestConditionsKeepTheTimeOfWhatDoesNotChange(t *testing.T) {
	long := metav1.Unix(1000, 0)
	before := []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: long},
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionUnknown, LastTransitionTime: long},
	}
	for _, c := range conditions(before, corev1.ConditionTrue, "KubeletReady", "") {
		kept := c.LastTransitionTime == long
		assert.Equal(t, kept, c.Type == corev1.NodeReady, "%s", c.Type)
	}
}
