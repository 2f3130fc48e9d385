package controlplane

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pkg/errors"
)

// moduleFor writes a go.mod into dir from which the programs of one Kubernetes
// version can be built. Kubernetes requires its own staging repositories in a
// version that doesn't exist (v0.0.0), because its releases replace them; so
// each of them is replaced by the release that belongs to the version.
func moduleFor(ctx context.Context, dir, version string, progress func(string, ...any)) error {
	progress("looking up the modules of Kubernetes %s", version)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return errors.Wrap(err, "making a folder for the module")
	}
	out, err := goOutput(ctx, dir, "mod", "download", "-json", "k8s.io/kubernetes@"+version)
	var module struct{ GoMod, Error string }
	if jsonErr := json.Unmarshal(out, &module); jsonErr == nil && module.Error != "" {
		return errors.Errorf("kubernetes %s can't be had: %s", version, module.Error)
	}
	if err != nil {
		return err
	}
	out, err = goOutput(ctx, dir, "mod", "edit", "-json", module.GoMod)
	if err != nil {
		return err
	}
	text, err := moduleText(version, out)
	if err != nil {
		return err
	}
	return errors.Wrap(os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o600), "writing a go.mod")
}

// moduleText makes that go.mod out of the one of Kubernetes, in JSON.
func moduleText(version string, kubernetes []byte) (string, error) {
	var mod struct {
		Go      string
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal(kubernetes, &mod); err != nil {
		return "", errors.Wrap(err, "reading the go.mod of kubernetes")
	}
	staging := "v0." + strings.TrimPrefix(version, "v1.")
	var b strings.Builder
	fmt.Fprintf(&b, "module %s/dev/controlplane/programs\n\ngo %s\n\nrequire k8s.io/kubernetes %s\n", modulePath, mod.Go, version)
	for _, r := range mod.Require {
		if r.Version == "v0.0.0" {
			fmt.Fprintf(&b, "\nreplace %s => %s %s\n", r.Path, r.Path, staging)
		}
	}
	return b.String(), nil
}
