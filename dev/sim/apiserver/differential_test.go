package apiserver_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/sim/apiserver"
)

const (
	sequences = 120
	requests  = 40
)

// No other client writes here, and admission adds no taint to a new Node and no finalizer to a new claim.
var shared = controlplane.Shared{Config: controlplane.Config{
	APIServerFlags: []string{"--disable-admission-plugins=ServiceAccount,TaintNodesByCondition,StorageObjectInUseProtection"},
}}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

func realClient(t *testing.T) kubernetes.Interface {
	config := shared.Get(t).AdminConfig()
	config.QPS, config.Burst = -1, -1
	config.ContentType, config.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(config)
	assert.NilError(t, err)
	return client
}

// Whatever is asked of both, this server and a real one answer alike. Every time they differ this one is
// wrong.
func TestLikeARealServer(t *testing.T) {
	t.Parallel()
	client := realClient(t)
	var told strings.Builder
	ran := 0
	for seed := range uint64(sequences) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			told.WriteString(compare(t, client, seed, generate(seed)))
			ran++
		})
	}
	if ran < sequences {
		// Some of them failed, or -run chose one of them.
		return
	}
	for _, w := range worthy {
		assert.Assert(t, regexp.MustCompile(w).MatchString(told.String()), "no sequence shows %s", w)
	}
}

// worthy are exchanges that the sequences are there for: a change of the generator must not lose them.
var worthy = []string{
	`create (node|pod|lease|config).*\n    409 AlreadyExists`,
	`create node n. from.*\n    500`,
	`patch node .*\n    400`, `patch node .*\n    404`, `patch node .*\n    409`, `patch node .*\n    422`, `patch node .*\n    500`,
	`update (node|pod|budget|lease|config map) .*\n    409`, `update lease .*no uid\n    Lease`, `update (budget|lease) .*no version.*\n    422`,
	`delete (node|pod) .*uid=older\n    409`, `delete pod .*\n    ok`, `update pod .*change=node.*\n    422`,
	`evict .*uid=older\n    409`, `evict .*uid=none\n    ok`, `evict .*\n    404`, `evict .*\n    500`,
	`evict .*\n    429 .*needs \d healthy pods.*after 0`, `evict .*\n    429 .*being processed.*after 10`,
	`evict .*\n    429 .*failed sync: words`, `evict .*\n    429 .*\(InsufficientPods\): words`, `evict .*\n    429 .*pods currently\) retry`,
	`evict p0 by another UID\n    409.*\n.*\n    Pod.*disrupted=p0`, `disrupted=p0`, `DisruptionAllowed=False\(InsufficientPods: \)`, `DisruptionTarget=True.*\n.*evict .*\n    ok`,
	`create (replica set|attachment|claim) .*\n    409 AlreadyExists`, `get replica set .*\n    404`, `get attachment .*\n    404`, `get claim .*\n    404`,
	`create replica set .*replicas=-1\n    ReplicaSet.*generation=1 .*replicas=1 `, `create claim .*\n    Persist.*phase=Pending`,
	`update replica set .*from=newest .*\n    ReplicaSet.*generation=3 `, `update replica set .*from=older .*\n    409`, `update replica set .*change=selector.*\n    422`,
	`status of replica set .*touch=true.*\n    ReplicaSet.*labels=map.touched:yes`, `status of replica set .*touch=false no version.*\n    ReplicaSet`,
	`status of replica set .*from=older .*\n    409`, `status of replica set .*\n    404`, `status of replica set .*\n    422`,
	`status of attachment .*from=newest .*touch=true.*\n    VolumeAttachment.*annotations=map\[\] finalizers=\[\]`, `attached=true attach=nil detach=&VolumeError`,
	`status of attachment .*from=older .*\n    409`, `status of attachment .*no version.*\n    422`, `status of attachment .*\n    404`,
	`delete replica set .*uid=older\n    409`, `delete attachment .*uid=older\n    409`, `delete claim .*uid=older\n    409`,
	`delete replica set .*\n    ok`, `delete attachment .*\n    ok`, `delete claim .*\n    ok`, `delete (replica set|attachment|claim) .*\n    404`,
	`list attachments metadata.name=\n    \[VolumeAttachment`, `list attachments metadata.name=\n    \[\]`, `list attachments metadata.namespace=\n    \[V`, `list attachments spec.*\n    400`,
	`list replica sets  metadata.name=r0\n    \[R`, `list replica sets .*status.*\n    400`, `list claims  metadata.name=c0\n    \[P`, `list claims .*status.*\n    400`,
	`list nodes .*spec.other=x\n    400`, `bind .*\n    ok`, `bind .*\n    409`,
}

// A real server tries to evict a pod that no budget protects for ten seconds before it gives in to a
// conflict. That is too long for the sequences above, which leave this out.
func TestEvictionOfAnotherPendingPod(t *testing.T) {
	t.Parallel()
	client := realClient(t)
	pod := request{"create pod p0", func(s *side) string {
		p, err := s.pods().Create(s.ctx, newPod("p0", "", "x"), metav1.CreateOptions{})
		return s.answer(p, err)
	}}
	evict := request{"evict p0 with another UID", func(s *side) string {
		return s.eviction("p0", &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("x")})
	}}
	compare(t, client, sequences, []request{pod, evict})
}

// request is asked of both sides. All that is random about it was chosen before.
type request struct {
	text string
	ask  func(s *side) string
}

// compare returns what was asked and answered.
func compare(t *testing.T, client kubernetes.Interface, seed uint64, sequence []request) string {
	t.Helper()
	namespace := fmt.Sprintf("seed-%d", seed)
	_, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	assert.NilError(t, err)
	server := apiserver.New(time.Now)
	memory := newSide(t, namespace, server.Client("test", nil))
	memory.evict, memory.watch = server.Client("test", nil).Evict, inMemory(server)
	real := newSide(t, namespace, client)
	real.evict, real.watch = evictOnce(client), overTheWire(t, client)
	memory.watchAll(memory.version())
	real.watchAll(real.version())

	var told strings.Builder
	step := func(r request) {
		want := real.protect(r, server)
		if want == "" {
			return
		}
		got := r.ask(memory)
		fmt.Fprintf(&told, "%s\n    %s\n", r.text, want)
		if got != want {
			t.Fatalf("seed %d, asked and answered:\n%s\nin memory the last answer is\n    %s", seed, told.String(), got)
		}
	}
	half := len(sequence) / 2
	for _, r := range sequence[:half] {
		step(r)
	}
	// One more round of watches starts from here, but later.
	earlier, before := memory.version(), real.version()
	for _, r := range sequence[half:] {
		step(r)
	}
	memory.watchAll(earlier)
	real.watchAll(before)
	for _, r := range last {
		step(r)
	}
	for i := range memory.watches {
		want, got := real.events(i), memory.events(i)
		if got != want {
			t.Fatalf("seed %d, asked and answered:\n%s\nwatch of %+v shows\n%s\nin memory\n%s", seed, told.String(), memory.watches[i].selection, want, got)
		}
	}
	return told.String()
}

// protect asks, but for what takes a real server long.
func (s *side) protect(r request, memory *apiserver.Server) string {
	if strings.HasPrefix(r.text, "evict") && s.namespace != fmt.Sprintf("seed-%d", sequences) {
		fields := strings.Fields(r.text)
		p := memory.Pod(s.namespace, fields[1])
		if p != nil && !strings.HasSuffix(r.text, "uid=none") && !strings.HasSuffix(r.text, "uid=newest") &&
			(p.DeletionTimestamp != nil || p.Status.Phase != corev1.PodRunning) {
			return ""
		}
	}
	return r.ask(s)
}

// last are what ends the watches: each sees one of them.
var last = []request{
	{"create node end", func(s *side) string {
		n := s.newNode("end", "a")
		n.Annotations = map[string]string{"end": ""}
		n, err := s.client.CoreV1().Nodes().Create(s.ctx, n, metav1.CreateOptions{})
		return s.answer(n, err)
	}},
	{"create node n0", func(s *side) string {
		n, err := s.client.CoreV1().Nodes().Create(s.ctx, s.newNode("n0", "a"), metav1.CreateOptions{})
		return s.answer(n, err)
	}},
	{"patch node n0", func(s *side) string {
		n, err := s.client.CoreV1().Nodes().Patch(s.ctx, s.node("n0"), types.MergePatchType, []byte(`{"metadata":{"annotations":{"end":""}}}`), metav1.PatchOptions{})
		return s.answer(n, err)
	}},
	{"create pod end", func(s *side) string {
		p := newPod("end", "", "x")
		p.Annotations = map[string]string{"end": ""}
		p, err := s.pods().Create(s.ctx, p, metav1.CreateOptions{})
		return s.answer(p, err)
	}},
}
