package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/manifest"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

const (
	fleetSize = 5000
	// nodeSize is that of one node as JSON, as the API server returns it.
	nodeSize = 8 << 10
	osNow    = "1.50.0"
)

func nodeName(i int) string {
	return fmt.Sprintf("ip-10-%d-%d-%d.eu-central-1.compute.internal", i>>16, i>>8&0xff, i&0xff)
}

// bigNode is a node like those of clusters in use: labels, annotations of other programs, conditions,
// and so many images that all of it is 8 KiB.
func bigNode(i int) *corev1.Node {
	name := nodeName(i)
	at := metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name,
		Labels: map[string]string{
			corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
			corev1.LabelTopologyRegion: "eu-central-1", corev1.LabelTopologyZone: "eu-central-1" + string(rune('a'+i%3)),
			corev1.LabelInstanceTypeStable: "m7i.4xlarge", "eks.amazonaws.com/nodegroup": "workers",
		},
		Annotations: map[string]string{
			"alpha.kubernetes.io/provided-node-ip":                   fmt.Sprintf("10.0.%d.%d", i>>8&0xff, i&0xff),
			"csi.volume.kubernetes.io/nodeid":                        fmt.Sprintf(`{"ebs.csi.aws.com":"i-%017x"}`, i),
			"volumes.kubernetes.io/controller-managed-attach-detach": "true",
		},
	}}
	n.Spec.ProviderID = fmt.Sprintf("aws:///eu-central-1a/i-%017x", i)
	n.Status.Capacity = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("16"), corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("110")}
	n.Status.Allocatable = n.Status.Capacity
	for _, c := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure} {
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: c, Status: corev1.ConditionFalse, LastHeartbeatTime: at, LastTransitionTime: at,
			Reason: "KubeletHasSufficient", Message: "kubelet has sufficient of it available"})
	}
	n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue,
		LastHeartbeatTime: at, LastTransitionTime: at, Reason: "KubeletReady", Message: "kubelet is posting ready status"})
	n.Status.NodeInfo = corev1.NodeSystemInfo{
		BootID: fmt.Sprintf("00000000-0000-4000-8000-%012x", i), MachineID: fmt.Sprintf("%032x", i), SystemUUID: fmt.Sprintf("%032x", i),
		OSImage: "Bottlerocket OS " + osNow + " (aws-k8s-1.36)", KernelVersion: "6.12.40", ContainerRuntimeVersion: "containerd://2.1.4+bottlerocket",
		KubeletVersion: "v1.36.3", OperatingSystem: "linux", Architecture: "amd64"}
	for image := 0; size(n) < nodeSize-700; image++ { // the API server adds the rest: managed fields above all
		repo := fmt.Sprintf("602401143452.dkr.ecr.eu-central-1.amazonaws.com/workload/service-%d", image)
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{
			Names:     []string{fmt.Sprintf("%s@sha256:%064x", repo, image+1), fmt.Sprintf("%s:v1.%d.0", repo, image)},
			SizeBytes: 100_000_000 + int64(image)})
	}
	return n
}

func size(n *corev1.Node) int {
	body, err := json.Marshal(n)
	if err != nil {
		return 0
	}
	return len(body)
}

// managed makes n a node that the operator has had in its care for long and that is up to date.
func managed(n *corev1.Node, s policy.Settings) {
	n.Labels[string(marker.KeyInterfaceVersion)] = "2.0.0"
	at := time.Now().Add(-time.Hour).UTC().Truncate(time.Second)
	m := restingMarks(n.Status.NodeInfo.BootID, at, s)
	for _, part := range []map[marker.Key]string{marker.Encode(m), marker.EncodeReport(m.Report)} {
		for k, v := range part {
			n.Annotations[string(k)] = v
		}
	}
}

// restingMarks are those of a node that is up to date.
func restingMarks(boot string, at time.Time, s policy.Settings) marker.Marks {
	m := marker.Marks{
		Intent: marker.Intent{ID: "stabilize-" + boot, Action: marker.ActionStabilize, Time: at, Until: at.Add(s.Deadlines.Staging)},
		Report: marker.Report{Current: osNow, BootID: boot, State: marker.StateReady, OperatorVersion: "v2.0.0", Protocol: marker.Protocol},
	}
	m.Report.ActiveID = m.Intent.ID
	m.History = []marker.Attempt{{Version: osNow, Outcome: marker.OutcomeUpdated, Reason: string(plan.ReasonUpdated), Started: at, Ended: at.Add(time.Minute)}}
	return m
}

// agentPods makes an agent's pod, Ready, on each of the first n nodes: the pod of the manifest's DaemonSet.
func agentPods(b *testing.B, client kubernetes.Interface, n int) []*corev1.Pod {
	b.Helper()
	objects, err := manifest.Load()
	assert.NilError(b, err)
	assert.Equal(b, len(objects.DaemonSets), 1)
	template := objects.DaemonSets[0].Spec.Template
	ready := []byte(`{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`)
	pods := client.CoreV1().Pods(namespace)
	made := make([]*corev1.Pod, n)
	eachOf(b, n, func(ctx context.Context, i int) error {
		p := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
		p.GenerateName, p.Spec.NodeName = "update-operator-agent-", nodeName(i)
		p, err := pods.Create(ctx, p, metav1.CreateOptions{})
		if err == nil {
			made[i], err = pods.Patch(ctx, p.Name, types.MergePatchType, ready, metav1.PatchOptions{}, "status")
		}
		return err
	})
	return made
}

// eachOf does something with the numbers below n, many at once, and stops at the first error.
func eachOf(b *testing.B, n int, do func(ctx context.Context, i int) error) {
	b.Helper()
	eachAtOnce(b, n, 32, do)
}

func eachAtOnce(b *testing.B, n, atOnce int, do func(ctx context.Context, i int) error) {
	b.Helper()
	ctx, cancel := context.WithCancelCause(b.Context())
	defer cancel(nil)
	numbers := make(chan int)
	var wg sync.WaitGroup
	for range atOnce {
		wg.Go(func() {
			for i := range numbers {
				if err := do(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	for i := range n {
		select {
		case numbers <- i:
		case <-ctx.Done():
		}
	}
	close(numbers)
	wg.Wait()
	assert.NilError(b, context.Cause(ctx))
}

// createFleet makes n nodes, each changed by change, and returns how large one is, in bytes.
func createFleet(b *testing.B, client kubernetes.Interface, n int, change func(*corev1.Node)) int {
	b.Helper()
	var mu sync.Mutex
	bytes := 0
	eachOf(b, n, func(ctx context.Context, i int) error {
		node := bigNode(i)
		change(node)
		made, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		bytes += size(made)
		return nil
	})
	return bytes / n
}
