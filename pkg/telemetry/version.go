package telemetry

import (
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
)

// Version is the build's. The linker sets it: -ldflags "-X <this package>.Version=1.0.0".
var Version = ""

func init() {
	if Version == "" {
		Version = fromBuildInfo(debug.ReadBuildInfo())
	}
}

// unknown stands for the version of a build that doesn't tell.
const unknown = "unknown"

func fromBuildInfo(info *debug.BuildInfo, ok bool) string {
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return unknown
	}
	return info.Main.Version
}

// Namespace begins the name of every metric of the operator.
const Namespace = "bottlerocket_update"

// RegisterBuildInfo registers the gauge that tells the build.
func RegisterBuildInfo(r prometheus.Registerer, component string) {
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace:   Namespace,
		Name:        "build_info",
		Help:        "Always 1; the labels tell which build of which component this is.",
		ConstLabels: prometheus.Labels{"component": component, "version": Version, "go_version": runtime.Version()},
	})
	g.Set(1)
	r.MustRegister(g)
}
