package plugin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// large is an API server of many nodes that answers lists in pages, as JSON, and finds nothing else.
type large struct {
	*httptest.Server
	kubeconfig  string
	nodes, pods []json.RawMessage
}

func newLarge(t testing.TB, nodes int) *large {
	t.Helper()
	l := &large{kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	assert.NilError(t, os.WriteFile(l.kubeconfig, []byte("apiVersion: v1\nkind: Config\n"), 0o600))
	encode := func(v any) json.RawMessage {
		body, err := json.Marshal(v)
		assert.NilError(t, err)
		return body
	}
	for i := range nodes {
		n := largeNode(i)
		l.nodes = append(l.nodes, encode(n))
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "agent-" + n.Name, Namespace: "bottlerocket", UID: types.UID(strconv.Itoa(i))}}
		p.Spec.NodeName = n.Name
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		l.pods = append(l.pods, encode(p))
	}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/version":
			fmt.Fprint(w, `{"gitVersion":"v1.36.3"}`)
		case "/api/v1/pods":
			l.page(w, r, "PodList", l.pods)
		case "/api/v1/nodes":
			l.page(w, r, "NodeList", l.nodes)
		case "/api/v1/namespaces/bottlerocket/pods":
			l.page(w, r, "PodList", l.pods)
		default:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
		}
	}))
	t.Cleanup(l.Close)
	return l
}

// largeNode is as large as a real one.
func largeNode(i int) *corev1.Node {
	m := at(marker.ActionStabilize, marker.StateReady, time.Hour, v1, v2)
	if i%2 == 0 {
		m = at(marker.ActionPrepareUpdate, marker.StateReady, time.Hour, v1, v2)
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%05d", i), UID: types.UID(fmt.Sprint("uid-", i)), ResourceVersion: "7",
		Labels: map[string]string{string(marker.KeyInterfaceVersion): "2.0.0", "topology.kubernetes.io/zone": string(rune('a' + i%3))}, Annotations: map[string]string{}}}
	for _, part := range []map[marker.Key]string{marker.Encode(m), marker.EncodeReport(m.Report)} {
		for k, v := range part {
			n.Annotations[string(k)] = v
		}
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	n.Status.NodeInfo.BootID, n.Status.NodeInfo.OSImage = m.Report.BootID, "Bottlerocket OS 1.50.0 (aws-k8s-1.36)"
	for j := range 40 {
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{SizeBytes: 1 << 27, Names: []string{
			fmt.Sprintf("registry.example.com/team-%d/application@sha256:%064d", j, j), fmt.Sprintf("registry.example.com/team-%d/application:v1.2.%d", j, j)}})
	}
	return n
}

func (l *large) page(w http.ResponseWriter, r *http.Request, kind string, items []json.RawMessage) {
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	to := len(items)
	if limit, err := strconv.Atoi(r.URL.Query().Get("limit")); err == nil && limit > 0 {
		to = min(from+limit, to)
	}
	more := ""
	if to < len(items) {
		more = strconv.Itoa(to)
	}
	fmt.Fprintf(w, `{"kind":%q,"apiVersion":"v1","metadata":{"resourceVersion":"9","continue":%q},"items":[`, kind, more)
	for i, item := range items[from:to] {
		if i > 0 {
			_, _ = w.Write([]byte(","))
		}
		_, _ = w.Write(item)
	}
	_, _ = w.Write([]byte("]}"))
}

func (l *large) run(t testing.TB, args ...string) said {
	return command(t.Context(), func(next http.RoundTripper) http.RoundTripper { return next }, "", append([]string{"--kubeconfig", l.kubeconfig, "-s", l.URL}, args...)...)
}

// No command asks for all nodes, or all pods, at once.
func TestReadsArePaged(t *testing.T) {
	l := newLarge(t, 1201)
	for args, kinds := range map[string][]string{"status": {"nodes", "pods"}, "__complete pause node": {"nodes"}} {
		got := l.run(t, strings.Fields(args)...)
		assert.Equal(t, got.status, 0, got.errs)
		assert.Assert(t, strings.Contains(got.out, "node-01200"), "all are there")
		for _, kind := range kinds {
			var pages []string
			for _, r := range got.requests {
				path, query, _ := strings.Cut(r, "?")
				if strings.HasSuffix(path, "/"+kind) {
					assert.Assert(t, strings.Contains(query, "limit=500"), r)
					_, from, _ := strings.Cut(query, "continue=")
					from, _, _ = strings.Cut(from, "&")
					pages = append(pages, from)
				}
			}
			assert.DeepEqual(t, pages, []string{"", "500", "1000"})
		}
	}
}

// A check of a large cluster asks for nothing whole, and makes few requests.
func TestCheckIsPaged(t *testing.T) {
	l := newLarge(t, 1201)
	got := l.run(t, "check")
	assert.Equal(t, got.status, 0, got.errs)
	assert.Assert(t, strings.Contains(got.out, "all 1201 Bottlerocket nodes have the label"), got.out)
	assert.Assert(t, len(got.requests) < 50, "%d requests", len(got.requests))
	for kind, pages := range map[string]int{"/api/v1/nodes?": 3, "/api/v1/pods?": 3} {
		n := 0
		for _, r := range got.requests {
			if strings.Contains(r, kind) {
				assert.Assert(t, strings.Contains(r, "limit=500"), r)
				n++
			}
		}
		assert.Equal(t, n, pages)
	}
}

// An API server that hangs ends a check in time: at once if it says nothing at all, and else with what is known.
func TestCheckOfWhatHangs(t *testing.T) {
	for says, status := range map[string]int{"": 2, "/version": 0} {
		ends := make(chan struct{})
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == says {
				fmt.Fprint(w, `{"gitVersion":"v1.36.3"}`)
				return
			}
			<-ends
		}))
		kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
		assert.NilError(t, os.WriteFile(kubeconfig, []byte("apiVersion: v1\nkind: Config\n"), 0o600))
		got := command(t.Context(), func(next http.RoundTripper) http.RoundTripper { return next }, "",
			"--kubeconfig", kubeconfig, "-s", server.URL, "--request-timeout", "500ms", "check")
		close(ends)
		server.Close()
		assert.Equal(t, got.status, status, got.errs)
		if says == "" {
			assert.Equal(t, got.errs, "error: the API server did not answer within 500ms\n")
		} else {
			assert.Assert(t, strings.Contains(got.out, "the API server did not answer in time when asked to list nodes"), got.out)
			assert.Assert(t, strings.Contains(got.out, "32 unknown"), got.out)
		}
	}
}

// BenchmarkFleet is how long a person of a large fleet waits, beside the API server's own time.
func BenchmarkFleet(b *testing.B) {
	const nodes = 5000
	l := newLarge(b, nodes)
	size := 0
	for _, n := range l.nodes {
		size += len(n)
	}
	for _, args := range []string{"status", "status -o json"} {
		b.Run(args, func(b *testing.B) {
			b.ReportMetric(float64(size)/nodes, "bytes/node")
			for b.Loop() {
				got := l.run(b, strings.Fields(args)...)
				assert.Equal(b, got.status, 0, got.errs)
			}
		})
	}
}
