package dist

import (
	"context"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/pkg/errors"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/image"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/release/chart"
)

// roots is the module that the image's certificates come from. No program links it.
const roots = "golang.org/x/crypto/x509roots/fallback"

// The files whose names are said more than once.
const (
	imageFile = "image.tar"
	chartFile = "chart.tar"
	sbomFile  = "sbom.spdx.json"
)

// maker makes one release.
type maker struct {
	root, temp, out string
	build           image.Build
	at              time.Time
	// repository is where the image is.
	repository string
	// licences is a folder with those of everything, by module.
	licences string
	// checksums are those of the archives.
	checksums map[string]string
	parts     []part
}

// Make writes the files of a release of this checkout into the folder out, which must be empty or not there.
func Make(ctx context.Context, build image.Build, out string) error {
	at, err := time.Parse(time.RFC3339, build.Date)
	if err != nil || build.Commit == "" {
		return errors.New("a release needs the commit and its date: make it in a checkout with git")
	}
	if there, err := os.ReadDir(out); err == nil && len(there) > 0 {
		return errors.Errorf("%s holds something already", out)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return errors.Wrap(err, "making the folder")
	}
	root, err := controlplane.Root()
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "dist-")
	if err != nil {
		return errors.Wrap(err, "making a folder")
	}
	defer os.RemoveAll(temp)
	c, err := chart.Load()
	if err != nil {
		return err
	}
	if err := checkTag(c, build.Version); err != nil {
		return err
	}
	m := &maker{root: root, temp: temp, out: out, build: build, at: at.UTC(),
		licences: filepath.Join(temp, image.LicencesDir), checksums: map[string]string{}}
	if m.repository, err = imageName(c); err != nil {
		return err
	}
	digest, err := m.image(ctx)
	if err != nil {
		return err
	}
	if err := m.plugins(ctx); err != nil {
		return err
	}
	if err := release(c, build.Version, digest, m.at); err != nil {
		return err
	}
	if err := m.chart(ctx, c); err != nil {
		return err
	}
	if err := m.manifests(c); err != nil {
		return err
	}
	if err := m.documents(); err != nil {
		return err
	}
	text, err := sums(os.DirFS(out))
	if err != nil {
		return err
	}
	return m.write(sumsFile, []byte(text))
}

func (m *maker) write(name string, content []byte) error {
	return errors.Wrapf(os.WriteFile(filepath.Join(m.out, name), content, 0o644), "writing %s", name)
}

// image writes the image and archives of its commands, and returns the image's digest.
func (m *maker) image(ctx context.Context) (string, error) {
	content, err := image.Compile(ctx, m.root, filepath.Join(m.temp, "image"), m.build, image.Platforms)
	if err != nil {
		return "", err
	}
	index, err := image.Index(content)
	if err != nil {
		return "", err
	}
	digest, err := index.Digest()
	if err != nil {
		return "", errors.Wrap(err, "computing the image's digest")
	}
	called, err := image.ParseReference(m.repository + ":" + m.build.Version)
	if err != nil {
		return "", err
	}
	if err := image.WriteArchive(filepath.Join(m.out, imageFile), called, index); err != nil {
		return "", err
	}

	licences, err := fs.Sub(content.Shared, image.LicencesDir)
	if err != nil {
		return "", errors.Wrap(err, "finding the image's licences")
	}
	if err := os.CopyFS(m.licences, licences); err != nil {
		return "", errors.Wrap(err, "copying licences")
	}
	certificates, err := linkedHere(roots)
	if err != nil {
		return "", err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return "", errors.Wrap(err, "reading the image's index")
	}
	whole := part{name: imageFile, purpose: purposeContainer, sha256: digest.Hex, locator: ociLocator(called, digest, "")}
	for i, p := range image.Platforms {
		file := chart.Name + "-" + p.OS + "-" + p.Architecture + ".tar.gz"
		programs, err := m.archive(file, p, content.Commands[p.String()], licences)
		if err != nil {
			return "", err
		}
		of := manifest.Manifests[i]
		whole.holds = append(whole.holds, part{
			name: "image " + p.String(), purpose: purposeContainer, sha256: of.Digest.Hex,
			locator: ociLocator(called, of.Digest, p.Architecture),
			holds:   programs, links: []debug.Module{certificates},
		})
	}
	m.parts = append(m.parts, whole)
	return digest.String(), nil
}

// ociLocator is the package URL of an image.
func ociLocator(called image.Reference, digest v1.Hash, arch string) string {
	out := "pkg:oci/" + path.Base(called.Repository) + "@" + strings.ReplaceAll(digest.String(), ":", "%3A") + "?"
	if arch != "" {
		out += "arch=" + arch + "&"
	}
	return out + "repository_url=" + called.Repository + "&tag=" + called.Tag
}

// linkedHere returns a module that this program links, as its go.mod has it.
func linkedHere(path string) (debug.Module, error) {
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, d := range info.Deps {
			if d.Path == path {
				return *d, nil
			}
		}
	}
	return debug.Module{}, errors.Errorf("this program doesn't know its version of %s", path)
}

// archive writes an archive of programs for a platform with the licences of what they link, and returns the programs.
func (m *maker) archive(file string, p v1.Platform, folder, licences fs.FS) ([]part, error) {
	entries, err := entriesOf(folder, "", modeProgram)
	if err != nil {
		return nil, err
	}
	var programs []part
	for _, e := range entries {
		made, err := program(strings.TrimSuffix(e.name, ".exe"), p.String(), m.build.Version, e.content)
		if err != nil {
			return nil, err
		}
		programs = append(programs, made)
	}
	texts, err := entriesOf(licences, image.LicencesDir, modeFile)
	if err != nil {
		return nil, err
	}
	pack := tarGz
	if strings.HasSuffix(file, ".zip") {
		pack = zipped
	}
	packed, err := pack(m.at, append(entries, texts...))
	if err != nil {
		return nil, err
	}
	m.checksums[file] = sha256Of(packed)
	m.parts = append(m.parts, part{name: file, purpose: purposeArchive, sha256: m.checksums[file], holds: programs})
	return programs, m.write(file, packed)
}

// plugins writes the plugin for all machines that users have, and krew's manifest.
func (m *maker) plugins(ctx context.Context) error {
	const source = "./cmd/" + plugin
	dir := filepath.Join(m.temp, "plugin")
	licences := filepath.Join(dir, "licenses")
	if err := image.CollectLicences(ctx, m.root, licences, source); err != nil {
		return err
	}
	if err := image.CollectLicences(ctx, m.root, m.licences, source); err != nil {
		return err
	}
	for _, p := range pluginPlatforms {
		out := filepath.Join(dir, p.OS+"-"+p.Architecture)
		if err := m.build.Compile(ctx, m.root, p, out, source); err != nil {
			return err
		}
		if _, err := m.archive(pluginArchive(p), p, os.DirFS(out), os.DirFS(licences)); err != nil {
			return err
		}
	}
	content, err := krewManifest(m.build.Version, m.checksums)
	if err != nil {
		return err
	}
	return m.write(krewFile, content)
}

// chart writes the chart, in both forms. In the registry it is under charts, beside the image.
func (m *maker) chart(ctx context.Context, c *chartv2.Chart) error {
	file, packed, err := pack(c)
	if err != nil {
		return err
	}
	if err := m.write(file, packed); err != nil {
		return err
	}
	called, err := image.ParseReference(path.Dir(m.repository) + "/charts/" + c.Name() + ":" + c.Metadata.Version)
	if err != nil {
		return err
	}
	return writeChartArchive(ctx, filepath.Join(m.out, chartFile), called, packed, m.at)
}

// manifests writes the files for kubectl.
func (m *maker) manifests(c *chartv2.Chart) error {
	for _, f := range chart.Forms() {
		file, text, err := manifest(c, f)
		if err != nil {
			return err
		}
		if err := m.write(file, []byte(text)); err != nil {
			return err
		}
	}
	return nil
}

// documents writes what says more of the others: licences, the bill of materials, and what Prometheus and Grafana take.
func (m *maker) documents() error {
	for file, folder := range map[string]string{
		"licenses.tar.gz":   m.licences,
		"monitoring.tar.gz": filepath.Join(m.root, "monitoring"),
	} {
		entries, err := entriesOf(os.DirFS(folder), filepath.Base(folder), modeFile)
		if err != nil {
			return err
		}
		packed, err := tarGz(m.at, entries)
		if err != nil {
			return err
		}
		if err := m.write(file, packed); err != nil {
			return err
		}
	}
	d, err := document(m.build, m.at, m.parts, os.DirFS(m.licences))
	if err != nil {
		return err
	}
	content, err := encodeDocument(d)
	if err != nil {
		return err
	}
	return m.write(sbomFile, content)
}
