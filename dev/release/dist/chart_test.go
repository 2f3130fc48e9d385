package dist

import (
	"bytes"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"gotest.tools/v3/assert"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	helmregistry "helm.sh/helm/v4/pkg/registry"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/image"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/release/chart"
)

// operator is where the image is.
const operator = "public.ecr.aws/bottlerocket/bottlerocket-update-operator"

// digest is a well-formed one.
var digest = "sha256:" + strings.Repeat("0123456789abcdef", 4)

// Helm and krew take semantic versions only: a release's is its tag, and any other build's is older than all of them.
func TestChartVersion(t *testing.T) {
	for tag, want := range map[string]string{
		"v2.0.0": "2.0.0", "v2.0.0-rc.1": "2.0.0-rc.1", "v2.0.0-14-g212a79d": "2.0.0-14-g212a79d",
		"v2.0.0-dirty": "2.0.0-dirty", "0123456": "0.0.0-git-0123456", "212a79d-dirty": "0.0.0-git-212a79d-dirty",
		"2.0.0": "0.0.0-git-2-0-0", "v2": "0.0.0-git-v2", "unknown": "0.0.0-git-unknown",
	} {
		got := chartVersion(tag)
		assert.Equal(t, got, want, tag)
		_, err := semver.StrictNewVersion(got)
		assert.NilError(t, err)
	}
}

// The tag of a release is that which the checked-in manifest names; others may be tried without.
func TestCheckTag(t *testing.T) {
	c, err := chart.Load()
	assert.NilError(t, err)
	for _, tag := range []string{c.Metadata.AppVersion, "v9.9.9-rc.1", "v9.9.9-14-g212a79d", "212a79d-dirty"} {
		assert.NilError(t, checkTag(c, tag))
	}
	assert.ErrorContains(t, checkTag(c, "v9.9.9"), "Chart.yaml is of "+c.Metadata.AppVersion+" and the tag is v9.9.9: set")
}

// registryForTest is a registry on loopback, without anything.
func registryForTest(t *testing.T) string {
	t.Helper()
	silent := registry.Logger(log.New(io.Discard, "", 0))
	server := httptest.NewServer(registry.New(silent, registry.WithReferrersSupport(true)))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func releasedChart(t *testing.T) *chartv2.Chart {
	t.Helper()
	c, err := chart.Load()
	assert.NilError(t, err)
	assert.NilError(t, release(c, "v2.1.0-rc.1", digest, committed))
	assert.ErrorContains(t, release(c, "v2.1.0-rc.1", digest, committed), "empty image.digest")
	return c
}

// The chart of a release has the tag as its version and the image by its digest; packed twice, it is the same; and
// what is in the OCI archive, copied to a registry, is what helm pull gets there (issue 19, part 3).
func TestChart(t *testing.T) {
	const called = "registry.example/charts/bottlerocket-update-operator:2.1.0-rc.1"
	made := func() (string, []byte) {
		c := releasedChart(t)
		file, packed, err := pack(c)
		assert.NilError(t, err)
		assert.Equal(t, file, "bottlerocket-update-operator-2.1.0-rc.1.tgz")
		archive := filepath.Join(t.TempDir(), "chart.tar")
		ref, err := image.ParseReference(called)
		assert.NilError(t, err)
		assert.NilError(t, writeChartArchive(t.Context(), archive, ref, packed, committed))
		return archive, packed
	}
	archive, packed := made()
	again, same := made()
	assert.Assert(t, bytes.Equal(packed, same))
	first, err := os.ReadFile(archive)
	assert.NilError(t, err)
	second, err := os.ReadFile(again)
	assert.NilError(t, err)
	assert.Assert(t, bytes.Equal(first, second))

	at := registryForTest(t)
	ref, err := name.ParseReference(at + "/charts/bottlerocket-update-operator:2.1.0-rc.1")
	assert.NilError(t, err)
	top, err := layout.ImageIndexFromPath(untar(t, archive))
	assert.NilError(t, err)
	index, err := top.IndexManifest()
	assert.NilError(t, err)
	assert.Equal(t, len(index.Manifests), 1)
	assert.Equal(t, index.Manifests[0].Annotations["io.containerd.image.name"], called)
	artefact, err := top.Image(index.Manifests[0].Digest)
	assert.NilError(t, err)
	assert.NilError(t, remote.Write(ref, artefact))
	client, err := helmregistry.NewClient(helmregistry.ClientOptPlainHTTP(), helmregistry.ClientOptWriter(io.Discard))
	assert.NilError(t, err)
	pulled, err := client.Pull(ref.String())
	assert.NilError(t, err)
	assert.Assert(t, bytes.Equal(pulled.Chart.Data, packed))

	c, err := loader.LoadArchive(bytes.NewReader(pulled.Chart.Data))
	assert.NilError(t, err)
	assert.Equal(t, c.Metadata.Version, "2.1.0-rc.1")
	assert.Equal(t, c.Metadata.AppVersion, "v2.1.0-rc.1")
	for _, f := range c.Files {
		assert.Assert(t, f.Name != "README.md" || strings.Contains(string(f.Data), digest))
	}
	rendered, err := chart.Render(c, "bottlerocket", map[string]any{"plans": map[string]any{"enabled": true}})
	assert.NilError(t, err)
	for _, name := range []string{"controller.yaml", "proxy.yaml", "agent.yaml", "plans.yaml"} {
		assert.DeepEqual(t, images(rendered[name]), []string{operator + "@" + digest})
	}
}

var imageLine = regexp.MustCompile(`(?m)^ +image: (.*)$`)

func images(text string) []string {
	var out []string
	for _, m := range imageLine.FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	return out
}

// The released files name the image by its digest, whatever becomes of a tag (issue 19, part 3), and say how
// they are applied from where they lie.
func TestManifests(t *testing.T) {
	c := releasedChart(t)
	named := map[string]int{}
	for _, f := range chart.Forms() {
		file, text, err := manifest(c, f)
		assert.NilError(t, err)
		assert.Equal(t, file, filepath.Base(f.File))
		assert.Assert(t, strings.HasPrefix(text, "# Release v2.1.0-rc.1.\n"))
		assert.Assert(t, strings.Contains(text, "#   kubectl apply -f "+file+"\n"), file)
		for _, image := range images(text) {
			assert.Equal(t, image, operator+"@"+digest)
			named[file]++
		}
	}
	assert.DeepEqual(t, named, map[string]int{"update-operator.yaml": 3, "plans.yaml": 1})
}
