package chart

import (
	"path"
	"path/filepath"
	"strings"

	"github.com/pkg/errors"
	"helm.sh/helm/v4/pkg/chart/common"
	chartutil "helm.sh/helm/v4/pkg/chart/common/util"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
)

// Name is the chart's.
const Name = "bottlerocket-update-operator"

// Dir is the chart's folder in this checkout.
func Dir() (string, error) {
	root, err := controlplane.Root()
	return filepath.Join(root, "charts", Name), err
}

// Load reads this checkout's chart.
func Load() (*chartv2.Chart, error) {
	dir, err := Dir()
	if err != nil {
		return nil, err
	}
	c, err := loader.LoadDir(dir)
	return c, errors.Wrap(err, "reading the chart")
}

// Render returns what each template of the chart says with some values in a namespace, by the template's file name. Values
// that the chart's schema refuses are an error.
func Render(c *chartv2.Chart, namespace string, values map[string]any) (map[string]string, error) {
	all, err := chartutil.ToRenderValues(c, values, common.ReleaseOptions{Name: "update-operator", Namespace: namespace, Revision: 1, IsInstall: true},
		common.DefaultCapabilities)
	if err != nil {
		return nil, errors.Wrap(err, "joining the values")
	}
	rendered, err := engine.Engine{Strict: true}.Render(c, all)
	if err != nil {
		return nil, errors.Wrap(err, "rendering the chart")
	}
	out := map[string]string{}
	for name, text := range rendered {
		if strings.HasSuffix(name, ".yaml") {
			out[path.Base(name)] = text
		}
	}
	return out, nil
}
