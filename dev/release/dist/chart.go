package dist

import (
	"bytes"
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/pkg/errors"
	"helm.sh/helm/v4/pkg/chart/common"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	helmregistry "helm.sh/helm/v4/pkg/registry"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/image"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/release/chart"
)

// finalTag is the tag of a release that is not tried first. kustomize takes the manifest of its commit as it stands there, so
// it must name this image.
var finalTag = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+$`)

// checkTag returns an error if the checkout's chart is of another version than the tag.
func checkTag(c *chartv2.Chart, tag string) error {
	if finalTag.MatchString(tag) && c.Metadata.AppVersion != tag {
		return errors.Errorf("Chart.yaml is of %s and the tag is %s: set version and appVersion there, run make manifest, and tag that",
			c.Metadata.AppVersion, tag)
	}
	return nil
}

// release makes the checkout's chart that of a release: of the version, dated by the commit, and with the image's digest in
// its values, as they are and as its README shows them.
func release(c *chartv2.Chart, version, digest string, at time.Time) error {
	c.Metadata.Version, c.Metadata.AppVersion = chartVersion(version), version
	values, ok := c.Values["image"].(map[string]any)
	if !ok || values["digest"] != "" {
		return errors.New("the chart's values should have an empty image.digest")
	}
	values["digest"] = digest
	c.ModTime, c.SchemaModTime = at, at
	for _, files := range [][]*common.File{c.Raw, c.Templates, c.Files} {
		for _, f := range files {
			f.ModTime = at
			old, written := shown(f.Name, digest)
			if old == "" {
				continue
			}
			if bytes.Count(f.Data, []byte(old)) != 1 {
				return errors.Errorf("%s of the chart should say %q once", f.Name, strings.TrimSpace(old))
			}
			f.Data = bytes.Replace(f.Data, []byte(old), []byte(written), 1)
		}
	}
	return nil
}

// shown returns how a file of the chart says that there is no digest, and what it is to say instead.
func shown(file, digest string) (old, written string) {
	switch file {
	case chartutil.ValuesfileName:
		return "\n  digest: \"\"\n", "\n  digest: " + digest + "\n"
	case "README.md":
		return "| `image.digest` | `\"\"` |", "| `image.digest` | `\"" + digest + "\"` |"
	}
	return "", ""
}

// manifest returns a file for kubectl of the released chart. In a release all files lie in one folder.
func manifest(c *chartv2.Chart, f chart.Form) (file, text string, err error) {
	file = path.Base(f.File)
	f.Comment = "# Release " + c.Metadata.AppVersion + ".\n#\n" + strings.ReplaceAll(f.Comment, f.File, file)
	text, err = f.Text(c)
	return file, text, err
}

// imageName returns the image that a chart names, without its version.
func imageName(c *chartv2.Chart) (string, error) {
	values, _ := c.Values["image"].(map[string]any)
	at, _ := values["registry"].(string)
	repository, _ := values["repository"].(string)
	if at == "" || repository == "" {
		return "", errors.New("the chart's values name no image")
	}
	return at + "/" + repository, nil
}

// pack returns the chart as Helm packs it.
func pack(c *chartv2.Chart) (file string, content []byte, err error) {
	dir, err := os.MkdirTemp("", "chart-")
	if err != nil {
		return "", nil, errors.Wrap(err, "making a folder for the chart")
	}
	defer os.RemoveAll(dir)
	packed, err := chartutil.Save(c, dir)
	if err != nil {
		return "", nil, errors.Wrap(err, "packing the chart")
	}
	content, err = os.ReadFile(packed)
	return path.Base(packed), content, errors.Wrap(err, "reading the packed chart")
}

// writeChartArchive writes a packed chart as an OCI archive of a name. Helm itself pushes it, to a registry in this
// process, so it is what helm push makes.
func writeChartArchive(ctx context.Context, file string, called image.Reference, packed []byte, at time.Time) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return errors.Wrap(err, "listening for the chart")
	}
	server := &http.Server{Handler: registry.New(registry.Logger(log.New(io.Discard, "", 0)))}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer func() {
		server.Close()
		<-served
	}()
	client, err := helmregistry.NewClient(helmregistry.ClientOptPlainHTTP(), helmregistry.ClientOptWriter(io.Discard))
	if err != nil {
		return errors.Wrap(err, "making Helm's client")
	}
	here := listener.Addr().String() + "/" + path.Base(called.String())
	if _, err := client.Push(packed, here, helmregistry.PushOptCreationTime(at.Format(time.RFC3339))); err != nil {
		return errors.Wrap(err, "pushing the chart")
	}
	ref, err := name.ParseReference(here, name.Insecure)
	if err != nil {
		return errors.Wrap(err, "naming the chart")
	}
	pushed, err := remote.Image(ref, remote.WithContext(ctx))
	if err != nil {
		return errors.Wrap(err, "reading the pushed chart")
	}
	return image.WriteArchive(file, called, pushed)
}
