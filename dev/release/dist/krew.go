package dist

import (
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/krew/pkg/constants"
	krew "sigs.k8s.io/krew/pkg/index"
	"sigs.k8s.io/yaml"
)

// repository is where this project and its releases are.
const repository = "https://github.com/bottlerocket-os/bottlerocket-update-operator"

// krewFile is named as krew wants it, after the plugin.
const krewFile = "bottlerocket.yaml"

// krewManifest returns what krew installs the plugin by: from the archives of a GitHub release, by their checksums.
func krewManifest(version string, checksums map[string]string) ([]byte, error) {
	p := krew.Plugin{
		TypeMeta:   metav1.TypeMeta{APIVersion: constants.CurrentAPIVersion, Kind: constants.PluginKind},
		ObjectMeta: metav1.ObjectMeta{Name: "bottlerocket"},
		Spec: krew.PluginSpec{
			Version:          "v" + chartVersion(version),
			Homepage:         repository,
			ShortDescription: "Watch and steer OS updates of Bottlerocket nodes",
			Description: "Shows what the Bottlerocket update operator does with the nodes of a cluster, what it\n" +
				"would do next and why not more; pauses, resumes and retries it, and cleans up after it.\n",
			Caveats: "The operator must run in the cluster: see " + repository + "\n",
		},
	}
	for _, platform := range pluginPlatforms {
		archive := pluginArchive(platform)
		sum, ok := checksums[archive]
		if !ok {
			return nil, errors.Errorf("%s has no checksum", archive)
		}
		p.Spec.Platforms = append(p.Spec.Platforms, krew.Platform{
			URI:      repository + "/releases/download/" + version + "/" + archive,
			Sha256:   sum,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"os": platform.OS, "arch": platform.Architecture}},
			Files:    []krew.FileOperation{{From: "*", To: "."}},
			Bin:      pluginProgram(platform),
		})
	}
	out, err := yaml.Marshal(p)
	return out, errors.Wrap(err, "encoding krew's manifest")
}

const plugin = "kubectl-bottlerocket"

// pluginPlatforms are those of users' machines.
var pluginPlatforms = []v1.Platform{
	{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64"},
	{OS: "darwin", Architecture: "amd64"}, {OS: "darwin", Architecture: "arm64"},
	{OS: "windows", Architecture: "amd64"}, {OS: "windows", Architecture: "arm64"},
}

func pluginProgram(p v1.Platform) string {
	if p.OS == "windows" {
		return plugin + ".exe"
	}
	return plugin
}

func pluginArchive(p v1.Platform) string {
	if p.OS == "windows" {
		return plugin + "-" + p.OS + "-" + p.Architecture + ".zip"
	}
	return plugin + "-" + p.OS + "-" + p.Architecture + ".tar.gz"
}
