package controller_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// attach is the word of an attacher.
func (f *testFleet) attach(name, node string) {
	f.t.Helper()
	a := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: name}}
	a.Spec.Attacher, a.Spec.NodeName, a.Spec.Source.PersistentVolumeName = "example.com", node, new("volume-"+name)
	attachments := f.client.StorageV1().VolumeAttachments()
	_, err := attachments.Create(context.Background(), a, metav1.CreateOptions{})
	assert.NilError(f.t, err)
	_, err = attachments.Patch(context.Background(), name, types.MergePatchType, []byte(`{"status":{"attached":true}}`), metav1.PatchOptions{}, "status")
	assert.NilError(f.t, err)
}

func (f *testFleet) detach(name string) {
	f.t.Helper()
	assert.NilError(f.t, f.client.StorageV1().VolumeAttachments().Delete(context.Background(), name, metav1.DeleteOptions{}))
}

// FLUO_30: a host isn't rebooted while a volume of an evicted pod is attached to it, whichever controller leads;
// what is attached to others is no matter.
func TestFLUO_30(t *testing.T) {
	f := newFleet(t, "a", "b")
	f.machines["b"].halt()
	f.attach("csi-1", "a")
	f.attach("csi-2", "b")
	_, stop := f.control(nil)
	a := f.machines["a"]
	f.until("a is managed", a.updatedTo(v1))
	f.release(v2)
	f.until("volumes are awaited", a.waitsFor(plan.ReasonVolumesAttached))
	assert.Assert(t, strings.Contains(a.marks().Waiting.Message, "volume volume-csi-1 is still attached to the node, by VolumeAttachment csi-1"))
	drained := a.marks().Disruption.Drained
	stop()
	f.control(nil)
	passBy(t, 3*time.Second)
	assert.Equal(t, a.rebooted(), 0)
	assert.Assert(t, a.marks().Disruption.Drained.Equal(*drained), "a new leader counts from the same moment")
	writes := f.writes("a")
	passBy(t, 3*time.Second)
	assert.Equal(t, f.writes("a"), writes, "a wait writes nothing (L4)")
	f.detach("csi-1")
	f.until("a is updated", a.updatedTo(v2))
	assert.Equal(t, a.rebooted(), 1)
}
