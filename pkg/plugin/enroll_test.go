package plugin

import (
	"net/http"
	"path"
	"strings"
	"testing"

	"gotest.tools/v3/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

func (c *cluster) label(node string, key marker.Key) (string, bool) {
	c.t.Helper()
	n, err := c.client.CoreV1().Nodes().Get(c.t.Context(), node, metav1.GetOptions{})
	assert.NilError(c.t, err)
	v, there := n.Labels[string(key)]
	return v, there
}

// fresh is a Bottlerocket node that is in no care.
func fresh(name string) host {
	return host{name: name, notLabelled: true, noAgent: true, osImage: "Bottlerocket OS 1.50.0 (aws-k8s-1.36)"}
}

// All Bottlerocket nodes without a label get it, once that is shown and confirmed, and no other node changes.
func TestEnroll(t *testing.T) {
	c := newCluster(t)
	windows, first, odd, out := fresh("windows"), fresh("first"), fresh("odd"), fresh("out")
	out.annotations = map[marker.Key]string{marker.KeyAutoLabelled: "2026-01-01T12:00:00Z"}
	windows.osImage = "Windows Server 2022 Datacenter"
	first.labels = map[string]string{string(marker.KeyPlatformVersion): "1.0.0"}
	odd.labels = map[string]string{string(marker.KeyInterfaceVersion): "none"}
	for _, h := range []host{fresh("a"), fresh("b"), windows, first, odd, out} {
		c.node(h)
	}
	table := strings.Join([]string{
		"NODE      OS                                      WILL-BE",
		"a         Bottlerocket OS 1.50.0 (aws-k8s-1.36)   labelled",
		"b         Bottlerocket OS 1.50.0 (aws-k8s-1.36)   labelled",
		"first     Bottlerocket OS 1.50.0 (aws-k8s-1.36)   left: it has the label bottlerocket.aws/platform-version=1.0.0",
		"odd       Bottlerocket OS 1.50.0 (aws-k8s-1.36)   left: it has the label bottlerocket.aws/updater-interface-version=none",
		"out       Bottlerocket OS 1.50.0 (aws-k8s-1.36)   left: it has the annotation bottlerocket.aws/auto-labelled, so its label was removed; name the node to label it again",
		"windows   Windows Server 2022 Datacenter          left: it does not run Bottlerocket",
		""}, "\n")
	lines := func(s said) (string, []string) {
		at := strings.LastIndex(s.out, "Bottlerocket\n") + len("Bottlerocket\n")
		did := strings.Split(strings.TrimSpace(s.out[at:]), "\n")
		if len(did) == 2 && did[0] > did[1] {
			did[0], did[1] = did[1], did[0]
		}
		return s.out[:at], did
	}
	for mode, suffix := range map[string]string{"client": " (dry run)", "server": " (server dry run)"} {
		got := c.run("enroll", "--dry-run="+mode)
		shown, did := lines(got)
		assert.Equal(t, shown, table)
		assert.DeepEqual(t, did, []string{"node/a labelled" + suffix, "node/b labelled" + suffix})
		assert.Equal(t, len(writes(got)) > 0, mode == "server")
	}
	for answer, end := range map[string]string{
		"": "\nerror: there is no answer, so nothing was done: give --yes where nothing can answer\n", "n\n": "error: nothing was done\n", "\n": "error: nothing was done\n",
	} {
		got := c.runWith(answer, "enroll")
		assert.Equal(t, got.errs, "Label 2 nodes with bottlerocket.aws/updater-interface-version=2.0.0? [y/N] "+end)
		assert.Equal(t, got.status, 1)
		assert.Equal(t, len(writes(got)), 0)
	}

	c.run("enroll", "a", "windows", "--yes").fails(t, `node "windows" runs "Windows Server 2022 Datacenter" and not Bottlerocket, so it has no Update API: `+
		`leave it out, or let plans update it (label bottlerocket.aws/updater-interface-version=plan)`)
	c.run("enroll", "missing").fails(t, `node "missing" not found`)
	c.run("enroll", "a", "-l", "x=y").fails(t, "nodes and a selector exclude each other: give one of them")
	assert.Equal(t, c.run("enroll", "-l", "x=y").errs, "No nodes found\n")

	got := c.runWith("y\n", "enroll")
	assert.Equal(t, got.status, 0, got.errs)
	_, did := lines(got)
	assert.DeepEqual(t, did, []string{"node/a labelled", "node/b labelled"})
	for node, want := range map[string]string{"a": "2.0.0", "b": "2.0.0", "odd": "none", "first": "", "windows": ""} {
		v, _ := c.label(node, marker.KeyInterfaceVersion)
		assert.Equal(t, v, want, node)
	}
	assert.Assert(t, strings.HasSuffix(c.run("enroll", "out", "-y").out, "node/out labelled\n"))
	got = c.run("enroll")
	assert.Equal(t, got.errs, "There is nothing to label\n")
	assert.Equal(t, len(writes(got)), 0)
}

// A label that is set between the look and the write is not overwritten.
func TestEnrollMeetsAnother(t *testing.T) {
	c := newCluster(t)
	c.node(fresh("a"))
	c.node(fresh("b"))
	between := func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPatch {
				// Once: what is there already is no change.
				node := path.Base(r.URL.Path)
				body := map[string]string{
					"a": `{"metadata":{"labels":{"bottlerocket.aws/updater-interface-version":"plan"}}}`,
					"b": `{"metadata":{"labels":{"example.com/other":"x"}}}`}[node]
				_, err := c.client.CoreV1().Nodes().Patch(t.Context(), node, types.MergePatchType, []byte(body), metav1.PatchOptions{})
				assert.Check(t, err)
			}
			return next.RoundTrip(r)
		})
	}
	for node, did := range map[string]string{"a": "left: it has the label bottlerocket.aws/updater-interface-version=plan", "b": "labelled"} {
		got := command(t.Context(), between, "", "--kubeconfig", c.kubeconfig, "enroll", node, "--yes")
		assert.Equal(t, got.status, 0, got.errs)
		assert.Assert(t, strings.HasSuffix(got.out, "node/"+node+" "+did+"\n"), got.out)
	}
	a, _ := c.label("a", marker.KeyInterfaceVersion)
	b, _ := c.label("b", marker.KeyInterfaceVersion)
	assert.DeepEqual(t, []string{a, b}, []string{"plan", "2.0.0"})
}
