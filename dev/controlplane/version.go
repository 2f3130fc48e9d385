package controlplane

import (
	"os"
	"path/filepath"
	"regexp"

	"github.com/pkg/errors"
)

// VersionEnv is the environment variable that chooses the Kubernetes version.
const VersionEnv = "K8S_VERSION"

var (
	versionForm = regexp.MustCompile(`^v?(\d+\.\d+\.\d+(?:-[0-9A-Za-z.]+)?)$`)
	pinnedForm  = regexp.MustCompile(`(?m)^\s*(?:require\s+)?k8s\.io/kubernetes\s+(v\S+)`)
)

// normalVersion gives a version its v: 1.36.3 and v1.36.3 mean the same.
func normalVersion(s string) (string, error) {
	m := versionForm.FindStringSubmatch(s)
	if m == nil {
		return "", errors.Errorf("kubernetes version %q is not of the form 1.36.3", s)
	}
	return "v" + m[1], nil
}

// DefaultVersion is the Kubernetes version that dev/controlplane/programs pins.
func DefaultVersion() (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	mod, err := os.ReadFile(filepath.Join(root, "dev", "controlplane", "programs", "go.mod"))
	if err != nil {
		return "", errors.Wrap(err, "reading the pins of dev/controlplane/programs")
	}
	m := pinnedForm.FindSubmatch(mod)
	if m == nil {
		return "", errors.New("the go.mod of dev/controlplane/programs does not require k8s.io/kubernetes")
	}
	return string(m[1]), nil
}

// chooseVersion is the version asked for, else the environment's, else the
// pinned one.
func chooseVersion(asked, pinned string) (string, error) {
	if asked == "" {
		asked = os.Getenv(VersionEnv)
	}
	if asked == "" {
		return pinned, nil
	}
	return normalVersion(asked)
}
