package telemetry

import (
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
)

// Version is the build's version, set by the linker: -ldflags "-X <this package>.Version=1.0.0". It is "unknown" if
// neither that nor the build information has one.
var Version = ""

func init() {
	if Version == "" {
		Version = fromBuildInfo(debug.ReadBuildInfo())
	}
}

const unknown = "unknown"

func fromBuildInfo(info *debug.BuildInfo, ok bool) string {
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return unknown
	}
	return info.Main.Version
}

// Namespace begins the name of every metric of the operator.
const Namespace = "bottlerocket_update"

// RegisterBuildInfo registers the gauge whose labels are the component and its build.
func RegisterBuildInfo(r prometheus.Registerer, component string) {
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace:   Namespace,
		Name:        "build_info",
		Help:        "Always 1; the labels are the component and its build.",
		ConstLabels: prometheus.Labels{"component": component, "version": Version, "go_version": runtime.Version()},
	})
	g.Set(1)
	r.MustRegister(g)
}
