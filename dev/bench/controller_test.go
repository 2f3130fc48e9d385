package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/simcluster"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

const (
	namespace = "bottlerocket"
	// restTime is how long the controller is watched while nothing changes.
	restTime = 30 * time.Second
	// settleTime is for what is still under way when a controller has caught up: a lease, a collection.
	settleTime = 3 * time.Second
)

// What a controller may ask for while nothing changes: its lease, and watches that the server ended.
var controllerRests = []request{"update leases", "get leases", "watch nodes", "watch pods"}

// BenchmarkController measures the real controller with 5,000 nodes of 8 KiB each: on a server with
// streaming lists with nodes that aren't its own and then with nodes that have just been labelled, on one
// without with a fleet that is up to date and has an agent on each node. Nothing in the cluster changes but
// by its own hand.
func BenchmarkController(b *testing.B) {
	needProc(b)
	b.Run("WatchList", func(b *testing.B) {
		f := newBigFleet(b, controlplane.Config{AuditLog: true}, func(*corev1.Node) {})
		b.Run("Unlabelled", f.rest)
		b.Run("Labelled", f.labelled)
	})
	b.Run("NoWatchList", func(b *testing.B) {
		// The heaviest there is, and nothing lighter: that would tell no more and take time.
		set := policy.DefaultSettings()
		f := newBigFleet(b, controlplane.Config{AuditLog: true, NoWatchList: true}, func(n *corev1.Node) { managed(n, set) })
		agentPods(b, f.client, fleetSize)
		b.Run("Managed", f.rest)
	})
}

// bigFleet is the API server with the nodes, and the controller's program.
type bigFleet struct {
	plane   *controlplane.ControlPlane
	client  kubernetes.Interface
	audit   auditLog
	program string
	// bytes is how large a node is.
	bytes int
}

func newBigFleet(b *testing.B, config controlplane.Config, change func(*corev1.Node)) *bigFleet {
	b.Helper()
	plane := controlplane.ForTest(b, config)
	admin := plane.AdminConfig()
	admin.QPS, admin.Burst = -1, -1
	client, err := kubernetes.NewForConfig(admin)
	assert.NilError(b, err)
	_, err = client.CoreV1().Namespaces().Create(b.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	assert.NilError(b, err)
	bytes := createFleet(b, client, fleetSize, change)
	return &bigFleet{bytes: bytes, plane: plane, client: client, audit: auditLog{path: plane.AuditLog()}, program: operator(b, plane)}
}

// rest measures a controller that has nothing to do.
func (f *bigFleet) rest(b *testing.B) {
	c := startController(b, f.plane, f.program)
	most := peak(b.Context(), c.Pid())
	began := time.Now()
	c.awaitReady(b)
	b.ReportMetric(time.Since(began).Seconds(), "s-to-sync")
	f.watchRest(b, c, most)
}

func (f *bigFleet) watchRest(b *testing.B, c *controllerProcess, most func() int64) {
	b.Helper()
	pass(b, settleTime)
	reportMemory(b, c.Pid(), "synced")
	f.audit.mark(b)
	pass(b, restTime)
	reportRequests(b, "controller", f.audit.count(b, controllerUser), restTime, controllerRests...)
	reportMemory(b, c.Pid(), "rest")
	b.ReportMetric(float64(f.bytes), "B/node")
	b.ReportMetric(float64(most())/mebibyte, "MiB-anon-peak")
	b.ReportMetric(0, "ns/op")
	c.Stop(10 * time.Second)
}

// labelled measures the first minutes after all nodes were labelled: no agent runs yet, and each
// node gets its first intent.
func (f *bigFleet) labelled(b *testing.B) {
	body := fmt.Appendf(nil, `{"metadata":{"labels":{%q:"2.0.0"}}}`, marker.KeyInterfaceVersion)
	eachOf(b, fleetSize, func(ctx context.Context, i int) error {
		_, err := f.client.CoreV1().Nodes().Patch(ctx, nodeName(i), types.MergePatchType, body, metav1.PatchOptions{})
		return err
	})
	c := startController(b, f.plane, f.program)
	most := peak(b.Context(), c.Pid())
	c.awaitReady(b)
	began := time.Now()
	assert.NilError(b, simcluster.Await(b.Context(), "every node has an intent", 5*time.Minute, func() (bool, error) {
		code, body, err := get(b.Context(), c.url+"/plan?format=json")
		if code != 200 || err != nil {
			return false, err
		}
		var out plan.Plan
		if err := json.Unmarshal([]byte(body), &out); err != nil {
			return false, err
		}
		return len(out.Nodes) == fleetSize && len(out.Steps) == 0, nil
	}))
	b.ReportMetric(time.Since(began).Seconds(), "s-to-intents")
	f.watchRest(b, c, most)
}
